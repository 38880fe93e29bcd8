"""scikit-learn and SciPy compute on portable tensors of every backend what they compute on NumPy arrays.

Every job here runs on PyTorch's own tensors too. (scikit-learn 1.9 fails there, and here, in roc_curve, roc_auc_score
and matthews_corrcoef, by calls that the standard does not allow.)
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import sklearn

from ember_ml.backend import installed_backends
from tests.interop.jobs import SCIPY, SKLEARN
from tests.reference import as_array, close_enough


def _make_on(backend: str) -> Callable[..., Any]:
    xp = importlib.import_module(f"ember_ml.array_api.{backend}")
    return lambda values, dtype="float64": xp.asarray(values, dtype=getattr(xp, dtype))


def _make_plain(values: Any, dtype: str = "float64") -> Any:
    return as_array(values, dtype)


@pytest.mark.filterwarnings("ignore")  # the clients warn about their own experimental support
@pytest.mark.parametrize("backend", installed_backends())
@pytest.mark.parametrize("job", [*SKLEARN, *SCIPY])
def test_job(backend: str, job: str) -> None:
    run = SKLEARN.get(job) or SCIPY[job]
    with warnings.catch_warnings(), sklearn.config_context(array_api_dispatch=True):
        warnings.simplefilter("ignore")
        got = run(_make_on(backend))
    want = run(_make_plain)
    assert len(got) == len(want)
    signless = job.startswith("PCA")  # the sign of a singular vector is free
    for result, expected in zip(got, want, strict=True):
        assert close_enough(result, expected, signless=signless), f"{result} is not {expected}"

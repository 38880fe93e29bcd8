"""Every op under ``vmap`` against the loop that ``vmap`` stands for: any of its tensors mapped, along any axis."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml.backend import installed_backends
from tests.fuzz.vmaps import BY_VALUE, check_call, choose_dtypes
from tests.reference.images import OPS_OF_IMAGES
from tests.reference.table import SPECS


@pytest.mark.long_with(*OPS_OF_IMAGES)
@pytest.mark.parametrize("backend", installed_backends())
@pytest.mark.parametrize("name", sorted(SPECS.keys() - BY_VALUE))
def test_vmap_agrees_with_the_loop(backend: str, name: str) -> None:
    @settings(max_examples=max(4, settings.default.max_examples // 5))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        _check_all_dtypes(backend, name, data)

    check()


def _check_all_dtypes(backend: str, name: str, data: st.DataObject) -> None:
    ember_ml.set_backend(backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for dtype in choose_dtypes(backend, name):
            assert check_call(backend, name, dtype, data.draw) is None

"""The formula for the time of a step on many ranks, against a simulation that follows every message."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scaling.py"
_spec = importlib.util.spec_from_file_location("scaling", SCRIPT)
assert _spec is not None
assert _spec.loader is not None
scaling = sys.modules["scaling"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(scaling)


@given(
    gradients=st.floats(1e6, 1e10),
    step=st.floats(0.01, 10),
    bandwidth=st.floats(1e8, 1e11),
    latency=st.floats(0, 1e-3),
    speeds=st.lists(st.floats(1, 1.5), min_size=2, max_size=24),
)
def test_the_formula_is_what_the_messages_give(
    gradients: float, step: float, bandwidth: float, latency: float, speeds: list[float]
) -> None:
    job = scaling.Job(gradients, step, bandwidth, latency)
    followed = scaling.simulated(job, len(speeds), speeds)
    assert scaling.predicted(job, len(speeds), max(speeds)) == pytest.approx(followed, rel=0.05)


def test_the_formula_by_hand() -> None:
    job = scaling.Job(gradients=8e6, step=3.0, bandwidth=1e6, latency=0.5)
    # one bucket, known after 3 s; of 4 ranks each sends 2 MB in each of 6 rounds
    assert scaling.predicted(job, 4) == pytest.approx(3.0 + 6 * (0.5 + 2.0))

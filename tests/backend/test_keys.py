"""Slices worked out by hand, as Python works them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ember_ml.backend.common.indexing import bounds

places = st.none() | st.integers(-12, 12)


@given(places, places, st.none() | st.integers(-5, 5).filter(bool), st.integers(0, 8))
def test_bounds_are_those_of_python(start: int | None, stop: int | None, step: int | None, size: int) -> None:
    assert bounds(slice(start, stop, step), size) == slice(start, stop, step).indices(size)


def test_a_step_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="step cannot be zero"):
        bounds(slice(0, 2, 0), 3)

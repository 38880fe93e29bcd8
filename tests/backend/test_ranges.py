"""The evenly spaced numbers that the host computes for every backend."""

import numpy as np
import pytest

from ember_ml import ops

ENDS = [(0.0, 1.0), (-1.0, 1.0), (1e-45, 1.0), (0.0, 1e-40), (-1e-21, 1.0), (3.0, 4e38), (-1e300, 0.0), (-0.3, 0.1)]


@pytest.mark.parametrize(("first", "last"), ENDS)
def test_no_number_of_float32_raises_where_numpy_is_told_to(first: float, last: float, backend: str) -> None:
    with np.errstate(all="ignore"):
        expected = np.linspace(first, last, 7).astype(np.float32)
    with np.errstate(all="raise"):
        found = ops.linspace(first, last, 7)
    np.testing.assert_array_equal(ops.to_numpy(found), expected)

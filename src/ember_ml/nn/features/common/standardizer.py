"""Standardizing: columns of mean 0 and deviation 1."""

from __future__ import annotations

from typing import Any, Self

from ember_ml import ops
from ember_ml.nn.features.common.moments import Moments, center, column_moments, merge_moments
from ember_ml.nn.features.common.rows import read_rows
from ember_ml.nn.features.common.scaler import Scaler
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Standardizer"]

_EPSILON = 2.0**-52


class Standardizer(Scaler):
    """Subtracts the mean of each column and divides by its standard deviation, both learnt in ``fit``.

    ``(x - mean) / scale``, where ``scale`` is the population standard deviation, and 1 for columns that are constant.
    NaN is a missing value: it counts for nothing, and stays NaN. Results have the dtype of the data, float32 where
    that is no float. Agrees with scikit-learn's ``StandardScaler``.

    Learnt: ``mean_`` and ``mean_rest_`` (what rounding took away from the mean), ``var_`` and ``scale_`` where
    ``with_std``, ``n_samples_seen_`` (a tensor where columns miss values), ``n_features_in_``, and
    ``feature_names_in_`` from a data frame.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.features import Standardizer
    >>> scaler = Standardizer().fit([[1.0, 10.0], [3.0, 10.0]])
    >>> ops.to_numpy(scaler.transform([[1.0, 10.0], [4.0, 12.0]])).tolist()
    [[-1.0, 0.0], [2.0, 2.0]]
    """

    mean_: Tensor
    mean_rest_: Tensor
    var_: Tensor
    scale_: Tensor

    def __init__(self, *, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean = with_mean
        self.with_std = with_std

    def fit(self, X: TensorLike, y: Any = None) -> Self:
        """Learn the means and deviations of the columns of ``X``, and forget what was learnt before."""
        rows = read_rows(self, X, fits=True)
        found = column_moments(rows)
        self._forget()
        self._keep(**rows.columns(), **_name_moments(found))
        return self

    def partial_fit(self, X: TensorLike, y: Any = None) -> Self:
        """Learn from some more rows, as if ``fit`` had got all rows at once."""
        if not self._get_learnt():
            return self.fit(X)
        rows = read_rows(self, X, fits=False)
        before = Moments(
            *(self._get_state(name, rows.x) for name in ("n_samples_seen_", "mean_", "mean_rest_", "var_"))
        )
        self._keep(**_name_moments(merge_moments(before, column_moments(rows))))
        return self

    def transform(self, X: TensorLike) -> Tensor:
        """Return ``X`` with each column centered and scaled."""
        x, dtype, *_ = read_rows(self, X, fits=False)
        if self.with_mean:
            x = center(x, self._get_state("mean_", x), self._get_state("mean_rest_", x))
        if self.with_std:
            x = ops.divide(x, self._get_state("scale_", x))
        return ops.cast(x, dtype)

    def inverse_transform(self, X: TensorLike) -> Tensor:
        """Return the data that ``transform`` makes ``X`` of."""
        x, dtype, *_ = read_rows(self, X, fits=False)
        if self.with_std:
            x = ops.multiply(x, self._get_state("scale_", x))
        if self.with_mean:
            x = ops.add(ops.add(x, self._get_state("mean_rest_", x)), self._get_state("mean_", x))
        return ops.cast(x, dtype)


def _name_moments(found: Moments) -> dict[str, Any]:
    """Return the learnt attributes by name: the moments, and the scale that follows from them."""
    return {
        "n_samples_seen_": found.count,
        "mean_": found.mean,
        "mean_rest_": found.rest,
        "var_": found.var,
        "scale_": _scale(found),
    }


def _scale(found: Moments) -> Tensor:
    """Return the deviations, and 1 where one is no larger than rounding makes it for a constant column.

    Data that was computed in float64 is constant within an epsilon of its size for each row, as scikit-learn has it;
    the mean of exactly constant data is off by two roundings in the dtype in which it is computed.
    """
    steps = _count_epsilons(found.count, 4.0 * ops.finfo(ops.dtype(found.mean)).eps ** 2)
    noise = ops.add(
        ops.square(ops.multiply(found.mean, steps)), ops.multiply(found.var, _count_epsilons(found.count, 0.0))
    )
    return ops.where(ops.less_equal(found.var, noise), ops.ones_like(found.var), ops.sqrt(found.var))


def _count_epsilons(count: Any, least: float) -> Any:
    if isinstance(count, int):
        return max(count * _EPSILON, least)
    return ops.maximum(ops.multiply(ops.cast(count, "float32"), _EPSILON), least)

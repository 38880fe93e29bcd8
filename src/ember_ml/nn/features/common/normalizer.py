"""Normalizing: columns that lie between two given values."""

from __future__ import annotations

from typing import Any, Self

from ember_ml import ops
from ember_ml.nn.features.common.estimator import check_readable
from ember_ml.nn.features.common.rows import Rows, read_rows
from ember_ml.nn.features.common.scaler import Scaler
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Normalizer"]


class Normalizer(Scaler):
    """Maps each column linearly, so that what ``fit`` saw of it lies between the two values of ``feature_range``.

    ``(x - data_min) * scale + low``. A column that is constant becomes ``low``. With ``clip``, data beyond what
    ``fit`` saw is held within the range. NaN is a missing value: it counts for nothing, and stays NaN. Results have
    the dtype of the data, float32 where that is no float. Agrees with scikit-learn's ``MinMaxScaler``.

    Learnt: ``data_min_``, ``data_max_``, ``data_range_``, ``scale_``, ``min_`` (what the column's 0 becomes),
    ``n_samples_seen_``, ``n_features_in_``, and ``feature_names_in_`` from a data frame.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.features import Normalizer
    >>> scaler = Normalizer().fit([[0.0], [4.0], [2.0]])
    >>> ops.to_numpy(scaler.transform([[1.0], [6.0]])).tolist()
    [[0.25], [1.5]]
    """

    data_min_: Tensor
    data_max_: Tensor
    data_range_: Tensor
    scale_: Tensor
    min_: Tensor

    def __init__(self, feature_range: tuple[float, float] = (0, 1), *, clip: bool = False) -> None:
        self.feature_range = feature_range
        self.clip = clip

    def fit(self, X: TensorLike, y: Any = None) -> Self:
        """Learn the least and the largest value of each column of ``X``, and forget what was learnt before."""
        rows = read_rows(self, X, fits=True)
        least, most = _find_extremes(rows)
        found = self._find_mapping(least, most)
        self._forget()
        self._keep(**rows.columns(), **found, n_samples_seen_=rows.x.shape[0])
        return self

    def partial_fit(self, X: TensorLike, y: Any = None) -> Self:
        """Learn from some more rows, as if ``fit`` had got all rows at once."""
        if not self._get_learnt():
            return self.fit(X)
        rows = read_rows(self, X, fits=False)
        least, most = _find_extremes(rows)
        least = ops.fmin(self._get_state("data_min_", rows.x), least)
        most = ops.fmax(self._get_state("data_max_", rows.x), most)
        self._keep(**self._find_mapping(least, most), n_samples_seen_=self.n_samples_seen_ + rows.x.shape[0])
        return self

    def _find_mapping(self, least: Tensor, most: Tensor) -> dict[str, Tensor]:
        low, high = self._check_range()
        span = ops.subtract(most, least)
        is_constant = ops.less(span, 10.0 * ops.finfo(ops.dtype(span)).eps)
        scale = ops.divide(high - low, ops.where(is_constant, ops.ones_like(span), span))
        return {
            "data_min_": least,
            "data_max_": most,
            "data_range_": span,
            "scale_": scale,
            "min_": ops.subtract(low, ops.multiply(least, scale)),
        }

    def _check_range(self) -> tuple[float, float]:
        low, high = self.feature_range
        if not low < high:
            raise ValueError(f"feature_range is (low, high) with low below high, not {self.feature_range}")
        return float(low), float(high)

    def transform(self, X: TensorLike) -> Tensor:
        """Return ``X`` with each column mapped into the range."""
        x, dtype, *_ = read_rows(self, X, fits=False)
        low, high = self._check_range()
        x = ops.multiply(ops.subtract(x, self._get_state("data_min_", x)), self._get_state("scale_", x))
        x = ops.add(x, low)
        return ops.cast(ops.clip(x, low, high) if self.clip else x, dtype)

    def inverse_transform(self, X: TensorLike) -> Tensor:
        """Return the data that ``transform`` makes ``X`` of."""
        x, dtype, *_ = read_rows(self, X, fits=False)
        x = ops.divide(ops.subtract(x, self._check_range()[0]), self._get_state("scale_", x))
        return ops.cast(ops.add(x, self._get_state("data_min_", x)), dtype)


def _find_extremes(rows: Rows) -> tuple[Tensor, Tensor]:
    check_readable(rows.x)
    if rows.may_miss:
        return ops.nanmin(rows.x, axis=0), ops.nanmax(rows.x, axis=0)
    return ops.min(rows.x, axis=0), ops.max(rows.x, axis=0)

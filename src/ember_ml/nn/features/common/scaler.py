"""The base class of scalers, which change each column by itself."""

from __future__ import annotations

from typing import Any, Self

from ember_ml.nn.features.common.estimator import Estimator
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Scaler"]


class Scaler(Estimator):
    """An estimator that changes each column by itself; NaN is a missing value."""

    _takes_missing = True

    n_samples_seen_: Any
    n_features_in_: int
    feature_names_in_: list[str]

    def fit(self, X: TensorLike, y: Any = None) -> Self:
        """Learn from the columns of ``X``."""
        raise NotImplementedError

    def transform(self, X: TensorLike) -> Tensor:
        """Return ``X`` with each column changed as learnt."""
        raise NotImplementedError

    def fit_transform(self, X: TensorLike, y: Any = None) -> Tensor:
        """Learn from ``X``, and give it back transformed."""
        return self.fit(X).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Return the names of the columns that ``transform`` gives: those of the data, else x0, x1 and so on."""
        self._check_fitted()
        if input_features is not None:
            return list(input_features)
        return getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])

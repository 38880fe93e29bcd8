"""The base class of feature extractors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from ember_ml.nn.features import Estimator
from ember_ml.typing import Tensor, TensorLike

__all__ = ["FeatureExtractor"]


class FeatureExtractor(Estimator, ABC):
    """Makes features of data: subclasses define ``extract(data, ...)``, which returns a tensor.

    An extractor can be called, and is an estimator too: what the constructor takes are its parameters, ``transform``
    extracts, and ``fit``, where a subclass does not define it, learns nothing. So it is a step of a pipeline of
    scikit-learn.

    >>> from ember_ml import ops
    >>> from ember_ml.features import FeatureExtractor
    >>> class Energy(FeatureExtractor):
    ...     def extract(self, data):
    ...         return ops.mean(ops.square(data), axis=-1, keepdims=True)
    >>> ops.to_numpy(Energy()([[1.0, 2.0, 2.0]])).tolist()
    [[3.0]]
    """

    _needs_fit = False

    @abstractmethod
    def extract(self, *args: Any, **kwargs: Any) -> Tensor:
        """Return the features of the data."""

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.extract(*args, **kwargs)

    def fit(self, X: TensorLike, y: Any = None) -> Self:
        """Learn what ``extract`` needs; nothing in this class."""
        return self

    def transform(self, X: TensorLike) -> Tensor:
        """Return the features of ``X``."""
        return self.extract(X)

    def fit_transform(self, X: TensorLike, y: Any = None) -> Tensor:
        """Learn from ``X``, and return its features."""
        return self.fit(X, y).transform(X)

"""The estimators, the functions that make them, and the functions that need no fitting."""

from __future__ import annotations

from ember_ml.nn.features.common.estimator import Estimator
from ember_ml.nn.features.common.normalizer import Normalizer
from ember_ml.nn.features.common.pca import PCA
from ember_ml.nn.features.common.standardizer import Standardizer
from ember_ml.nn.features.common.tensor_features import one_hot, scatter
from ember_ml.ops.random import Generator

__all__ = [
    "PCA",
    "Estimator",
    "Normalizer",
    "Standardizer",
    "normalize_features",
    "one_hot",
    "pca",
    "scatter",
    "standardize_features",
]


def pca(
    n_components: int | float | None = None,
    *,
    whiten: bool = False,
    svd_solver: str = "auto",
    n_oversamples: int = 10,
    iterated_power: int | str = "auto",
    random_state: int | Generator | None = None,
) -> PCA:
    """Return a new :class:`PCA` with these parameters, to be fitted.

    >>> from ember_ml.nn import features
    >>> features.pca(2).fit_transform([[1.0, 2.0, 3.0], [2.0, 0.0, 1.0], [5.0, 1.0, 1.0]]).shape[1]
    2
    """
    return PCA(
        n_components,
        whiten=whiten,
        svd_solver=svd_solver,
        n_oversamples=n_oversamples,
        iterated_power=iterated_power,
        random_state=random_state,
    )


def standardize_features(*, with_mean: bool = True, with_std: bool = True) -> Standardizer:
    """Return a new :class:`Standardizer`, to be fitted: columns of mean 0 and deviation 1.

    >>> from ember_ml import ops
    >>> from ember_ml.nn import features
    >>> ops.to_numpy(features.standardize_features().fit_transform([[1.0], [3.0]])).tolist()
    [[-1.0], [1.0]]
    """
    return Standardizer(with_mean=with_mean, with_std=with_std)


def normalize_features(feature_range: tuple[float, float] = (0, 1), *, clip: bool = False) -> Normalizer:
    """Return a new :class:`Normalizer`, to be fitted: columns that lie within ``feature_range``.

    >>> from ember_ml import ops
    >>> from ember_ml.nn import features
    >>> ops.to_numpy(features.normalize_features().fit_transform([[2.0], [3.0], [6.0]])).tolist()
    [[0.0], [0.25], [1.0]]
    """
    return Normalizer(feature_range, clip=clip)

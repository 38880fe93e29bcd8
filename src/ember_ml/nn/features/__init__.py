"""Features of tables of numbers: estimators that learn from data, by scikit-learn's conventions, on every backend.

``pca``, ``standardize_features`` and ``normalize_features`` make the estimators :class:`PCA`, :class:`Standardizer`
and :class:`Normalizer`; ``one_hot`` and ``scatter`` are the ops of these names.
"""

from __future__ import annotations

from ember_ml.nn.features.common import (
    PCA,
    Estimator,
    Normalizer,
    Standardizer,
    normalize_features,
    one_hot,
    pca,
    scatter,
    standardize_features,
)

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

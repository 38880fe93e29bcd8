"""Extractors of features from time series and tables, on every backend.

``base.FeatureExtractor`` is what they derive from, and what your own may derive from.
"""

from __future__ import annotations

from ember_ml.features import base
from ember_ml.features.base import FeatureExtractor
from ember_ml.features.series import Lags, RollingStatistics, Windows
from ember_ml.features.spectra import SpectralFeatures
from ember_ml.features.statistics import SeriesStatistics
from ember_ml.features.tables import TableFeatures

__all__ = [
    "FeatureExtractor",
    "Lags",
    "RollingStatistics",
    "SeriesStatistics",
    "SpectralFeatures",
    "TableFeatures",
    "Windows",
    "base",
]

"""Metrics: how good predictions are, measured batch by batch.

``update(target, prediction, weight=None)`` takes a batch, ``result()`` gives the number for all batches since the last
``reset()``. An update reads no value: on a lazy backend or a device it waits for nothing, ``result`` does. Batches may
come from different backends. ``state()`` is plain data, which ``restore`` goes on from and ``merge`` adds: what several
ranks have measured together.

Classes are given as integers, or as rows with a 1 at the class; predictions as rows of scores (logits, or
probabilities), of which the largest counts, or as one score for each sample, which means class 1 where it is above
``threshold``. That is 0, as for logits; for probabilities give 0.5.
"""

from __future__ import annotations

from typing import Any

from ember_ml.config import registry
from ember_ml.training.metrics.base import Mean, Measure, Metric
from ember_ml.training.metrics.classification import (
    F1,
    Accuracy,
    BinaryAccuracy,
    ConfusionMatrix,
    Precision,
    Recall,
    TopKAccuracy,
)
from ember_ml.training.metrics.ranking import AUC
from ember_ml.training.metrics.regression import R2, MeanAbsoluteError, MeanSquaredError, Perplexity

__all__ = [
    "AUC",
    "F1",
    "R2",
    "Accuracy",
    "BinaryAccuracy",
    "ConfusionMatrix",
    "Mean",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Measure",
    "Metric",
    "Perplexity",
    "Precision",
    "Recall",
    "TopKAccuracy",
    "get",
]


def get(metric: Any) -> Any:
    """Return a new metric of that name with its default settings; what is a metric already is given back.

    Names are ``accuracy``, ``f1``, ``mean_squared_error`` and so on, and what is registered as ``metrics/<name>``.

    >>> from ember_ml.training import metrics
    >>> metrics.get("top_k_accuracy")
    TopKAccuracy(k=5)
    """
    if isinstance(metric, str):
        return registry.get("metrics", metric)
    if isinstance(metric, Measure):
        return metric
    raise TypeError(f"a metric is a name or an object of a class of metrics, not {metric!r}")

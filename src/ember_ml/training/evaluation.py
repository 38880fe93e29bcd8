"""Helpers of evaluation: the mode of a model, and metrics that are updated and read."""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.nn.modules.module import Module
from ember_ml.training.batches import split_batch
from ember_ml.training.precision import widen

__all__ = ["EvaluationMode", "read_results", "update_metrics"]


def update_metrics(metrics: dict[str, Any], batch: Any, prediction: Any) -> None:
    """Let metrics see the predictions for a batch beside its targets."""
    if not metrics:
        return
    if prediction is None:
        raise ValueError("metrics compare predictions with targets: return both, the loss and the predictions")
    _, target, weight = split_batch(batch)
    for metric in metrics.values():
        metric.update(target, widen(prediction), weight)


def read_results(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the results by name: numbers, and what is a tensor, such as a confusion matrix, as nested lists."""
    found = {name: metric.result() for name, metric in metrics.items()}
    return {
        name: float(value) if isinstance(value, int | float) else ops.to_numpy(value).tolist()
        for name, value in found.items()
    }


class EvaluationMode:
    """A block in which all modules of a model are in evaluation mode."""

    model: Module
    modes: list[tuple[Module, bool]]

    def __init__(self, model: Module) -> None:
        self.model = model

    def __enter__(self) -> None:
        self.modes = [(module, module.training) for _, module in self.model.named_modules()]
        self.model.eval()

    def __exit__(self, *exception: object) -> None:
        for module, mode in self.modes:
            module.training = mode

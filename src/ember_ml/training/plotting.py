"""Pictures of training."""

from __future__ import annotations

from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.training.history import History

__all__ = ["draw"]

_COLORS = {"numpy": "#4c72b0", "torch": "#dd8452", "mlx": "#55a868", "jax": "#c44e52"}


def draw(history: History, path: str | PathLike[str]) -> None:
    """Draw the curves of a history to an image file; steps are colored by the backend that computed them."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing a history needs Matplotlib: pip install 'ember-ml[plot]'") from error
    steps = history["loss"]
    others = [name for name in history if name != "loss"]
    figure = Figure(figsize=(8, 4.5 if not others else 7.5), layout="constrained")
    axes = figure.subplots(2 if others else 1, 1, squeeze=False)[:, 0]
    marks = [*history.switches, (len(steps), "")]
    for (start, name), (stop, _) in pairwise(marks):
        places = range(start, min(stop + 1, len(steps)))
        axes[0].plot(places, [steps[i] for i in places], color=_COLORS.get(name, "#555555"), linewidth=1, label=name)
        if start:
            axes[0].axvline(start, color="#bbbbbb", linewidth=1, linestyle="--", zorder=0)
    axes[0].set(xlabel="step", ylabel="loss")
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        unique = dict(zip(labels, handles, strict=True))
        axes[0].legend(unique.values(), unique.keys(), title="backend", frameon=False)
    for name in others:
        axes[1].plot(
            range(1, len(history[name].epochs) + 1), history[name].epochs, marker="o", markersize=3, label=name
        )
    if others:
        axes[1].set(xlabel="epoch")
        axes[1].legend(frameon=False)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)

"""Plots of a training history."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ember_ml.backend.built_in import BUILT_IN

if TYPE_CHECKING:
    from ember_ml.training.history import History

__all__ = ["figure_of"]

_PALETTE = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860")
_COLORS = dict(zip(BUILT_IN, _PALETTE, strict=False))
_OTHER_COLOR = "#555555"


def figure_of(history: History) -> Any:
    """Return the curves of a history as a Matplotlib figure: the loss by step above, the values by epoch below.

    Steps have the color of the backend that computed them, and a line where another one took over.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing a history needs Matplotlib: pip install 'ember-ml[plot]'") from error
    losses = [name for name in history if name in ("loss", "val_loss") and history[name].epochs]
    metrics = [name for name in history if name not in ("loss", "val_loss") and not _has_tables(history[name])]
    below = [names for names in (losses, metrics) if names] if len(history) > 1 else []
    figure = Figure(figsize=(8, 7 if below else 4), layout="constrained")
    axes = figure.subplot_mosaic(("s", "s;0", "ss;01")[len(below)])
    _draw_steps(axes["s"], history)
    for number, names in enumerate(below):
        _draw_epochs(axes[str(number)], history, names)
    for axis in axes.values():
        axis.spines[["top", "right"]].set_visible(False)
    # Matplotlib 3.10: notebooks show its figures only after pyplot has been set up for them
    figure._repr_png_ = lambda: _encode(figure)  # pyright: ignore[reportAttributeAccessIssue]
    return figure


def _encode(figure: Any) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100)
    return stream.getvalue()


def _has_tables(curve: Any) -> bool:
    """Return whether the values are tensors, such as confusion matrices, which no curve can show."""
    return bool(curve) and isinstance(curve[0], list)


def _draw_steps(axis: Any, history: History) -> None:
    steps, named = history["loss"], set()
    for (start, name), (stop, _) in pairwise([*history.switches, (len(steps), "")]):
        places = range(start, min(stop + 1, len(steps)))  # up to the first step of the next, so that no gap is left
        label = None if name in named else name
        named.add(name)
        axis.plot(places, [steps[i] for i in places], color=_COLORS.get(name, _OTHER_COLOR), linewidth=1.2, label=label)
        if start:
            axis.axvline(start, color="#999999", linewidth=1, linestyle="--", zorder=0)
    axis.set(xlabel="step", ylabel="loss", title="loss of each step")
    if named:
        axis.legend(title="computed by", frameon=False)


def _draw_epochs(axis: Any, history: History, names: list[str]) -> None:
    for name in names:
        values = history[name].epochs
        axis.plot(range(1, len(values) + 1), values, marker="o", markersize=3, label=name)
    axis.set(xlabel="epoch")
    axis.legend(frameon=False)

"""The history of a training run: losses and metrics, by step and by epoch."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

from ember_ml import ops
from ember_ml.training.state_checks import check_count, check_measures, check_number, check_numbers, check_table

__all__ = ["Curve", "History"]

_UNREAD = 1024


class Curve(list[Any]):
    """The values of a quantity: one for each step, or for each epoch where it is known at the end of epochs alone.

    They are numbers, or nested lists of a metric whose result is a tensor.
    """

    epochs: list[Any]
    """One value for each epoch: the mean over its steps, weighted by the sizes of their batches."""

    def __init__(self, values: Any = (), epochs: Any = ()) -> None:
        super().__init__(values)
        self.epochs = list(epochs)


class History(Mapping[str, Curve]):
    """Curves by name: ``history["loss"]`` has the loss of each step, ``history["loss"].epochs`` that of each epoch.

    So have the losses of the parts of a model that are trained against each other, ``history["generator_loss"]``.
    Metrics are known once an epoch, ``val_loss`` and other values of the validation whenever that was done.
    """

    def __init__(self) -> None:
        self._curves: dict[str, Curve] = {}
        # losses that nobody has read yet, and the sizes of their batches
        self._pending: list[tuple[dict[str, Any], int]] = []
        self._sums: dict[str, float] = {}  # of the losses in this epoch, each times the size of its batch
        self._weight = 0
        self.switches: list[tuple[int, str]] = []
        """Where another backend began to compute: the number of steps before, and its name."""
        self.times: list[float] = []
        """The seconds that each epoch took."""

    def add_step(self, loss: Any, size: int, backend: str, parts: Mapping[str, Any] | None = None) -> None:
        """Note the loss of a step, which need not be computed yet, and which backend computed it.

        ``parts`` are the losses of the parts of a model, by their names.
        """
        if not self.switches or self.switches[-1][1] != backend:
            self.flush()  # read the pending losses before another backend's are added
            self.switches.append((len(self["loss"]), backend))
        losses = {"loss": loss}
        if parts:
            losses |= {f"{name}_loss": x for name, x in parts.items()}
        self._pending.append((losses, size))
        if len(self._pending) >= _UNREAD:  # each is a tensor that takes memory
            self.flush()

    def begin_epoch(self) -> None:
        """Let the mean of the epoch begin with the next step."""
        self.flush()
        self._sums, self._weight = {}, 0

    def flush(self) -> None:
        """Read the losses that are still to be read."""
        self._curves.setdefault("loss", Curve())
        if not self._pending:
            return
        names = [(name, size) for losses, size in self._pending for name in losses]
        found = [ops.cast(x, "float32") for losses, _ in self._pending for x in losses.values()]
        numbers: list[float] = ops.to_numpy(ops.stack(found)).tolist()
        sizes = [size for _, size in self._pending]
        self._pending = []  # now that they have been read
        for value, (name, size) in zip(numbers, names, strict=True):
            self._curves.setdefault(name, Curve()).append(value)
            self._sums[name] = self._sums.get(name, 0.0) + value * size
        self._weight += sum(sizes)

    @property
    def last_loss(self) -> float | None:
        """The latest loss; reading it waits for it."""
        self.flush()
        curve = self["loss"]
        return curve[-1] if curve else None

    def end_epoch(self, values: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Record the values of an epoch; return them with the mean loss."""
        self.flush()
        means = {"loss": float("nan")}
        if self._weight:
            means = {name: total / self._weight for name, total in self._sums.items()}
        for name, mean in means.items():
            self._curves.setdefault(name, Curve()).epochs.append(mean)
        self._sums, self._weight = {}, 0
        self.add_values(values)
        for name, value in values.items():
            self._curves[name].epochs.append(value)
        self.times.append(seconds)
        return {**means, **values}

    def add_values(self, values: Mapping[str, Any]) -> None:
        """Add a value to each of these curves, such as those of a validation within an epoch."""
        for name, value in values.items():
            self._curves.setdefault(name, Curve()).append(value)

    def __getitem__(self, name: str) -> Curve:
        if self._pending:
            self.flush()
        if name == "loss":
            return self._curves.setdefault("loss", Curve())
        if name not in self._curves:
            raise KeyError(f"the history has no {name!r}; it has {', '.join(self._curves)}")
        return self._curves[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def state(self) -> dict[str, Any]:
        """Return the history as plain data, but for the losses of steps, which :meth:`tensors` returns."""
        self.flush()
        curves = {
            name: {"epochs": curve.epochs} if name == "loss" else {"values": list(curve), "epochs": curve.epochs}
            for name, curve in self._curves.items()
        }
        switches = [list(pair) for pair in self.switches]
        return {
            "curves": curves,
            "sums": self._sums,
            "weight": self._weight,
            "switches": switches,
            "times": self.times,
        }

    def tensors(self) -> dict[str, Any]:
        """Return the losses of all steps as a float32 vector, in which dtype they were read; nothing before the first.

        As text they would take five times the space, and most of the time of a checkpoint in a long run.
        """
        losses = self["loss"]
        return {"loss": ops.asarray(list(losses), dtype="float32")} if losses else {}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], tensors: Mapping[str, Any]) -> History:
        """Return the history whose :meth:`state` and :meth:`tensors` are these."""
        made = cls()
        check_table(state, "a history", "curves", "weight", "switches", "times")
        for name, curve in check_table(state["curves"], "curves").items():
            if name == "loss" and "values" not in check_table(curve, "the curve of losses"):
                values = _read_losses(tensors)
            else:
                check_table(curve, f"the curve {name!r:.60}", "values", "epochs")
                values = check_measures(curve, "values")
            made._curves[name] = Curve(values, check_measures(curve, "epochs"))
        made._weight = check_count(state, "weight")
        # checkpoints of before have the sum of one loss
        sums = check_table(state.get("sums", {"loss": state.get("sum", 0.0)}), "sums")
        made._sums = {name: check_number(sums, name) for name in sums}
        made.switches = [_read_switch(pair) for pair in state["switches"]]
        made.times = check_numbers(state, "times")
        return made

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Draw the curves, with the switches of the backend marked; needs Matplotlib.

        Return a figure, which notebooks show. With ``path`` it is written to that image file too.
        """
        from ember_ml.training.plotting import figure_of

        figure = figure_of(self)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure

    def __repr__(self) -> str:
        curves = ", ".join(f"{name}: {len(curve)} values" for name, curve in self._curves.items())
        return f"<History of {curves or 'nothing yet'}>"

    def _repr_html_(self) -> str:
        """Return a table for notebooks: a row for each epoch."""
        names = [name for name, curve in self.items() if curve.epochs]
        heads = "".join(f"<th>{html.escape(name)}</th>" for name in ("epoch", *names, "seconds"))
        rows = []
        for epoch, seconds in enumerate(self.times):
            cells = [str(epoch + 1), *(_cell(self[name].epochs, epoch) for name in names), f"{seconds:.2f}"]
            rows.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        return f"<table><tr>{heads}</tr>{''.join(rows)}</table>"


def _cell(values: list[Any], epoch: int) -> str:
    """Return the value of an epoch as text; "" where the curve has none, as a metric that was added later."""
    value = values[epoch] if epoch < len(values) else ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _read_losses(tensors: Mapping[str, Any]) -> list[float]:
    if "loss" not in tensors:
        return []
    losses = ops.to_numpy(tensors["loss"])
    if losses.ndim != 1 or losses.dtype != "float32":
        raise ValueError(f"the losses are a float32 vector, not {losses.dtype}{losses.shape}")
    return losses.tolist()


def _read_switch(pair: Any) -> tuple[int, str]:
    if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int or not isinstance(pair[1], str):
        raise ValueError(f"a switch is the number of steps before and the name of a backend, not {pair!r:.60}")
    return pair[0], pair[1]

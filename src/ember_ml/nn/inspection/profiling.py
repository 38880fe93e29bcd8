"""Where the time of a model goes: a table per layer, and a trace that browsers show."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from time import perf_counter
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.dispatch.declare import Op
from ember_ml.dispatch.watching import watch_ops
from ember_ml.nn.inspection.layer_watch import Layer, LayerWatch
from ember_ml.nn.inspection.reading import count_bytes, find_tensors, wait_for
from ember_ml.nn.modules.hooks import is_recorded, pass_gradients
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.summary import lay_out

__all__ = ["LayerTimes", "profile"]


class LayerTimes(NamedTuple):
    """What :class:`profile` knows of a layer: times are in seconds, those of the layers in it included."""

    calls: int
    forward: float
    backward: float
    output_bytes: int
    """The size of its largest output."""


class _Event(NamedTuple):
    name: str
    category: str
    start: float
    duration: float
    layer: str


class _Clock:
    """Seconds that have passed, less those in which it was stopped."""

    def __init__(self, passed: float = 0.0) -> None:
        self.lost, self.stopped = perf_counter() - passed, 0.0

    def now(self) -> float:
        return perf_counter() - self.lost

    def stop(self) -> float:
        """Stop the clock for what the profile itself does; return the time."""
        self.stopped = perf_counter()
        return self.stopped - self.lost

    def go_on(self) -> None:
        self.lost += perf_counter() - self.stopped


class profile(LayerWatch):
    """A block whose layers and ops are timed, forward and backward, on every backend.

    Each op is waited for where the backend is lazy or a device computes beside the program, so that its time is its
    own; the sum is more than the same steps take without the block. Functions that are compiled otherwise run op by op.
    The backward time of an op is that between the gradient before it and its own. The clock stands still while the
    profile does its own work.

    Printed it is the table of the layers; ``layers_by_path`` has a :class:`LayerTimes` for each of them, and
    :meth:`save_trace` writes all calls for ``chrome://tracing`` or ``ui.perfetto.dev``. Entered again, it goes on.

    Args:
        model: The module whose layers are timed.

    >>> import ember_ml
    >>> from ember_ml import nn, ops
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    >>> with ember_ml.profile(model) as found:
    ...     y = model(ops.ones((4, 2)))
    >>> {path: (times.calls, times.output_bytes) for path, times in found.layers_by_path.items()}
    {'': (1, 16), '0': (1, 48), '1': (1, 16)}
    >>> print(str(found).splitlines()[0])
    name                  kind        calls  forward ms  backward ms  share  output bytes
    """

    layers_by_path: dict[str, LayerTimes]
    seconds: float

    def __init__(self, model: Module) -> None:
        super().__init__(model)
        self.layers_by_path = {}
        self.seconds = 0.0
        """The time in the block."""
        self._events: list[_Event] = []
        self._outside = [0.0, 0.0]  # forward and backward, of ops in no layer
        self._last = 0.0
        self._clock = _Clock()

    def __enter__(self) -> profile:
        for path, _ in self.model.named_modules():
            self.layers_by_path.setdefault(path, LayerTimes(0, 0.0, 0.0, 0))
        super().__enter__()
        wait_for([])
        self._clock, self._last = _Clock(self.seconds), self.seconds
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.seconds = self._clock.now()

    def call_layer(
        self, module: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        layer, start = self.layers[-1], self._clock.now()
        result = forward(*args, **kwargs)
        tensors = find_tensors(result)
        with watch_ops(None):
            wait_for(tensors)
        end = self._last = self._clock.stop()
        self._events.append(_Event(layer.path or layer.kind, "layer", start, end - start, layer.path))
        known = self.layers_by_path[layer.path]
        size = max(known.output_bytes, count_bytes(tensors))
        self.layers_by_path[layer.path] = LayerTimes(known.calls + 1, known.forward + end - start, known.backward, size)
        self._clock.go_on()
        return result

    def call_op(self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._clock.stop()
        layers = tuple(self.layers)
        args, kwargs = self._time_gradients(op, layers, args, kwargs)
        self._clock.go_on()
        start = self._clock.now()
        result = function(*args, **kwargs)
        wait_for(find_tensors(result))
        end = self._last = self._clock.stop()
        path = layers[-1].path if layers else ""
        self._events.append(_Event(f"ops.{op.name}", "op", start, end - start, path))
        if not layers:
            self._outside[0] += end - start
        self._clock.go_on()
        return result

    def _time_gradients(
        self, op: Op, layers: tuple[Layer, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        leaves, structure = trees.flatten((args, kwargs))
        places = [place for place, x in enumerate(leaves) if is_recorded(x)]
        if not places:
            return args, kwargs

        def note(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
            wait_for([g for g in gradients if g is not None])
            end = self._clock.stop()
            spent, start = end - self._last, self._last
            self._last = end
            self._events.append(_Event(f"ops.{op.name}", "backward", start, spent, layers[-1].path if layers else ""))
            for path in {layer.path for layer in layers}:
                known = self.layers_by_path[path]
                self.layers_by_path[path] = known._replace(backward=known.backward + spent)
            if not layers:
                self._outside[1] += spent
            self._clock.go_on()
            return gradients

        passed = iter(pass_gradients([leaves[place] for place in places], note))
        return structure([next(passed) if place in places else x for place, x in enumerate(leaves)])

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("name", "kind", "calls", "forward ms", "backward ms", "share", "output bytes")]
        kinds = {path: type(module).__name__ for path, module in self.model.named_modules()}
        for path, known in self.layers_by_path.items():
            times = known.forward, known.backward
            rows.append((path, kinds.get(path, ""), f"{known.calls:,}", *self._cells(times), f"{known.output_bytes:,}"))
        rows.append(("outside of the model", "", "", *self._cells(tuple(self._outside)), ""))
        peak = active().memory_info(str(ops.get_default_device()))["peak"]
        known = "" if peak is None else f", {peak:,} bytes of memory at most"
        return "\n".join([*lay_out(rows, 2), f"{self.seconds * 1e3:,.3f} ms{known}"])

    def _cells(self, times: tuple[float, ...]) -> list[str]:
        share = sum(times) / self.seconds if self.seconds else 0.0
        return [*(f"{seconds * 1e3:,.3f}" for seconds in times), f"{share:.0%}"]

    def __repr__(self) -> str:
        return str(self)  # a notebook or the Python prompt shows the table

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write the calls of layers and ops in the format of Chrome's traces, which ``ui.perfetto.dev`` shows too."""
        events = [
            {
                "name": event.name,
                "cat": event.category,
                "ph": "X",
                "ts": event.start * 1e6,
                "dur": event.duration * 1e6,
                "pid": 1,
                "tid": 1,
                "args": {"layer": event.layer},
            }
            for event in sorted(self._events, key=lambda event: (event.start, -event.duration))
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)

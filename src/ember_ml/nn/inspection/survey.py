"""A model's layers with the shapes, the work and the memory of one forward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.dispatch.declare import Op
from ember_ml.dispatch.watching import watch_ops
from ember_ml.nn.inspection.flops import count_flops
from ember_ml.nn.inspection.layer_watch import LayerWatch
from ember_ml.nn.inspection.reading import count_bytes, find_tensors
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.summary import Summary, count_in_words, lay_out

__all__ = ["survey"]


def survey(model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Summary:
    """Return the table of :meth:`Module.summary` for these arguments, where a tuple of integers is a shape."""
    given = [ops.ones(x) if _is_shape(x) else x for x in args]
    named = {name: ops.ones(x) if _is_shape(x) else x for name, x in kwargs.items()}
    modes = [(module, module.training) for _, module in model.named_modules()]
    held = {name: variable.value for name, variable in model.named_buffers().items()}
    model.eval()
    try:
        if not model.trained_state().is_built:
            model(*given, **named)  # the layers that this makes are watched too
        with _Survey(model) as found:
            model(*given, **named)
    finally:
        for module, mode in modes:
            module.training = mode
        for name, variable in model.named_buffers().items():
            if name in held:
                variable.value = held[name]
    return found.tabulate()


def _is_shape(x: Any) -> bool:
    return type(x) is tuple and all(type(length) is int for length in x)


class _Survey(LayerWatch):
    """Notes what each layer gives and computes."""

    def __init__(self, model: Module) -> None:
        super().__init__(model)
        self.shapes: dict[str, str] = {}
        self.flops: dict[str, int] = {path: 0 for path, _ in model.named_modules()}
        self.bytes: dict[str, int] = dict(self.flops)

    def call_layer(
        self, module: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        path = self.layers[-1].path
        work = module.count_flops(*args, **kwargs)
        if work is None:
            result = forward(*args, **kwargs)
        else:
            with watch_ops(None):
                result = forward(*args, **kwargs)
            self._add(work)
        tensors = find_tensors(result)
        self.shapes[path] = ", ".join(str(tuple(x.shape)) for x in tensors)
        self.bytes[path] += count_bytes(tensors)
        return result

    def call_op(self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = function(*args, **kwargs)
        self._add(count_flops(op, args, kwargs, result))
        return result

    def _add(self, work: int) -> None:
        for path in {layer.path for layer in self.layers}:
            self.flops[path] += work

    def tabulate(self) -> Summary:
        """Return the table."""
        rows: list[tuple[str, ...]] = [("name", "kind", "output", "parameters", "FLOPs", "output bytes")]
        for path, module in self.model.named_modules():
            kind, shape = type(module).__name__, self.shapes.get(path, "not called")
            numbers = module.num_parameters, self.flops[path], self.bytes[path]
            rows.append((path, kind, shape, *(f"{number:,}" for number in numbers)))
        variables = self.model.named_variables().values()
        trained = sum(parameter.size for parameter in self.model.trainable().values())
        size = sum(variable.nbytes for variable in variables)
        parts = count_in_words(self.model), f"{trained:,} trainable", f"{size:,} bytes", f"{self.flops['']:,} FLOPs"
        return Summary("\n".join([*lay_out(rows, 3), ", ".join(parts)]))

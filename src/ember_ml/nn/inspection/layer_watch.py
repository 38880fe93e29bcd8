"""Watch the layers and ops of a model inside a block: the base of what looks inside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

from ember_ml.backend.selection import watcher_here
from ember_ml.dispatch.declare import Op
from ember_ml.dispatch.watching import watch_ops
from ember_ml.nn.modules.hooks import add_hook
from ember_ml.nn.modules.module import Module

__all__ = ["Layer", "LayerWatch"]


class Layer(NamedTuple):
    """A module inside the model that is watched: its path, which is empty for the model itself, and its class."""

    path: str
    kind: str

    def __str__(self) -> str:
        return f"{self.path} ({self.kind})" if self.path else self.kind


class LayerWatch:
    """A block in which each call of a layer and of an op, in this thread or task, goes through a method of its own.

    Subclasses define :meth:`call_layer` and :meth:`call_op`, which return the result of the call. ``layers`` has the
    layers that are being called, the innermost one last. Compiled functions run as they are, and a backward pass is not
    watched.
    """

    layers: list[Layer]
    model: Module

    def __init__(self, model: Module) -> None:
        if not isinstance(model, Module):
            raise TypeError(f"{type(self).__name__} takes a module, not {type(model).__name__}")
        self.model = model
        self.layers = []
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as ending:
            for path, module in self.model.named_modules():
                ending.enter_context(add_hook(module, "around", self._enter_layer(Layer(path, type(module).__name__))))
            ending.enter_context(watch_ops(self.call_op))
            self._ending = ending.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._ending.close()

    def _enter_layer(self, layer: Layer) -> Callable[..., Any]:
        def around(module: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            watcher = watcher_here()
            if getattr(watcher, "__self__", None) is not self:  # a call from another thread, or from another block
                return forward(*args, **kwargs)
            self.layers.append(layer)
            try:
                return self.call_layer(module, forward, args, kwargs)
            finally:
                self.layers.pop()

        return around

    def call_layer(
        self, module: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the result of a layer, which is the last of ``layers``."""
        return forward(*args, **kwargs)

    def call_op(self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of an op."""
        return function(*args, **kwargs)

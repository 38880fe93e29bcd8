"""Find the layer and op where NaN begins, in the forward or the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from ember_ml import ops
from ember_ml.core import trees
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import Op
from ember_ml.dispatch.watching import watch_ops
from ember_ml.errors import NaNFound
from ember_ml.nn.inspection.layer_watch import Layer, LayerWatch
from ember_ml.nn.inspection.reading import is_number, read, size_of
from ember_ml.nn.modules.hooks import is_recorded, pass_gradients
from ember_ml.nn.modules.module import Module

__all__ = ["find_nan"]

_FROM_DATA = ("conversion", "creation")
"""Families of ops whose NaN the program itself has put there: the op that is given it is named."""


class find_nan(LayerWatch):
    """A block in which the first op whose result has NaN, or whose gradient is not finite, raises ``NaNFound``.

    The error names the layer, the op and the pass, ``forward`` or ``backward``, on every backend, and shows the range
    of the op's arguments. A parameter that has NaN already is named when the block begins. In the forward pass infinity
    is allowed, as masks need it. An op whose NaN ``ops.where`` would hide is named too: its gradient would be NaN.

    Every op waits for its result and checks it, and compiled functions run as they are: it is for finding an error, not
    for training. Operators of native tensors are no ops; what they compute is checked where a layer returns it.

    Args:
        model: The module whose layers are named.
        backward: Whether gradients are checked too.

    >>> import ember_ml
    >>> from ember_ml import nn, ops
    >>> class Root(nn.Module):
    ...     def forward(self, x):
    ...         return ops.sqrt(x)
    >>> model = nn.Sequential(nn.Identity(), Root())
    >>> with ember_ml.find_nan(model):
    ...     y = model(ops.array([4.0, -1.0]))
    Traceback (most recent call last):
    ember_ml.errors.NaNFound: forward: ops.sqrt in 1 (Root) gave NaN in 1 of 2 elements; x: float32(2,) from -1 to 4
    >>> with ember_ml.find_nan(model):
    ...     g = ops.grad(lambda x: ops.sum(model(x)))(ops.array([4.0, 0.0]))
    Traceback (most recent call last):
    ember_ml.errors.NaNFound: backward: the gradient of ops.sqrt in 1 (Root) by x is not finite in 1 of 2 elements; ...
    """

    checks_backward: bool

    def __init__(self, model: Module, backward: bool = True) -> None:
        super().__init__(model)
        self.checks_backward = backward

    def __enter__(self) -> Self:
        for name, variable in self.model.named_variables().items():
            found = _count(ops.isnan, variable.value)
            if found:
                text = f"{name} has NaN in {found} of {variable.size} elements before anything is computed"
                raise NaNFound(text, "before", name.rpartition(".")[0], None)
        return super().__enter__()

    def call_layer(
        self, module: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        result = forward(*args, **kwargs)
        with watch_ops(None):
            found = sum(_count(ops.isnan, x) for x in trees.flatten(result)[0])
            if found:  # no op in it has given that
                layer = self.layers[-1]
                given = "".join(f"; argument {n}: {_describe(x)}" for n, x in enumerate(args) if is_number(x))
                what = f"forward: {layer} gave NaN in {found} elements, and no op did{given}"
                raise NaNFound(what, "forward", layer.path, None)
        return result

    def call_op(self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        layer = self.layers[-1] if self.layers else None
        if self.checks_backward:
            args, kwargs = self._watch_gradients(op, layer, args, kwargs)
        result = function(*args, **kwargs)
        if self.checks_backward:
            result = self._watch_result(op, layer, result)
        leaves = trees.flatten(result)[0]
        found = 0 if op.family in _FROM_DATA else sum(_count(ops.isnan, x) for x in leaves)
        if found:
            size = sum(size_of(x) for x in leaves if is_number(x))
            given = list(_tensors(op, args, kwargs))
            was = [name for name, x in given if _count(ops.isnan, x)]
            what = f"was given NaN in {', '.join(was)}" if was else f"gave NaN in {found} of {size} elements"
            raise NaNFound(
                f"forward: {_place(op, layer)} {what}{_describe_all(given)}", "forward", _path(layer), op.name
            )
        return result

    def _watch_gradients(
        self, op: Op, layer: Layer | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call; where gradients go back through them, they are checked."""
        leaves, structure = trees.flatten((args, kwargs))
        places = [place for place, x in enumerate(leaves) if is_recorded(x)]
        if not places:
            return args, kwargs
        given = list(_tensors(op, args, kwargs))
        names = [next((name for name, y in given if y is leaves[place]), "an argument") for place in places]

        def check(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
            for name, gradient in zip(names, gradients, strict=True):
                found = _count(_is_not_finite, gradient)
                if found:
                    what = f"by {name} is not finite in {found} of {size_of(gradient)} elements"
                    text = f"backward: the gradient of {_place(op, layer)} {what}{_describe_all(given)}"
                    raise NaNFound(text, "backward", _path(layer), op.name)
            return gradients

        passed = iter(pass_gradients([leaves[place] for place in places], check))
        return structure([next(passed) if place in places else x for place, x in enumerate(leaves)])

    def _watch_result(self, op: Op, layer: Layer | None, result: Any) -> Any:
        """Return what an op gave; the gradients that come to it from what is no op are checked."""
        leaves, structure = trees.flatten(result)
        places = [place for place, x in enumerate(leaves) if is_recorded(x)]
        if not places:
            return result

        def check(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
            found = sum(_count(_is_not_finite, x) for x in gradients)
            if found:
                what = f"is not finite in {found} elements, and no op after it gave that"
                text = f"backward: the gradient of what {_place(op, layer)} gave {what}"
                raise NaNFound(text, "backward", _path(layer), op.name)
            return gradients

        passed = iter(pass_gradients([leaves[place] for place in places], check))
        return structure([next(passed) if place in places else x for place, x in enumerate(leaves)])


def _place(op: Op, layer: Layer | None) -> str:
    return f"ops.{op.name} outside of the model" if layer is None else f"ops.{op.name} in {layer}"


def _path(layer: Layer | None) -> str | None:
    return None if layer is None else layer.path


def _tensors(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of numbers among the arguments of a call, with the names of the parameters."""
    last = len(op.parameters) - 1
    named = [(op.parameters[min(place, last)], x) for place, x in enumerate(args)]
    for name, value in (*named, *kwargs.items()):
        for leaf in trees.flatten(value)[0]:
            if is_number(leaf):
                yield name, leaf


def _is_not_finite(x: Any) -> Any:
    return ops.logical_not(ops.isfinite(x))


def _count(test: Callable[[Any], Any], x: Any) -> int:
    """Return for how many elements of ``x`` the test is true; 0 where it has no numbers, or none that can be read."""
    if not is_number(x):
        return 0
    native = read(x)
    return 0 if native is None else int(ops.item(ops.sum(ops.cast(test(native), "int64"))))


def _describe(x: Any) -> str:
    """Return dtype, shape and range of a tensor."""
    text = f"{ops.dtype(x)}{tuple(x.shape)}"
    native = read(x)
    if native is None or not size_of(x) or as_dtype(native.dtype).kind == "complex":
        return text
    nan = ops.isnan(native)
    if ops.item(ops.all(nan)):
        return f"{text}, all NaN"
    least = ops.item(ops.min(ops.where(nan, float("inf"), native)))
    largest = ops.item(ops.max(ops.where(nan, float("-inf"), native)))
    return f"{text} from {least:.6g} to {largest:.6g}" + (", with NaN" if ops.item(ops.any(nan)) else "")


def _describe_all(given: list[tuple[str, Any]]) -> str:
    return "".join(f"; {name}: {_describe(x)}" for name, x in given)

"""Gradients on MLX, by its own transforms of functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from ember_ml.backend.mlx import graph_probe
from ember_ml.core import dtypes as dt

__all__ = [
    "checkpoint",
    "custom",
    "is_differentiating",
    "jacobian",
    "pullback",
    "pushforward",
    "records_apart",
    "refuses_captured",
    "ruled",
    "ruled_inside_gradients",
    "sees_arguments_only",
    "stop_gradient",
    "unrecorded",
    "value_and_gradients",
    "variable",
    "vmap",
    "without_gradient",
]

stop_gradient = mx.stop_gradient
sees_arguments_only = True
refuses_captured = False
variable = unrecorded = None

_NEVER = """
    cbrt cholesky det eig eigh eigvals eigvalsh inv lstsq lu_factor pinv qr slogdet solve solve_triangular svd svdvals
"""
_OF_REAL_NUMBERS_ONLY = "abs sign"
# MLX 0.32: at ties, at bounds of clip and at multiples of a divisor the gradient goes to one side, to other elements
# or is lost; angles and powers of 0 and products with zeros have NaN; the series of special functions have 0 or NaN
# where two of them meet
_NOT_EVERYWHERE = """
    arctan2 clip cumprod digamma erf erfc fmax fmin fmod i0 index_update lgamma maximum median minimum mod power
    put_along_axis quantile segment_max segment_min
"""
_OF_SHORT_NUMBERS_ONLY = "cos sin sinc tan"  # MLX 0.32: in float64 the derivatives have the accuracy of float32

without_gradient: dict[str, frozenset[dt.EmberDType]] = {
    **dict.fromkeys(_NEVER.split(), dt.ALL),
    **dict.fromkeys(_OF_REAL_NUMBERS_ONLY.split(), dt.COMPLEX),
    **dict.fromkeys(_NOT_EVERYWHERE.split(), dt.FLOATS | dt.COMPLEX),
    **dict.fromkeys(_OF_SHORT_NUMBERS_ONLY.split(), frozenset({dt.float64})),
}
"""The ops and dtypes of which MLX has no gradient, or a wrong one, or NaN at 0 where there is one."""

records_apart = False
ruled_inside_gradients = frozenset((*_NOT_EVERYWHERE.split(), *_OF_SHORT_NUMBERS_ONLY.split()))


def is_differentiating() -> bool:
    """Whether this thread computes inside of a gradient."""
    return bool(graph_probe.variables())


def value_and_gradients(
    function: Callable[..., Any], leaves: Sequence[mx.array]
) -> tuple[mx.array, list[Any], Sequence[mx.array]]:
    def flat(*variables: mx.array) -> tuple[Any, ...]:
        value, rest = function(*variables)
        return (value, *rest)

    flat = graph_probe.recorded(flat)
    (value, *rest), gradients = mx.value_and_grad(flat, argnums=list(range(len(leaves))))(*leaves)
    return value, rest, [gradients] if isinstance(gradients, mx.array) else gradients


def pullback(
    function: Callable[..., Any], leaves: Sequence[mx.array]
) -> tuple[list[mx.array], Callable[[Sequence[mx.array]], Sequence[mx.array]]]:
    """Return the outputs of ``function`` and its vjp with respect to the leaves."""
    outputs = function(*leaves)
    again = _apart(graph_probe.recorded(function))

    def pull(gradients: Sequence[mx.array]) -> Sequence[mx.array]:
        return mx.vjp(again, list(leaves), list(gradients))[1]

    return outputs, pull


def _apart(function: Callable[..., Any]) -> Callable[..., list[mx.array]]:
    """Wrap ``function`` to return a separate array for every output."""
    # MLX 0.32: of outputs that are the same array, only the first is differentiated

    def apart(*variables: mx.array) -> list[mx.array]:
        return [y if not place else mx.contiguous(y) for place, y in enumerate(function(*variables))]

    return apart


def pushforward(
    function: Callable[..., Any], leaves: Sequence[mx.array], tangents: Sequence[mx.array]
) -> tuple[list[mx.array], list[mx.array]]:
    """Return the outputs and their derivatives along ``tangents``: the vjp is linear, and its own vjp is the jvp."""
    # MLX 0.32: has fewer jvps than vjps, and differentiates a custom function forward by what is inside it
    outputs, pull = pullback(function, leaves)
    seeds = [mx.zeros_like(y) for y in outputs]
    return outputs, mx.vjp(_apart(lambda *gradients: pull(gradients)), seeds, list(tangents))[1]


def jacobian(function: Callable[..., Any], leaves: Sequence[mx.array]) -> list[list[mx.array]]:
    """Return for each output the derivatives with respect to each leaf, of shape output + leaf."""
    outputs, found = function(*leaves), []
    function = _apart(graph_probe.recorded(function))
    for place, output in enumerate(outputs):
        basis = mx.eye(output.size, dtype=output.dtype).reshape(output.size, *output.shape)
        rows = [_row(function, leaves, outputs, place, basis[index]) for index in range(output.size)]
        columns = zip(*rows, strict=True) if rows else [()] * len(leaves)
        found.append([_stack_rows(column, output, x) for column, x in zip(columns, leaves, strict=True)])
    return found


def _stack_rows(rows: Sequence[mx.array], output: mx.array, x: mx.array) -> mx.array:
    shape = (*output.shape, *x.shape)
    return mx.stack(list(rows)).reshape(shape) if rows else mx.zeros(shape, x.dtype)


def _row(
    function: Callable[..., Any], leaves: Sequence[mx.array], outputs: Sequence[mx.array], place: int, seed: mx.array
) -> list[mx.array]:
    seeds = [seed if index == place else mx.zeros_like(y) for index, y in enumerate(outputs)]
    return mx.vjp(function, list(leaves), seeds)[1]


def vmap(
    function: Callable[..., Any], leaves: Sequence[mx.array], axes: Sequence[int | None], out_axis: int
) -> list[mx.array]:
    mapped = next(place for place, axis in enumerate(axes) if axis is not None)
    # MLX 0.32: several functions, of which expand_dims is one, lose a mapped axis that is not the first
    leaves = [x if axis is None else mx.moveaxis(x, axis, 0) for x, axis in zip(leaves, axes, strict=True)]
    in_axes = tuple(None if axis is None else 0 for axis in axes)

    def with_a_sample(*arrays: mx.array) -> list[mx.array]:
        # MLX 0.32: refuses a function none of whose outputs depends on what is mapped
        sample = arrays[mapped]
        return [*function(*arrays), mx.reshape(sample, (*(1,) * abs(out_axis), *sample.shape))]

    with graph_probe.vectorizing():
        return mx.vmap(with_a_sample, in_axes, out_axis)(*leaves)[:-1]


class _ClosesOver(Exception):
    pass


def checkpoint(function: Callable[..., Any], leaves: Sequence[Any], is_complete: bool) -> Any:
    """Return the result of ``function``; gradients reach the leaves only, and the caller says if that suffices."""
    if graph_probe.is_vectorizing():  # MLX 0.32: cannot vectorize depends
        return function(*leaves)
    variables = () if is_complete else graph_probe.variables()

    def pure(*arrays: mx.array) -> Any:
        nonlocal variables
        if not variables:
            return function(*arrays)
        # views, to distinguish them from the same arrays where the function captures them
        views = [mx.squeeze(mx.expand_dims(x, 0), 0) for x in arrays]
        outputs = function(*views)
        if graph_probe.depends(outputs, variables, views):
            raise _ClosesOver
        variables = ()  # no check of the second run
        return outputs

    # the second run is inside of a gradient too, though the function around it has returned
    run = graph_probe.recorded(pure) if graph_probe.variables() else pure
    try:
        return mx.checkpoint(run)(*leaves)
    except _ClosesOver:
        warnings.warn(
            "MLX cannot compute this checkpointed function again: it reads tensors from somewhere else than its "
            "arguments and the variables around it. Its gradient is right, and no memory is saved; pass it the tensors",
            stacklevel=3,
        )
        return function(*leaves)


def custom(function: Callable[..., Any], leaves: Sequence[mx.array]) -> Sequence[mx.array]:
    """Return the outputs of ``function``, which also returns its own vjp."""

    @mx.custom_function
    def outputs_of(*variables: mx.array) -> Any:
        return list(function(*variables)[0])

    @outputs_of.vjp
    def _(primals: Any, cotangents: Any, outputs: Any) -> Any:
        primals = primals if isinstance(primals, list | tuple) else (primals,)
        gradients = cotangents if isinstance(cotangents, list | tuple) else (cotangents,)
        return tuple(function(*primals)[1](gradients))

    @outputs_of.jvp
    def _(primals: Any, tangents: Any) -> Any:
        """Transpose the vjp, which is linear, to push the tangents forward."""
        primals = primals if isinstance(primals, list | tuple) else (primals,)
        tangents = tangents if isinstance(tangents, list | tuple) else (tangents,)
        outputs, pull = function(*primals)
        zeros = [mx.zeros_like(y) for y in outputs]
        return mx.vjp(lambda *gradients: list(pull(gradients)), zeros, list(tangents))[1]

    outputs: Any = outputs_of(*leaves)
    return outputs


def ruled(
    function: Callable[..., Any], pull: Callable[[Any, Any, Any], Sequence[mx.array]], leaves: Sequence[mx.array]
) -> Any:
    """Return the list that ``function`` returns; ``pull`` is its vjp with respect to the leaves."""
    given = mx.custom_function(function)

    @given.vjp
    def _(primals: Any, cotangents: Any, outputs: Any) -> Any:
        return tuple(pull(primals if isinstance(primals, list | tuple) else (primals,), cotangents, outputs))

    return given(*leaves)

"""Exchange tensors among processes that compute together: every one makes the same calls, in the same order.

Each function takes a native or portable tensor, or what becomes one, and gives the same kind. In a program of one
process they are what they would be for a group of one.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.host_arrays import keep_gradient
from ember_ml.backend.selection import active
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.dispatch.arguments import bring
from ember_ml.distributed.groups import group
from ember_ml.distributed.heartbeat import waiting
from ember_ml.errors import EmberError, PeerLost
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.typing import DTypeLike, Tensor, TensorLike

__all__ = [
    "all_gather",
    "all_reduce",
    "average",
    "barrier",
    "begun_average",
    "broadcast",
    "finish",
    "recv",
    "reduce_scatter",
    "send",
]

_REDUCTIONS = ("sum", "mean", "max", "min")
_COMPARES = os.environ.get("EMBER_ML_CHECK_COLLECTIVES", "") not in ("", "0")
"""Whether the ranks compare each call before they make it."""
_DESCRIPTION = 160
"""Bytes of the description of a call that are compared."""


def all_reduce(x: TensorLike, op: str = "sum") -> Tensor:
    """Return the sum of the ranks' tensors, element by element, on every rank; or their ``mean``, ``max`` or ``min``.

    Half precision is summed in float32. Bools have a max and min only, complex numbers none; integers no mean.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.all_reduce(ops.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    return _on_native("all_reduce", x, lambda native: _reduce(native, op), op)


def all_gather(x: TensorLike) -> Tensor:
    """The tensors of all ranks joined along the first axis, in the order of the ranks; a 0-d tensor gives a vector.

    They must have equal shapes.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.all_gather(ops.array(2.0))).tolist()
    [2.0]
    """

    def gathered(native: Any) -> Any:
        found = group()
        if found.size == 1:
            return native if len(native.shape) else ops.reshape(native, (1,))
        shape = tuple(native.shape)
        if 0 in shape:
            return ops.zeros((shape[0] * found.size, *shape[1:]), dtype=active().dtype_of(native))
        return found.all_gather(native)

    return _on_native("all_gather", x, gathered, "")


def reduce_scatter(x: TensorLike, op: str = "sum") -> Tensor:
    """This rank's part, along the first axis, of the sum or ``mean`` of the ranks' tensors.

    The length of the first axis must be a multiple of the number of ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.reduce_scatter(ops.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    if op not in ("sum", "mean"):
        raise ValueError(f"reduce_scatter computes a sum or mean, not {op!r}")

    def scattered(native: Any) -> Any:
        found, shape = group(), tuple(native.shape)
        if not shape or shape[0] % found.size:
            raise ValueError(f"the first axis of {shape} cannot be split into {found.size} equal parts")
        dtype = _check_reduction(active().dtype_of(native), op)
        if found.size == 1 or 0 in shape:
            return native[: shape[0] // found.size]
        part = found.reduce_scatter(ops.cast(native, _computed_in(dtype)))
        return ops.cast(ops.divide(part, found.size) if op == "mean" else part, dtype)

    return _on_native("reduce_scatter", x, scattered, op)


def broadcast(x: TensorLike, source: int = 0) -> Tensor:
    """Return the tensor of the rank ``source``, on every rank; the others' tensors must have its shape and dtype.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.broadcast(ops.array([1, 2]))).tolist()
    [1, 2]
    """
    _check_rank(source)
    return _on_native(
        "broadcast",
        x,
        lambda native: native if _is_trivial(native) else group().broadcast(native, source),
        f"{source=}",
    )


def send(x: TensorLike, to: int) -> None:
    """Send a tensor to the rank ``to``, which must receive it by :func:`recv`.

    MLX's ring and JAX connect neighbours only: the ranks before and after this one, and the first with the last.
    """
    _check_other(to)

    def sent(native: Any) -> Any:
        if 0 not in tuple(native.shape):
            group().send(native, to)
        return native

    _on_native("send", x, sent)


def recv(shape: Sequence[int], dtype: DTypeLike, source: int) -> Tensor:
    """The native tensor that the rank ``source`` sends by :func:`send`, whose shape and dtype must be those given."""
    _check_other(source)
    wanted, lengths = as_dtype(dtype), tuple(operator.index(length) for length in shape)
    if 0 in lengths:
        return ops.zeros(lengths, dtype=wanted)
    return _run("recv", lambda: group().receive(lengths, active().dtypes[wanted], source))


def barrier() -> None:
    """Return when every rank has called this."""
    if group().size > 1:
        if _COMPARES:
            _compare_calls("barrier()")
        _run("barrier", group().barrier)


def average(tensors: Sequence[Tensor], weight: float | None = None) -> list[Tensor]:
    """Return the means over the ranks of each of ``tensors``, native and floating-point: as of gradients.

    They travel in large messages, of which some are under way while others are prepared. With ``weight``, a number that
    may differ from rank to rank, they are weighted means, and tensors of weight 0 do not count, whatever they hold.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.average([ops.array([1.0, 2.0])])[0]).tolist()
    [1.0, 2.0]
    """
    found = begun_average(tensors, weight)
    finish(found)
    return found


def begun_average(tensors: Sequence[Tensor], weight: float | None = None) -> list[Tensor]:
    """Return what :func:`average` gives, perhaps yet to be computed: :func:`finish` must follow on every rank."""
    found = group()
    if found.size == 1:
        return list(tensors)
    backend = active()
    _check_traced(backend, "average")
    if weight is not None and not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"a weight is a number from 0 up, not {weight!r}")
    own = [_check_reduction(backend.dtype_of(x), "mean") for x in tensors]
    wide = [ops.cast(x, "float32") if dtype in dt.HALVES else x for x, dtype in zip(tensors, own, strict=True)]
    summed = _run("average", lambda: found.mean(wide, weight))
    return [ops.cast(x, dtype) if dtype in dt.HALVES else x for x, dtype in zip(summed, own, strict=True)]


def finish(tensors: Sequence[Tensor]) -> None:
    """Compute tensors that depend on others of :func:`begun_average`: on every rank the same ones, at the same time."""
    if group().is_lazy:
        _run("average", lambda: group().finish(tensors))


def _reduce(native: Any, op: str) -> Any:
    if op not in _REDUCTIONS:
        raise ValueError(f"all_reduce computes one of {', '.join(_REDUCTIONS)}, not {op!r}")
    dtype = _check_reduction(active().dtype_of(native), op)
    if _is_trivial(native):
        return native
    found = group()
    result = found.all_reduce(ops.cast(native, _computed_in(dtype)), "sum" if op == "mean" else op)
    return ops.cast(ops.divide(result, found.size) if op == "mean" else result, dtype)


def _check_reduction(dtype: EmberDType, op: str) -> EmberDType:
    allowed = {"sum": ("int", "uint", "float", "complex"), "mean": ("float", "complex")}
    if dtype.kind not in allowed.get(op, ("int", "uint", "float", "bool")):
        raise TypeError(f"there is no {op} of {dtype} over the ranks; cast it first")
    return dtype


def _computed_in(dtype: EmberDType) -> EmberDType:
    return dt.float32 if dtype in dt.HALVES else dt.uint8 if dtype is dt.bool_ else dtype


def _is_trivial(native: Any) -> bool:
    return group().size == 1 or 0 in tuple(native.shape)


def _on_native(what: str, x: Any, function: Callable[[Any], Any], compared: str | None = None) -> Any:
    """Return what ``function`` gives for ``x`` as a native tensor, in the kind of ``x``.

    ``compared`` are the settings that all ranks must have in common, None where not all of them make the call.
    """
    backend = active()
    _check_traced(backend, what)
    native = bring(x._array if type(x) is EmberTensor else x, backend)
    keep_gradient(native, backend)
    if _COMPARES and compared is not None and group().size > 1:
        settings = f", {compared}" if compared else ""
        _compare_calls(f"{what}({backend.dtype_of(native)}{tuple(native.shape)}{settings})")
    result = _run(what, lambda: function(native))
    return wrap(result, backend) if type(x) is EmberTensor else result


def _run(what: str, function: Callable[[], Any]) -> Any:
    """Return what ``function`` gives; a failure of the engine says on which rank and why."""
    try:
        with waiting(what):
            return function()
    except RuntimeError as error:
        if isinstance(error, EmberError | NotImplementedError):
            raise
        found = group()
        raise PeerLost(
            f"{what} failed on rank {found.rank} of {found.size} over {found.engine}: another rank has probably ended "
            f"or stalls, and the one that failed first says why ({error})"
        ) from error


def _compare_calls(call: str) -> None:
    """Tell the other ranks what this one is about to call, and raise where one is about to call something else."""
    own = ops.array([*call.encode()[:_DESCRIPTION].ljust(_DESCRIPTION)], dtype="uint8")
    found = ops.reshape(_run("the comparison of calls", lambda: group().all_gather(own)), (group().size, -1))
    calls = [bytes(row).decode(errors="replace").rstrip() for row in ops.to_numpy(found).tolist()]
    if len(set(calls)) > 1:
        told = "; ".join(f"rank {rank} calls {theirs}" for rank, theirs in enumerate(calls))
        raise ValueError(f"the ranks make different calls: {told}")


def _check_traced(backend: Backend, what: str) -> None:
    if backend.is_tracing():
        raise TypeError(f"{what} cannot be a part of a compiled function; compile what comes before and after it")


def _check_rank(rank: int) -> None:
    if not 0 <= operator.index(rank) < group().size:
        raise ValueError(f"there is no rank {rank}: the ranks are 0 to {group().size - 1}")


def _check_other(rank: int) -> None:
    _check_rank(rank)
    if rank == group().rank:
        raise ValueError(f"rank {rank} cannot send to itself")

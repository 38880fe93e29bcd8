"""Exchange tensors among processes that compute together: every one makes the same calls, in the same order.

Each function takes a native or portable tensor, or what becomes one, and gives the same kind. In a program of one
process they are what they would be for a group of one. Those with a ``group`` of :func:`make_group` exchange among its
members alone; their ranks are those in the group.

Sums, means and what only moves elements are differentiable, where the function that is differentiated is the sum of
what all ranks compute: the gradients of a collective are exchanged by another one, so every rank must compute them.
:func:`begin` does not wait: what it gives has the result when it is asked for.
"""

from __future__ import annotations

import math
import operator
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec

from ember_ml import ops
from ember_ml.backend.host_arrays import keep_gradient
from ember_ml.backend.processes.group import Group, Wait
from ember_ml.backend.selection import active
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.dispatch.arguments import bring
from ember_ml.distributed.calls import (
    Call,
    Pending,
    begin_call,
    check_traced,
    compare_calls,
    compare_pair,
    exchange,
    run_call,
)
from ember_ml.distributed.groups import Single
from ember_ml.distributed.groups import group as all_ranks
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.typing import DTypeLike, Tensor, TensorLike

__all__ = [
    "Pending",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "average",
    "barrier",
    "begin",
    "begun_average",
    "broadcast",
    "finish",
    "make_group",
    "recv",
    "reduce_scatter",
    "send",
]

_REDUCTIONS = ("sum", "mean", "max", "min")
_Settings = ParamSpec("_Settings")


def make_group(members: Sequence[Sequence[int]]) -> Group:
    """Return the group of this process: that of ``members``, lists of ranks, which has its rank.

    Each rank is in one list, and every process makes the call with the same lists; the ranks of a group count from 0,
    in their order among all. On MLX a process can be in one ring only: such groups need MPI or PyTorch, whose engine
    takes its tensors through the host's memory.

    >>> from ember_ml.distributed import collectives
    >>> collectives.make_group([[0]]).size
    1
    """
    found = all_ranks()
    lists = [sorted(operator.index(rank) for rank in ranks) for ranks in members]
    if sorted(rank for ranks in lists for rank in ranks) != list(range(found.size)):
        raise ValueError(f"groups have each of the ranks 0 to {found.size - 1} once, and these are {lists}")
    compare_calls(lambda: f"make_group({lists})", found)
    if lists == [list(range(found.size))]:
        return found
    if len(lists) == found.size:
        return Single("none", 0, 1)
    return exchange("make_group", lambda: found.subgroup(lists), found)


def begin(
    collective: Callable[Concatenate[TensorLike, _Settings], Tensor],
    x: TensorLike,
    *args: _Settings.args,
    **kwargs: _Settings.kwargs,
) -> Pending:
    """Begin a collective of ``x`` and return at once; ``wait()`` gives its result.

    Several can be under way: every rank begins them in the same order, and may wait for them in any. Until then ``x``
    must not be changed. A result is not differentiable.

    Args:
        collective: One of :func:`all_reduce`, :func:`all_gather`, :func:`reduce_scatter`, :func:`all_to_all` and
            :func:`broadcast`.
        x: The tensor of this rank.
        args: The other arguments of the collective.
        kwargs: Those that are given by name.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> pending = collectives.begin(collectives.all_reduce, ops.array([1.0, 2.0]), "mean")
    >>> ops.to_numpy(pending.wait()).tolist()
    [1.0, 2.0]
    """
    make = _CALLS.get(collective)
    if make is None:
        names = ", ".join(known.__name__ for known in _CALLS)
        raise ValueError(f"one of {names} can be begun, not {getattr(collective, '__name__', collective)}")
    return begin_call(make(x, *args, **kwargs), x)


def all_reduce(x: TensorLike, op: str = "sum", group: Group | None = None) -> Tensor:
    """Return the sum of the ranks' tensors, element by element, on every rank; or their ``mean``, ``max`` or ``min``.

    Half precision is summed in float32. Bools have a max and min only, complex numbers none; integers no mean.
    ``group`` is one of :func:`make_group`; None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.all_reduce(ops.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    return run_call(_all_reduce(x, op, group), x)


def _all_reduce(x: TensorLike, op: str = "sum", group: Group | None = None) -> Call:
    found = group or all_ranks()
    pull = (lambda gradient: all_reduce(gradient, op, group)) if op in ("sum", "mean") else None
    return Call("all_reduce", found, lambda native: _begin_reduction(native, op, found), op, pull)


def all_gather(x: TensorLike, group: Group | None = None) -> Tensor:
    """The tensors of all ranks joined along the first axis, in the order of the ranks; a 0-d tensor gives a vector.

    They must have equal shapes. ``group`` is one of :func:`make_group`; None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.all_gather(ops.array(2.0))).tolist()
    [2.0]
    """
    return run_call(_all_gather(x, group), x)


def _all_gather(x: TensorLike, group: Group | None = None) -> Call:
    found = group or all_ranks()

    def gather(native: Any) -> Wait:
        shape = tuple(native.shape)
        if found.size == 1:
            return lambda: native if shape else ops.reshape(native, (1,))
        if 0 in shape:
            return lambda: ops.zeros((shape[0] * found.size, *shape[1:]), dtype=active().dtype_of(native))
        return found.begin_all_gather(native)

    def pull(gradient: Any) -> Any:
        return ops.reshape(reduce_scatter(gradient, group=group), ops.shape(x))

    return Call("all_gather", found, gather, "", pull)


def reduce_scatter(x: TensorLike, op: str = "sum", group: Group | None = None) -> Tensor:
    """This rank's part, along the first axis, of the sum or ``mean`` of the ranks' tensors.

    The length of the first axis must be a multiple of the number of ranks. ``group`` is one of :func:`make_group`;
    None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.reduce_scatter(ops.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    return run_call(_reduce_scatter(x, op, group), x)


def _reduce_scatter(x: TensorLike, op: str = "sum", group: Group | None = None) -> Call:
    if op not in ("sum", "mean"):
        raise ValueError(f"reduce_scatter computes a sum or mean, not {op!r}")
    found = group or all_ranks()

    def scatter(native: Any) -> Wait:
        shape = _check_even(native, found)
        dtype = _check_reduction(active().dtype_of(native), op)
        if found.size == 1 or 0 in shape:
            return lambda: native[: shape[0] // found.size]
        return _reduced(found.begin_reduce_scatter(ops.cast(native, _computed_in(dtype))), op, dtype, found)

    def pull(gradient: Any) -> Any:
        return all_gather(ops.divide(gradient, found.size) if op == "mean" else gradient, group)

    return Call("reduce_scatter", found, scatter, op, pull)


def all_to_all(x: TensorLike, group: Group | None = None) -> Tensor:
    """Send the k-th of equal parts along the first axis to rank k; return those of all ranks for this one, in order.

    The length of the first axis must be a multiple of the number of ranks. ``group`` is one of :func:`make_group`;
    None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.all_to_all(ops.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    return run_call(_all_to_all(x, group), x)


def _all_to_all(x: TensorLike, group: Group | None = None) -> Call:
    found = group or all_ranks()

    def send_parts(native: Any) -> Wait:
        shape = _check_even(native, found)
        return (lambda: native) if found.size == 1 or 0 in shape else found.begin_all_to_all(native)

    return Call("all_to_all", found, send_parts, "", lambda gradient: all_to_all(gradient, group))


def broadcast(x: TensorLike, source: int = 0, group: Group | None = None) -> Tensor:
    """Return the tensor of the rank ``source``, on every rank; the others' tensors must have its shape and dtype.

    ``group`` is one of :func:`make_group`; None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.broadcast(ops.array([1, 2]))).tolist()
    [1, 2]
    """
    return run_call(_broadcast(x, source, group), x)


def _broadcast(x: TensorLike, source: int = 0, group: Group | None = None) -> Call:
    found = group or all_ranks()
    _check_rank(source, found)

    def pull(gradient: Any) -> Any:
        total = all_reduce(gradient, group=group)
        return total if found.rank == source else ops.zeros_like(total)

    def send_all(native: Any) -> Wait:
        return (lambda: native) if _is_trivial(native, found) else found.begin_broadcast(native, source)

    return Call("broadcast", found, send_all, f"{source=}", pull)


_CALLS: dict[Callable[..., Tensor], Callable[..., Call]] = {
    all_reduce: _all_reduce,
    all_gather: _all_gather,
    reduce_scatter: _reduce_scatter,
    all_to_all: _all_to_all,
    broadcast: _broadcast,
}


def send(x: TensorLike, to: int) -> None:
    """Send a tensor to the rank ``to``, which must receive it by :func:`recv`.

    MLX's ring and JAX connect neighbours only: the ranks before and after this one, and the first with the last.
    """
    _check_other(to)
    backend, found = active(), all_ranks()
    check_traced(backend, "send")
    native = bring(x._array if type(x) is EmberTensor else x, backend)
    keep_gradient(native, backend)
    compare_pair(True, f"{backend.dtype_of(native)}{tuple(native.shape)}", to, found)
    if 0 not in tuple(native.shape):
        exchange("send", lambda: found.send(native, to), found)


def recv(shape: Sequence[int], dtype: DTypeLike, source: int) -> Tensor:
    """The native tensor that the rank ``source`` sends by :func:`send`, whose shape and dtype must be those given."""
    _check_other(source)
    wanted, lengths = as_dtype(dtype), tuple(operator.index(length) for length in shape)
    found = all_ranks()
    compare_pair(False, f"{wanted}{lengths}", source, found)
    if 0 in lengths:
        return ops.zeros(lengths, dtype=wanted)
    return exchange("recv", lambda: found.receive(lengths, active().dtypes[wanted], source), found)


def barrier() -> None:
    """Return when every rank has called this."""
    found = all_ranks()
    if found.size > 1:
        compare_calls(lambda: "barrier()", found)
        exchange("barrier", found.barrier, found)


def average(tensors: Sequence[Tensor], weight: float | None = None, group: Group | None = None) -> list[Tensor]:
    """Return the means over the ranks of each of ``tensors``, native and floating-point: as of gradients.

    They travel in large messages, of which some are under way while others are prepared. With ``weight``, a number that
    may differ from rank to rank, they are weighted means, and tensors of weight 0 do not count, whatever they hold.
    ``group`` is one of :func:`make_group`; None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.average([ops.array([1.0, 2.0])])[0]).tolist()
    [1.0, 2.0]
    """
    found = begun_average(tensors, weight, group)
    finish(found)
    return found


def begun_average(tensors: Sequence[Tensor], weight: float | None = None, group: Group | None = None) -> list[Tensor]:
    """Return what :func:`average` gives, perhaps yet to be computed: :func:`finish` must follow on every rank.

    ``group`` is one of :func:`make_group`; None: all ranks.
    """
    found = group or all_ranks()
    if found.size == 1:
        return list(tensors)
    backend = active()
    check_traced(backend, "average")
    if weight is not None and not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"a weight is a number from 0 up, not {weight!r}")
    kinds = {x.dtype: x for x in tensors}  # mostly one, of very many tensors
    own = {native: _check_reduction(backend.dtype_of(x), "mean") for native, x in kinds.items()}
    narrow = {native: dtype for native, dtype in own.items() if dtype in dt.HALVES}
    wide = [ops.cast(x, "float32") if x.dtype in narrow else x for x in tensors] if narrow else list(tensors)
    compare_calls(lambda: f"average({_describe(wide)})", found)
    summed = exchange("average", lambda: found.mean(wide, weight), found)
    if not narrow:
        return list(summed)
    pairs = zip(summed, tensors, strict=True)
    return [ops.cast(x, narrow[like.dtype]) if like.dtype in narrow else x for x, like in pairs]


def finish(tensors: Sequence[Tensor]) -> None:
    """Compute tensors that depend on others of :func:`begun_average`: on every rank the same ones, at the same time."""
    found = all_ranks()
    if found.is_lazy:
        exchange("average", lambda: found.finish(tensors), found)


def _begin_reduction(native: Any, op: str, found: Group) -> Wait:
    if op not in _REDUCTIONS:
        raise ValueError(f"all_reduce computes one of {', '.join(_REDUCTIONS)}, not {op!r}")
    dtype = _check_reduction(active().dtype_of(native), op)
    if _is_trivial(native, found):
        return lambda: native
    wait = found.begin_all_reduce(ops.cast(native, _computed_in(dtype)), "sum" if op == "mean" else op)
    return _reduced(wait, op, dtype, found)


def _reduced(wait: Wait, op: str, dtype: EmberDType, found: Group) -> Wait:
    """Return what waits for a reduction, and gives it in ``dtype``: a mean where only the sum has been computed."""

    def wait_for_it() -> Any:
        result = wait()
        return ops.cast(ops.divide(result, found.size) if op == "mean" else result, dtype)

    return wait_for_it


def _describe(tensors: Sequence[Tensor]) -> str:
    """Return in a few words what tensors are averaged together, other words for other ones."""
    shapes = ", ".join(f"{active().dtype_of(x)}{tuple(x.shape)}" for x in tensors)
    return shapes if len(shapes) < 100 else f"{len(tensors)} tensors, {shapes:.80} ..., {zlib.crc32(shapes.encode()):x}"


def _check_reduction(dtype: EmberDType, op: str) -> EmberDType:
    allowed = {"sum": ("int", "uint", "float", "complex"), "mean": ("float", "complex")}
    if dtype.kind not in allowed.get(op, ("int", "uint", "float", "bool")):
        raise TypeError(f"there is no {op} of {dtype} over the ranks; cast it first")
    return dtype


def _computed_in(dtype: EmberDType) -> EmberDType:
    return dt.float32 if dtype in dt.HALVES else dt.uint8 if dtype is dt.bool_ else dtype


def _is_trivial(native: Any, found: Group) -> bool:
    return found.size == 1 or 0 in tuple(native.shape)


def _check_even(native: Any, found: Group) -> tuple[int, ...]:
    shape = tuple(native.shape)
    if not shape or shape[0] % found.size:
        raise ValueError(f"the first axis of {shape} cannot be split into {found.size} equal parts")
    return shape


def _check_rank(rank: int, found: Group) -> None:
    if not 0 <= operator.index(rank) < found.size:
        raise ValueError(f"there is no rank {rank}: the ranks are 0 to {found.size - 1}")


def _check_other(rank: int) -> None:
    _check_rank(rank, all_ranks())
    if rank == all_ranks().rank:
        raise ValueError(f"rank {rank} cannot send to itself")

"""Exchange tensors among processes that compute together: every one makes the same calls, in the same order.

Each function takes a native or portable tensor, or what becomes one, and gives the same kind. In a program of one
process they are what they would be for a group of one. Those with a ``group`` of :func:`make_group` exchange among its
members alone; their ranks are the places in the group.

Sums, means and what only moves elements are differentiable, where the function that is differentiated is the sum of
what all ranks compute: the gradients of a collective are exchanged by another one, so every rank must compute them.
"""

from __future__ import annotations

import math
import operator
import os
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.host_arrays import keep_gradient
from ember_ml.backend.processes.group import Group
from ember_ml.backend.selection import active
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.dispatch.arguments import bring
from ember_ml.distributed.groups import Single
from ember_ml.distributed.groups import group as all_ranks
from ember_ml.distributed.heartbeat import waiting
from ember_ml.errors import EmberError, PeerLost
from ember_ml.nn.modules.hooks import is_recorded
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.var import Var
from ember_ml.typing import DTypeLike, Tensor, TensorLike

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "average",
    "barrier",
    "begun_average",
    "broadcast",
    "finish",
    "make_group",
    "recv",
    "reduce_scatter",
    "send",
]

_REDUCTIONS = ("sum", "mean", "max", "min")
_COMPARES = os.environ.get("EMBER_ML_CHECK_COLLECTIVES", "") not in ("", "0")
"""Whether the ranks compare each call before they make it."""
_DESCRIPTION = 160
"""Bytes of the description of a call that are compared."""


def make_group(members: Sequence[Sequence[int]]) -> Group:
    """Return the group of this process: that of ``members``, lists of ranks, which has its rank.

    Each rank is in one list, and every process makes the call with the same lists. The engines of PyTorch and MPI
    have such groups, MLX's ring and JAX do not.

    >>> from ember_ml.distributed import collectives
    >>> collectives.make_group([[0]]).size
    1
    """
    found = all_ranks()
    lists = [[operator.index(rank) for rank in ranks] for ranks in members]
    if sorted(rank for ranks in lists for rank in ranks) != list(range(found.size)):
        raise ValueError(f"groups have each of the ranks 0 to {found.size - 1} once, and these are {lists}")
    if lists == [list(range(found.size))]:
        return found
    if len(lists) == found.size:
        return Single("none", 0, 1)
    return exchange("make_group", lambda: found.subgroup(lists), found)


def all_reduce(x: TensorLike, op: str = "sum", group: Group | None = None) -> Tensor:
    """Return the sum of the ranks' tensors, element by element, on every rank; or their ``mean``, ``max`` or ``min``.

    Half precision is summed in float32. Bools have a max and min only, complex numbers none; integers no mean.
    ``group`` is one of :func:`make_group`; None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.all_reduce(ops.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    found = group or all_ranks()
    pull = (lambda gradient: all_reduce(gradient, op, group)) if op in ("sum", "mean") else None
    return _on_native("all_reduce", x, lambda native: _reduce(native, op, found), found, op, pull)


def all_gather(x: TensorLike, group: Group | None = None) -> Tensor:
    """The tensors of all ranks joined along the first axis, in the order of the ranks; a 0-d tensor gives a vector.

    They must have equal shapes. ``group`` is one of :func:`make_group`; None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.all_gather(ops.array(2.0))).tolist()
    [2.0]
    """
    found = group or all_ranks()

    def gather(native: Any) -> Any:
        if found.size == 1:
            return native if len(native.shape) else ops.reshape(native, (1,))
        shape = tuple(native.shape)
        if 0 in shape:
            return ops.zeros((shape[0] * found.size, *shape[1:]), dtype=active().dtype_of(native))
        return found.all_gather(native)

    def pull(gradient: Any) -> Any:
        return ops.reshape(reduce_scatter(gradient, group=group), ops.shape(x))

    return _on_native("all_gather", x, gather, found, "", pull)


def reduce_scatter(x: TensorLike, op: str = "sum", group: Group | None = None) -> Tensor:
    """This rank's part, along the first axis, of the sum or ``mean`` of the ranks' tensors.

    The length of the first axis must be a multiple of the number of ranks. ``group`` is one of :func:`make_group`;
    None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.reduce_scatter(ops.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    if op not in ("sum", "mean"):
        raise ValueError(f"reduce_scatter computes a sum or mean, not {op!r}")
    found = group or all_ranks()

    def scatter(native: Any) -> Any:
        shape = _check_even(native, found)
        dtype = _check_reduction(active().dtype_of(native), op)
        if found.size == 1 or 0 in shape:
            return native[: shape[0] // found.size]
        part = found.reduce_scatter(ops.cast(native, _computed_in(dtype)))
        return ops.cast(ops.divide(part, found.size) if op == "mean" else part, dtype)

    def pull(gradient: Any) -> Any:
        return all_gather(ops.divide(gradient, found.size) if op == "mean" else gradient, group)

    return _on_native("reduce_scatter", x, scatter, found, op, pull)


def all_to_all(x: TensorLike, group: Group | None = None) -> Tensor:
    """Send the k-th of equal parts along the first axis to rank k; return those of all ranks for this one, in order.

    The length of the first axis must be a multiple of the number of ranks. ``group`` is one of :func:`make_group`;
    None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.all_to_all(ops.array([1.0, 2.0]))).tolist()
    [1.0, 2.0]
    """
    found = group or all_ranks()

    def exchange(native: Any) -> Any:
        shape = _check_even(native, found)
        return native if found.size == 1 or 0 in shape else found.all_to_all(native)

    return _on_native("all_to_all", x, exchange, found, "", lambda gradient: all_to_all(gradient, group))


def broadcast(x: TensorLike, source: int = 0, group: Group | None = None) -> Tensor:
    """Return the tensor of the rank ``source``, on every rank; the others' tensors must have its shape and dtype.

    ``group`` is one of :func:`make_group`; None: all ranks.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import collectives
    >>> ops.to_numpy(collectives.broadcast(ops.array([1, 2]))).tolist()
    [1, 2]
    """
    found = group or all_ranks()
    _check_rank(source, found)

    def pull(gradient: Any) -> Any:
        total = all_reduce(gradient, group=group)
        return total if found.rank == source else ops.zeros_like(total)

    def send_all(native: Any) -> Any:
        return native if _is_trivial(native, found) else found.broadcast(native, source)

    return _on_native("broadcast", x, send_all, found, f"{source=}", pull)


def send(x: TensorLike, to: int) -> None:
    """Send a tensor to the rank ``to``, which must receive it by :func:`recv`.

    MLX's ring and JAX connect neighbours only: the ranks before and after this one, and the first with the last.
    """
    _check_other(to)

    def sent(native: Any) -> Any:
        if 0 not in tuple(native.shape):
            all_ranks().send(native, to)
        return native

    _on_native("send", x, sent, all_ranks())


def recv(shape: Sequence[int], dtype: DTypeLike, source: int) -> Tensor:
    """The native tensor that the rank ``source`` sends by :func:`send`, whose shape and dtype must be those given."""
    _check_other(source)
    wanted, lengths = as_dtype(dtype), tuple(operator.index(length) for length in shape)
    if 0 in lengths:
        return ops.zeros(lengths, dtype=wanted)
    found = all_ranks()
    return exchange("recv", lambda: found.receive(lengths, active().dtypes[wanted], source), found)


def barrier() -> None:
    """Return when every rank has called this."""
    found = all_ranks()
    if found.size > 1:
        if _COMPARES:
            _compare_calls("barrier()", found)
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
    _check_traced(backend, "average")
    if weight is not None and not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"a weight is a number from 0 up, not {weight!r}")
    own = [_check_reduction(backend.dtype_of(x), "mean") for x in tensors]
    wide = [ops.cast(x, "float32") if dtype in dt.HALVES else x for x, dtype in zip(tensors, own, strict=True)]
    summed = exchange("average", lambda: found.mean(wide, weight), found)
    return [ops.cast(x, dtype) if dtype in dt.HALVES else x for x, dtype in zip(summed, own, strict=True)]


def finish(tensors: Sequence[Tensor]) -> None:
    """Compute tensors that depend on others of :func:`begun_average`: on every rank the same ones, at the same time."""
    found = all_ranks()
    if found.is_lazy:
        exchange("average", lambda: found.finish(tensors), found)


def _reduce(native: Any, op: str, found: Group) -> Any:
    if op not in _REDUCTIONS:
        raise ValueError(f"all_reduce computes one of {', '.join(_REDUCTIONS)}, not {op!r}")
    dtype = _check_reduction(active().dtype_of(native), op)
    if _is_trivial(native, found):
        return native
    result = found.all_reduce(ops.cast(native, _computed_in(dtype)), "sum" if op == "mean" else op)
    return ops.cast(ops.divide(result, found.size) if op == "mean" else result, dtype)


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


def _on_native(
    what: str,
    x: Any,
    function: Callable[[Any], Any],
    found: Group,
    compared: str | None = None,
    pull: Callable[[Any], Any] | None = None,
) -> Any:
    """Return what ``function`` gives for ``x`` as a native tensor, in the kind of ``x``.

    ``compared`` are the settings that all ranks must have in common, None where not all of them make the call. ``pull``
    gives the gradient of ``x`` from that of the result, where there is one.
    """
    backend = active()
    _check_traced(backend, what)
    if pull is not None and is_recorded(x):

        def forward(given: Any) -> tuple[Any, Callable[[Any], Any]]:
            inner = given._array if type(given) is EmberTensor else given
            if type(inner) is not Var and not backend.is_traced(inner):
                given = ops.stop_gradient(given)  # PyTorch and MLX still call it recorded, and follow ``pull`` alone
            return _on_native(what, given, function, found, compared, pull), pull

        return ops.custom_gradient(forward)(x)
    native = bring(x._array if type(x) is EmberTensor else x, backend)
    keep_gradient(native, backend)
    if _COMPARES and compared is not None and found.size > 1:
        settings = f", {compared}" if compared else ""
        _compare_calls(f"{what}({backend.dtype_of(native)}{tuple(native.shape)}{settings})", found)
    result = exchange(what, lambda: function(native), found)
    return wrap(result, backend) if type(x) is EmberTensor else result


def exchange(what: str, function: Callable[[], Any], found: Group) -> Any:
    """Return what ``function`` gives; a failure of the engine says on which rank and why."""
    try:
        with waiting(what):
            return function()
    except RuntimeError as error:
        if isinstance(error, EmberError | NotImplementedError):
            raise
        raise PeerLost(
            f"{what} failed on rank {found.rank} of {found.size} over {found.engine}: another rank has probably ended "
            f"or stalls, and the one that failed first says why ({error})"
        ) from error


def _compare_calls(call: str, group: Group) -> None:
    """Tell the other ranks what this one is about to call, and raise where one is about to call something else."""
    calls = _exchange_texts(call, group)
    if len(set(calls)) > 1:
        sites = _exchange_texts(_call_site(), group)
        told = "; ".join(
            f"rank {rank} calls {theirs} at {site}"
            for rank, (theirs, site) in enumerate(zip(calls, sites, strict=True))
        )
        raise ValueError(f"the ranks make different calls: {told}")


def _exchange_texts(text: str, group: Group) -> list[str]:
    """Return the texts of all ranks, each as far as its description may reach."""
    own = ops.array([*text.encode()[:_DESCRIPTION].ljust(_DESCRIPTION)], dtype="uint8")
    gathered = exchange("the comparison of calls", lambda: group.all_gather(own), group)
    found = ops.reshape(gathered, (group.size, -1))
    return [bytes(row).decode(errors="replace").rstrip() for row in ops.to_numpy(found).tolist()]


def _call_site() -> str:
    """Return where the program has called this package: file, line and function."""
    stack = (entry for entry in traceback.walk_stack(None) if not _is_own(entry[0].f_globals.get("__name__", "")))
    place = next(iter(traceback.StackSummary.extract(stack, limit=1, lookup_lines=False)), None)
    return "an unknown place" if place is None else f"{os.path.basename(place.filename)}:{place.lineno} ({place.name})"


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in ("ember_ml", "traceback")


def _check_traced(backend: Backend, what: str) -> None:
    if backend.is_tracing():
        raise TypeError(f"{what} cannot be a part of a compiled function; compile what comes before and after it")


def _check_rank(rank: int, found: Group) -> None:
    if not 0 <= operator.index(rank) < found.size:
        raise ValueError(f"there is no rank {rank}: the ranks are 0 to {found.size - 1}")


def _check_other(rank: int) -> None:
    _check_rank(rank, all_ranks())
    if rank == all_ranks().rank:
        raise ValueError(f"rank {rank} cannot send to itself")

"""How a collective is called: on native tensors, compared with the other ranks' calls, waited for now or later."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.host_arrays import keep_gradient
from ember_ml.backend.processes.group import Group, Wait
from ember_ml.backend.selection import active
from ember_ml.core import dtypes as dt
from ember_ml.dispatch.arguments import bring
from ember_ml.distributed.heartbeat import waiting
from ember_ml.errors import EmberError, PeerLost
from ember_ml.nn.modules.hooks import is_recorded
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.var import Var
from ember_ml.typing import Tensor

__all__ = ["Call", "Pending", "begin_call", "check_traced", "compare_calls", "compare_pair", "exchange", "run_call"]

_COMPARES = os.environ.get("EMBER_ML_CHECK_COLLECTIVES", "") not in ("", "0")
"""Whether the ranks compare each call before they make it."""
_DESCRIPTION = 160
"""Bytes of the description of a call that are compared."""


@dataclass(frozen=True, slots=True)
class Call:
    """A collective of all ranks of a group with one tensor."""

    name: str
    group: Group
    begin: Callable[[Any], Wait]
    """Begins it with a native tensor."""
    settings: str = ""
    """What all ranks must have in common, besides dtype and shape."""
    pull: Callable[[Any], Any] | None = None
    """Gives the gradient of the tensor from that of the result, where there is one."""


class Pending:
    """A collective that has begun: :meth:`wait` gives its result.

    Args:
        what: The name of the collective, for messages.
        wait: Waits for the other ranks, and returns the native result.
        group: The ranks that take part.
        home: The backend of the result.
        is_portable: Whether the result becomes an ``EmberTensor``.
    """

    def __init__(self, what: str, wait: Wait, group: Group, home: Backend, is_portable: bool) -> None:
        self._what, self._wait, self._group = what, wait, group
        self._home, self._is_portable = home, is_portable
        self._result: Any = None

    def wait(self) -> Tensor:
        """Return the result when it is there; a second call returns it again."""
        if self._wait is not None:
            wait, self._wait = self._wait, None
            result = exchange(self._what, wait, self._group)
            self._result = wrap(result, self._home) if self._is_portable else result
        return self._result


def run_call(call: Call, x: Any) -> Any:
    """Return the result of a collective, in the kind of ``x``."""
    backend = active()
    check_traced(backend, call.name)
    if call.pull is not None and is_recorded(x):
        pull = call.pull

        def forward(given: Any) -> tuple[Any, Callable[[Any], Any]]:
            inner = given._array if type(given) is EmberTensor else given
            if type(inner) is not Var and not backend.is_traced(inner):
                given = ops.stop_gradient(given)  # PyTorch and MLX still call it recorded, and follow ``pull`` alone
            return run_call(call, given), pull

        return ops.custom_gradient(forward)(x)
    native = _take_native(call, x, backend)
    result = exchange(call.name, lambda: call.begin(native)(), call.group)
    return wrap(result, backend) if type(x) is EmberTensor else result


def begin_call(call: Call, x: Any) -> Pending:
    """Begin a collective, which does not wait for the other ranks."""
    backend = active()
    check_traced(backend, call.name)
    native = _take_native(call, x, backend)
    wait = exchange(call.name, lambda: call.group.under_way(lambda: call.begin(native)), call.group)
    return Pending(call.name, wait, call.group, backend, type(x) is EmberTensor)


def _take_native(call: Call, x: Any, backend: Backend) -> Any:
    """Return ``x`` as a native tensor, when it is certain that the other ranks make the same call."""
    native = bring(x._array if type(x) is EmberTensor else x, backend)
    keep_gradient(native, backend)
    settings = f", {call.settings}" if call.settings else ""
    compare_calls(lambda: f"{call.name}({backend.dtype_of(native)}{tuple(native.shape)}{settings})", call.group)
    return native


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


def check_traced(backend: Backend, what: str) -> None:
    """Raise where a compiler traces the call."""
    if backend.is_tracing():
        raise TypeError(f"{what} cannot be a part of a compiled function; compile what comes before and after it")


# the mode in which ranks compare their calls


def compare_calls(describe: Callable[[], str], group: Group) -> None:
    """Tell the other ranks what this one is about to call, and raise where one is about to call something else."""
    if not _COMPARES or group.size == 1:
        return
    calls = _exchange_texts(describe(), group)
    if len(set(calls)) > 1:
        sites = _exchange_texts(_call_site(), group)
        told = "; ".join(
            f"rank {rank} calls {theirs} at {site}"
            for rank, (theirs, site) in enumerate(zip(calls, sites, strict=True))
        )
        raise ValueError(f"the ranks make different calls: {told}")


def compare_pair(is_sender: bool, tensor: str, other: int, group: Group) -> None:
    """Tell another rank which tensor this one is about to send or expects, and raise where that does not fit."""
    if not _COMPARES:
        return
    own, dtype = _to_bytes(f"{tensor}\n{_call_site()}", 2 * _DESCRIPTION), active().dtypes[dt.uint8]

    def both_ways() -> Any:
        if is_sender:
            group.send(own, other)
            return group.receive((2 * _DESCRIPTION,), dtype, other)
        received = group.receive((2 * _DESCRIPTION,), dtype, other)
        group.send(own, other)
        return received

    received = ops.to_numpy(exchange("the comparison of calls", both_ways, group))
    theirs, _, site = _to_text(received).partition("\n")
    if theirs != tensor:
        verbs = ("sends", "expects") if is_sender else ("expects", "sends")
        raise ValueError(
            f"the ranks make different calls: rank {group.rank} {verbs[0]} {tensor} at {_call_site()}; "
            f"rank {other} {verbs[1]} {theirs} at {site}"
        )


def _exchange_texts(text: str, group: Group) -> list[str]:
    """Return the texts of all ranks, each as far as its description may reach."""
    own = _to_bytes(text, _DESCRIPTION)
    gathered = exchange("the comparison of calls", lambda: group.all_gather(own), group)
    return [_to_text(row) for row in ops.to_numpy(ops.reshape(gathered, (group.size, -1)))]


def _to_bytes(text: str, length: int) -> Tensor:
    return ops.array([*text.encode()[:length].ljust(length)], dtype="uint8")


def _to_text(host: Any) -> str:
    return bytes(host.tolist()).decode(errors="replace").rstrip()


def _call_site() -> str:
    """Return where the program has called this package: file, line and function."""
    stack = (entry for entry in traceback.walk_stack(None) if not _is_own(entry[0].f_globals.get("__name__", "")))
    place = next(iter(traceback.StackSummary.extract(stack, limit=1, lookup_lines=False)), None)
    return "an unknown place" if place is None else f"{os.path.basename(place.filename)}:{place.lineno} ({place.name})"


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in ("ember_ml", "traceback")

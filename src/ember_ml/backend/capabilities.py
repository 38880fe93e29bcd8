"""What a backend may bring beyond the required parts: each capability is a type, and an attribute of the backend.

A backend names every capability; the attribute is None where it has none, and the portable way serves instead. Most
are modules of the backend's package, with the functions that the type lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol

    from ember_ml.backend.processes.group import Group, Place
    from ember_ml.backend.random.distributions import Variate
    from ember_ml.backend.random.generator import Key, SeedLike
    from ember_ml.core.dtypes import EmberDType
else:
    Protocol = object  # making a protocol takes a millisecond, and nothing asks for one at run time

__all__ = [
    "BenchCalls",
    "Compilation",
    "ControlFlow",
    "Deferred",
    "DeviceMesh",
    "Engine",
    "Gradients",
    "Joined",
    "Kernel",
    "Laziness",
    "NativeRandom",
    "OptimizerKernels",
    "Processes",
    "Recurrent",
    "Sharding",
    "TapeKernels",
    "WeightLayout",
    "deferred",
]

Flat = Callable[..., Any]
"""A function of native tensors."""
Program = Callable[[list[Any], list[Any]], tuple[Any, Sequence[Any], Any]]
"""A compiled function of native tensors."""


class Engine(Protocol):
    """Differentiates and vectorizes functions of native tensors, the leaves: a library's own engine, or the tape."""

    def value_and_gradients(self, function: Flat, leaves: Sequence[Any]) -> tuple[Any, Sequence[Any], Sequence[Any]]:
        """Return a number, the list of other results, and the gradients of the number with respect to the leaves."""
        ...

    def pullback(
        self, function: Flat, leaves: Sequence[Any]
    ) -> tuple[Sequence[Any], Callable[[Sequence[Any]], Sequence[Any]]]:
        """Return the outputs, and the vjp: from gradients of the outputs to gradients of the leaves."""
        ...

    def pushforward(
        self, function: Flat, leaves: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the outputs and their derivatives along ``tangents``: the jvp."""
        ...

    def jacobian(self, function: Flat, leaves: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return for each output its derivatives with respect to each leaf, of shape output + leaf."""
        ...

    def vmap(self, function: Flat, leaves: Sequence[Any], axes: Sequence[int | None], out_axis: int) -> Sequence[Any]:
        """Return the outputs of ``function``, called for each index along ``axes`` of the leaves."""
        ...

    def checkpoint(self, function: Flat, leaves: Sequence[Any], is_complete: bool) -> Sequence[Any]:
        """Return the outputs without keeping inner values; ``is_complete``: the leaves are all that it reads."""
        ...

    def custom(self, function: Flat, leaves: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs of ``function``, which returns them together with its own vjp."""
        ...


class Gradients(Engine, Protocol):
    """A library's own engine of gradients. A backend without one is differentiated by the tape."""

    sees_arguments_only: bool
    """Whether a checkpointed function's gradient reaches its arguments alone, not the arrays that it closes over."""
    refuses_captured: bool
    """Whether a function with a gradient of its own may not close over arrays that are being differentiated."""

    @property
    def records_apart(self) -> bool:
        """Whether tensors that are differentiated are of other classes than the tensors of the library."""
        ...

    @property
    def ruled_inside_gradients(self) -> frozenset[str]:
        """Those of ``without_gradient`` whose rules are passed over while the engine ``is_differentiating`` nothing."""
        ...

    @property
    def without_gradient(self) -> Mapping[str, frozenset[EmberDType]]:
        """The ops and dtypes whose gradient the library lacks or gets wrong: the rules of the op serve there."""
        ...

    @property
    def ruled(self) -> Callable[[Flat, Callable[..., Any], Sequence[Any]], Sequence[Any]] | None:
        """``ruled(function, pull, leaves)`` computes ``function`` and lets the engine use ``pull`` as its vjp.

        None where ``without_gradient`` is empty.
        """
        ...

    @property
    def variable(self) -> Callable[[Any], Any] | None:
        """``variable(x)`` returns a tensor with the data of ``x`` whose use is recorded from now on.

        None where the library differentiates functions only.
        """
        ...

    @property
    def unrecorded(self) -> Callable[[], AbstractContextManager[Any]] | None:
        """Return a block in which the library neither records calls nor gets ready to: nobody differentiates them.

        None where it does neither unless it is asked to.
        """
        ...

    def stop_gradient(self, x: Any, /) -> Any: ...

    def is_differentiating(self) -> bool:
        """Whether this thread computes inside of a gradient."""
        ...


class TapeKernels(Protocol):
    """Faster gradients on the tape than those by the rules beside the ops."""

    @property
    def vjps(self) -> Mapping[str, tuple[Callable[..., Any] | None, Callable[..., Any]]]:
        """By the name of the op: a forward function that also returns residuals, or None, and the vjp."""
        ...

    def accumulate(self, total: Any, gradient: Any) -> Any:
        """Return the sum of two gradients, in the memory of ``total`` where that can be written to."""
        ...


class OtherForm(BaseException):  # which no handler of errors catches
    """The arguments of a program are not in the containers, or not all tensors, as those that it was traced with."""


class Compilation(Protocol):
    """A compiler of functions."""

    compiles_steps: bool
    """Whether steps of training are compiled unless the user says otherwise, since eager calls cost far more."""
    differentiates_programs: bool
    """Whether a compiled program can be differentiated, and better so than gradients that are compiled themselves."""

    def build(self, function: Any, donates: bool = False) -> Program:
        """Compile ``function`` of native tensors, which come to the program in two lists: a state, and others.

        It returns a tree of tensors and other values, a list of further tensors, and a note; a call returns the three.

        With ``donates`` nobody needs the state after a call: the program may use its memory for its results.
        """
        ...

    @property
    def direct(self) -> Callable[[Program], tuple[Callable[..., Any], Any] | None] | None:
        """Returns how a program that has run is called with the least work; None where no program can be called so.

        It returns a function and the note. ``function(state, others, None)`` returns the rest of what the program does.
        The others may then be in lists and tuples, as also for the program: it raises ``OtherForm`` or ``TypeError``
        where they are not as before. It returns None where random numbers are drawn, or not all results are tensors.
        """
        ...

    def repeat(self, function: Callable[..., list[Any]]) -> Callable[..., Callable[[], list[Any]]]:
        """Compile ``function(fixed, state)`` of lists of native tensors, which returns the next state, tensors alike.

        ``begin(fixed, state)`` of the result returns a function that computes the next state at each call, and returns
        it. The memory of a state may be used again for the next, and so may that of the first.
        """
        ...

    def replace_rows(self, x: Any, axis: int, position: Any, rows: Any) -> Any:
        """Return ``x`` with ``rows`` from ``position`` on along ``axis``, in the memory of ``x`` where there is a way.

        The position is a tensor of one integer; rows from there on must lie within. Nobody reads ``x`` after this.
        """
        ...

    def from_python(self, data: Any, dtype: Any, device: str | None) -> Any:
        """Return a native tensor of numbers in nested lists while a function is traced."""
        ...

    def arguments(self, rows: list[list[float]], last: Any) -> list[Any]:
        """Return rows of numbers as arguments that only programs read, of the dtype and device of ``last``."""
        ...

    def follows_python(self) -> bool:
        """Whether the compiler follows Python's code now, rather than running it on tensors that it traces."""
        ...

    def may_leave_program(self) -> bool:
        """Whether the compiler follows Python's code now, and may stop its program for a call of run_uncompiled."""
        ...

    def run_uncompiled(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call ``function`` outside what the compiler follows now."""
        ...


class ControlFlow(Protocol):
    """Branches and loops inside functions that are traced. Without it they are Python's."""

    def read(self, x: Any) -> Any:
        """Return the value of a 0-d tensor, or None where it cannot be read now."""
        ...

    def cond(self, pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any: ...
    def while_loop(
        self, test: Callable[[Sequence[Any]], Any], step: Callable[[Sequence[Any]], list[Any]], leaves: Sequence[Any]
    ) -> Sequence[Any]: ...
    def scan(
        self,
        step: Callable[[Sequence[Any], Sequence[Any]], tuple[list[Any], Any]],
        leaves: Sequence[Any],
        xs: Sequence[Any],
        length: int,
        reverse: bool,
    ) -> tuple[Sequence[Any], Any]: ...


Kernel = Callable[..., "Sequence[Sequence[Any]]"]
"""``kernel(parameters, gradients, *slots, **settings)`` returns the new parameters and slots, as lists of tensors.

The settings are those of ``Optimizer.settings`` and the scalars of this step, by keyword.
"""


class Joined(list[Any]):
    """Short tensors that are parts of one, ``whole``, so that one call of the library changes all of them.

    A kernel that has returned such lists gets them again at the next update, while the variables hold these tensors,
    and changes them in place.
    """

    __slots__ = ("shapes", "whole")

    shapes: list[tuple[int, ...]]
    whole: Any


class OptimizerKernels(Protocol):
    """Updates of all parameters at once. Without a kernel the rule of the optimizer computes each parameter by ops."""

    is_in_place: bool
    """Whether the parameters and slots that are passed are changed, rather than new ones returned."""
    takes_halves: bool
    """Whether the kernels take parameters in half precision, and compute them as precisely as the rules do."""

    @property
    def kernels(self) -> Mapping[str, Kernel]:
        """By ``Optimizer.kernel``."""
        ...


class Recurrent(Protocol):
    """The recurrent layers of the library."""

    def run(
        self,
        kind: str,
        x: Any,
        state: Sequence[Any],
        weights: Sequence[Any],
        has_bias: bool,
        layers: int,
        bidirectional: bool,
    ) -> tuple[Any, Sequence[Any]] | None:
        """Return the results and the last state, or None where the loop in Python must compute them."""
        ...

    @property
    def pullback(self) -> Callable[..., Any] | None:
        """As :meth:`run`, but returns its outputs and a function from gradients of the results and of the last state.

        That one returns the gradients of ``x``, of the state and of the weights; that of ``x`` may be None unless a
        last argument, ``wants_x``, is true. None where the library's own engine differentiates ``run``.
        """
        ...


class NativeRandom(Protocol):
    """Random numbers on the backend's own tensors. Without it NumPy draws them, and they are copied over."""

    def native(self, variate: Variate) -> Callable[..., Any] | None:
        """Return a function that draws with the library's own generator, or None where it has no better than ours.

        It gets a 64-bit seed, the shape, the dtype, the device and the parameters of the variate.
        """
        ...

    def next_key(self, seed: SeedLike | None) -> tuple[Key, bool]:
        """Return the key of one draw, also while a function is traced, and whether :meth:`native` may serve it."""
        ...

    def derive(self, words: Any, number: int) -> Key:
        """Return the key that a generator has ``number`` draws after a state, which is a tensor of four words."""
        ...

    def takes(self, variate: Variate, key: Key, device: str | None) -> bool:
        """Whether :meth:`draw`, rather than the host, draws such numbers with this key for this device."""
        ...

    def draw(self, variate: Variate, key: Key, shape: tuple[int, ...], device: str | None) -> Any: ...
    def adopt(self, array: Any, device: str | None) -> Any:
        """Return a native tensor of a NumPy array that nobody else has: in the same memory, if possible."""
        ...

    def constant(self, compute: Callable[..., Any], device: str | None, *data: Any) -> Any:
        """Return a native tensor of what the host computes of plain data, also while a function is traced."""
        ...

    def order(self, words: Any) -> Any:
        """Return the int64 indices that sort int32 words, equal ones in their order."""
        ...


class Processes(Protocol):
    """Processes that exchange tensors. Without it they travel as NumPy arrays."""

    def connect(self, place: Place) -> Group:
        """Join the other processes."""
        ...

    def joined(self) -> tuple[int, int] | None:
        """Return the rank and the number of processes of a group that the program has made by itself, if it has."""
        ...


class Sharding(Protocol):
    """Parameters of which each process holds a part, gathered again by the backward pass."""

    @property
    def takes_unequal_parts(self) -> bool:
        """Whether the processes may compute on parts of a batch with different numbers of rows."""
        ...

    def make_splits(self, shapes: Sequence[tuple[int, ...]], group: Any, collectives: Any) -> Sequence[Any]:
        """Return how parameters of these shapes and one dtype are split over ``group``, which may gather them together.

        ``collectives`` is as for :class:`ember_ml.backend.common.sharding.Shares`.
        """
        ...

    def recording(self) -> AbstractContextManager[Any]:
        """A block in which the engine of gradients keeps notes in place of gathered parameters."""
        ...


class DeviceMesh(Protocol):
    """Tensors that lie on several devices of one process; programs that take them compute on all of these."""

    def put(self, x: Any, devices: Sequence[str], axes: Mapping[str, int], parts: Sequence[Sequence[str]]) -> Any:
        """Return ``x`` over devices that lie in a mesh, whose ``axes`` have names and lengths.

        ``parts`` names for each axis of ``x`` those of the mesh over which it is split into equal parts.
        """
        ...


class Laziness(Protocol):
    """A library that computes when results are needed."""

    def evaluate(self, *tensors: Any) -> None:
        """Compute the tensors and wait for them."""
        ...

    def start(self, *tensors: Any) -> None:
        """Begin to compute the tensors, and do not wait."""
        ...

    def unchecked(self) -> AbstractContextManager[Any]:
        """A block in which indices that this thread uses are clamped, rather than computed to check their range."""
        ...


class WeightLayout(Protocol):
    """A library whose products read weights faster in another order of their elements in memory."""

    def arrange(self, weight: Any) -> Any:
        """Return a weight of ``linear`` with the same values in the best order: itself where it has that already."""
        ...


class BenchCalls(Protocol):
    """The library's own spelling of ops, for ``ember-ml bench``."""

    @property
    def calls(self) -> Mapping[str, Callable[..., Any]]: ...

    def evaluate(self, x: Any) -> Any:
        """Wait until ``x`` has been computed, and return it."""
        ...


class Deferred:
    """A module that is imported when something in it is first asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


def deferred(module: str) -> Any:
    """Return a stand-in for a capability's module that few programs need and that is slow to import."""
    return Deferred(module)

"""Compile functions: one decorator over the compiler of each backend."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, update_wrapper
from itertools import islice
from typing import Any, TypeVar

from ember_ml.backend import selection
from ember_ml.backend.capabilities import Compilation, OtherForm
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active, backend_of, half_here, recount_scopes, watcher_here
from ember_ml.core import trees
from ember_ml.core.dtypes import EmberDType
from ember_ml.dispatch.arguments import bring
from ember_ml.dispatch.autocast import autocast
from ember_ml.dispatch.declare import plain
from ember_ml.tensor.ember_tensor import EmberTensor, wrap_native
from ember_ml.tensor.in_place import end_trace, start_trace
from ember_ml.tensor.var import Var
from ember_ml.transforms import change_counter
from ember_ml.transforms.captured_variables import Holder, State, find_holders

__all__ = ["compile"]

F = TypeVar("F", bound=Callable[..., Any])
MANY = 32
"""The number of programs for values of Python arguments after which a warning says that this costs time."""


class Compiled:
    """A function that is compiled for the active backend when it is called.

    With ``replaces`` every tensor of its modules and optimizers is one that it has computed after a call, and a program
    may use the memory of those before it.
    """

    function: Callable[..., Any]
    has_warned: bool
    lock: threading.Lock
    programs: dict[Any, Callable[..., Any]]
    replaces: bool

    def __init__(self, function: Callable[..., Any], replaces: bool = False) -> None:
        self.function, self.replaces = function, replaces
        self.programs = {}
        self._last: tuple[Any, ...] | None = None
        """The last call: its backend, dtype of ``autocast`` and kinds of arguments, its state, the program that ran.

        Then whether that takes the arguments as they are, and how it is called directly, if there is a way.
        """
        self._calls_directly = True
        """Whether arguments so far had one form, for which it pays to let the program tell whether they have it."""
        self.lock = threading.Lock()
        self.has_warned = False
        update_wrapper(self, function)

    @cached_property
    def holders(self) -> list[Holder]:
        """The modules and optimizers that the function uses; found at the first call, when a copy is whole."""
        return find_holders(self.function)

    def __reduce__(self) -> Any:
        """Copy and pickle the function; a copy compiles anew, and one that a decorator made is found by its name."""
        name = getattr(self.function, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self.function, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (Compiled, (self.function, self.replaces))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            result = self.repeat(args)
            if result is not CHANGED:
                return result
        backend = active()
        engine = backend.compilation
        if engine is None or backend.is_tracing() or watcher_here() is not None:  # whose ops are watched runs as it is
            return self.function(*args, **kwargs)
        holders, half = self.holders, half_here()
        natives: list[Any] = []
        others: list[Any] = []
        leaves: list[Any] = []
        structure: Any = None if kwargs else _flatten_natives(args, backend.tensor_type, natives)
        if structure is None:
            natives.clear()
            leaves, structure = trees.flatten((args, kwargs))
        for leaf in leaves:
            kind = type(leaf)
            if kind is backend.tensor_type:
                natives.append(leaf)
                others.append(_NATIVE)
            elif kind is EmberTensor or backend_of(leaf) is not None:
                if kind is Var or type(getattr(leaf, "_array", None)) is Var:
                    return self.function(*args, **kwargs)  # the tape sees no calls in a compiled program
                natives.append(bring(leaf, backend))
                others.append(_PORTABLE if kind is EmberTensor else _NATIVE)
            else:
                others.append((kind, leaf))
                if isinstance(leaf, Holder) and leaf not in holders:
                    holders = [*holders, leaf]
        state = State.of(holders)
        if state is None:
            return self.function(*args, **kwargs)
        others = others or [_NATIVE] * len(natives)
        key = (backend.name, half, structure, tuple(others), state.key)
        try:
            program = self.programs.get(key)
        except TypeError as error:
            strange = next(type(x[1]).__name__ for x in others if type(x) is tuple and not _is_hashable(x[1]))
            raise TypeError(
                f"a compiled function takes tensors, containers of them, and values that can be hashed, not {strange}"
            ) from error
        if program is None:
            program = self._program(key, backend, engine, structure, others, state, half)
        is_simple = type(structure) is tuple
        takes_trees = is_simple and engine.direct is not None and dict not in map(type, args)  # JAX sorts their keys
        found = state.run(program, args if takes_trees else natives, backend)
        if is_simple:
            direct = engine.direct(program) if takes_trees and self._calls_directly and engine.direct else None
            self._last = (backend, half, _kinds_of(args), state, program, takes_trees, direct)
        return _finish(*found, backend)

    def repeat(self, args: Sequence[Any]) -> Any:
        """Return what the program of the last call gives for ``args``, by little work, as a step of training needs it.

        ``CHANGED`` where something besides the values of tensors has changed since: then call the object.
        """
        last = self._last
        if last is None:
            return CHANGED
        backend, half, kinds, state, program, takes_trees, direct = last
        if selection.has_scopes:
            if backend is not active() or half is not half_here() or watcher_here() is not None:
                return CHANGED
        elif backend is not selection._process or half is not None:
            return CHANGED
        # a program without variables that is called directly may be part of another
        if (direct is None or state.version is not None) and backend.is_tracing():
            return CHANGED
        if state.version is not None:
            if state.version != change_counter.count:
                return CHANGED
            for watched in state.uncounted:
                if not watched.is_current():
                    return CHANGED
        natives: Any = args
        if direct is None:
            natives = _natives_of(args, kinds)
            if natives is None:
                return CHANGED
            natives = args if takes_trees else natives
        try:
            # a lazy backend is asked for all variables after each call
            if self.replaces and backend.laziness is None:
                result, portable = state.run_again(program, natives, backend, direct)
            elif direct is not None and state.version is None:
                result, portable = direct[0]([], args, None)[0], direct[1]
            else:
                result, portable = state.run(program, natives, backend)
        except (OtherForm, TypeError):
            if direct is None:
                raise
            self._calls_directly, self._last = False, None
            return CHANGED
        return result if portable is None and not selection.has_scopes else _finish(result, portable, backend)

    def _program(
        self,
        key: Any,
        backend: Backend,
        engine: Compilation,
        structure: Any,
        others: list[Any],
        state: State,
        half: EmberDType | None,
    ) -> Callable[..., Any]:
        function = self.function
        if half is not None:  # as a part of the program, so that torch.compile tells it from others
            function = autocast(half)(function)

        def flat(*natives: Any) -> tuple[Any, list[Any], tuple[bool, ...] | None]:
            """Run the function on native tensors; return native tensors, and which of them were portable, if any."""
            given = iter(natives)
            leaves = []
            for other in others:
                if other is _NATIVE:
                    leaves.append(next(given))
                elif other is _PORTABLE:
                    leaves.append(wrap_native(next(given), backend))
                else:
                    leaves.append(other[1])
            if type(structure) is tuple:
                args, kwargs = _build_args(structure, iter(leaves)), {}
            else:
                args, kwargs = structure(leaves)
            is_traced = engine.follows_python()
            if is_traced:
                start_trace()
            try:
                found, form = trees.flatten(function(*args, **kwargs))
            finally:
                if is_traced:
                    end_trace()
            portable = [type(x) is EmberTensor for x in found]
            kinds = tuple(portable) if True in portable else None
            return form([x._array if type(x) is EmberTensor else x for x in found]), [], kinds

        name = flat.__name__ = getattr(function, "__name__", "the function")
        with self.lock:
            if len(self.programs) >= MANY and not self.has_warned:
                self.has_warned = True
                warnings.warn(
                    f"{name} was compiled for {MANY} different values of its Python arguments; each costs a "
                    "compilation, so pass what changes as a tensor",
                    stacklevel=4,
                )
            return self.programs.setdefault(key, engine.build(state.thread_state(flat, self.replaces), self.replaces))


CHANGED: Any = object()
"""What a repetition returns where it is none."""
_NATIVE, _PORTABLE = "native", "portable"


def _flatten_natives(args: Sequence[Any], tensor_type: type, natives: list[Any]) -> tuple[Any, ...] | None:
    """Add the tensors in ``args`` to ``natives`` and return the form of ``args``: the common case, with little work.

    The arguments are native tensors, None, and lists, tuples and dicts of native tensors; otherwise it returns None.
    """
    form: list[Any] = []
    for arg in args:
        cls = type(arg)
        if cls is tensor_type:
            natives.append(arg)
            form.append(True)
        elif arg is None:
            form.append(False)
        elif cls is list or cls is tuple:
            natives += arg
            form.append((cls, len(arg)))
        elif cls is dict:
            natives += arg.values()
            form.append((cls, *arg))
        else:
            return None
    return tuple(form) if [*map(type, natives)].count(tensor_type) == len(natives) else None


def _kinds_of(args: Sequence[Any]) -> list[Any]:
    """Return what tells arguments of such a form: types of tensors, None, and for containers all that is alike."""
    kinds: list[Any] = []
    for arg in args:
        cls = type(arg)
        if cls is dict:
            kinds.append((cls, [*map(type, arg.values())], [*arg]))
        elif cls is list or cls is tuple:
            kinds.append((cls, [*map(type, arg)], None))
        else:
            kinds.append(None if arg is None else cls)
    return kinds


def _natives_of(args: Sequence[Any], kinds: list[Any]) -> list[Any] | None:
    """Return the tensors in arguments of such kinds; None where they are of others."""
    if len(args) != len(kinds):
        return None
    natives: list[Any] = []
    for arg, kind in zip(args, kinds, strict=True):
        cls = type(arg)
        if cls is kind:
            natives += (arg,)
        elif type(kind) is not tuple:
            if arg is not kind:  # None
                return None
        elif cls is dict and [*arg] == kind[2] and [*map(type, arg.values())] == kind[1]:
            natives += arg.values()
        elif cls is kind[0] and [*map(type, arg)] == kind[1]:
            natives += arg
        else:
            return None
    return natives


def _build_args(form: tuple[Any, ...], natives: Iterator[Any]) -> list[Any]:
    """Return the arguments of such a form with these tensors."""
    args: list[Any] = []
    for item in form:
        if type(item) is not tuple:
            args.append(next(natives) if item else None)
        elif item[0] is dict:
            args.append(dict(zip(item[1:], natives, strict=False)))
        else:
            args.append(item[0](islice(natives, item[1])))
    return args


def _finish(result: Any, portable: tuple[bool, ...] | None, backend: Backend) -> Any:
    """Return the result of a program, with portable tensors where the function returned such."""
    if selection.has_scopes:
        recount_scopes()
    if portable is None:
        return result
    leaves, form = trees.flatten(result)
    return form([wrap_native(x, backend) if p else x for x, p in zip(leaves, portable, strict=True)])


def _is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


@plain
def compile(f: F) -> F:
    """``f``, compiled by the backend that is active when it is called; on NumPy it runs as it is.

    Tensors, also in nested containers, are arguments of the program; everything else is a constant of it, and another
    value compiles another program. A switch of the backend compiles anew at the next call, and so may tensors of
    another shape or dtype. Inside ``f``, Python code runs once per program, while it is traced: what it prints or
    changes besides its result, it does then. The tensors of modules and optimizers that ``f`` gets or closes over are
    arguments and results of the program. Random numbers are drawn from the stream of the process as they would be
    without compilation. Where the platform has no compiler, ``f`` runs as it is, with one warning.

    >>> from ember_ml import ops
    >>> double = ops.compile(lambda x: x + x)
    >>> ops.to_numpy(double(ops.array([1.0, 2.0]))).tolist()
    [2.0, 4.0]
    """
    return Compiled(f)  # type: ignore[return-value]

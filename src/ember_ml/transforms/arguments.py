"""Flatten the arguments and results of user functions to native tensors and back, for grad, vmap, vjp and others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from ember_ml.autodiff import tape
from ember_ml.autodiff.reverse_pass import unbroadcast
from ember_ml.backend.contract import Backend
from ember_ml.core import trees
from ember_ml.dispatch.arguments import bring
from ember_ml.dispatch.declare import OPS
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.var import Var

__all__ = [
    "Argument",
    "Arguments",
    "Leaves",
    "Outputs",
    "check_function",
    "check_one_number",
    "fit_gradient",
    "is_tensor_of",
    "match_leaves",
    "restore_kind",
]

Argument = int | str


class Leaves:
    """A pytree as a list of native tensors, and its structure to rebuild it."""

    __slots__ = ("backend", "is_list", "natives", "portable", "structure")

    backend: Backend
    is_list: bool
    natives: list[Any]
    portable: list[bool] | None
    structure: trees.Structure

    def __init__(self, tree: Any, backend: Backend, what: str = "") -> None:
        leaves, self.structure = trees.flatten(tree)
        self.backend, self.is_list = backend, type(tree) is list and self.structure.count == len(tree)
        own = backend.tensor_type
        self.natives, self.portable = leaves, None
        for leaf in leaves:
            if type(leaf) is not own:
                self.portable = [type(leaf) is EmberTensor for leaf in leaves]
                self.natives = [_to_native(leaf, backend) for leaf in leaves]
                break
        if what:
            floating = _floating_dtypes(backend)
            for native in self.natives:
                if type(native) is Var or native.dtype not in floating:
                    _check_floating(_dtype_of(native, backend), what)

    def tree(self, natives: Sequence[Any]) -> Any:
        """Rebuild the tree with other tensors: portable where the first ones were."""
        if self.portable is None and not tape.has_variables:
            return list(natives) if self.is_list else self.structure(natives)
        pairs = zip(natives, self.portable or [False] * len(natives), strict=True)
        return self.structure([restore_kind(x, portable, self.backend) for x, portable in pairs])


def _check_floating(dtype: Any, what: str) -> None:
    if dtype.kind not in _KINDS:
        raise TypeError(f"{what} needs floating-point tensors, and got {dtype}; cast it first")


_KINDS = ("float", "complex")
_floating: dict[str, frozenset[Any]] = {}


def _floating_dtypes(backend: Backend) -> frozenset[Any]:
    """Return the backend's native dtypes that have gradients."""
    found = _floating.get(backend.name)
    if found is None:
        found = frozenset(native for dtype, native in backend.dtypes.items() if dtype.kind in _KINDS)
        if not backend.is_tracing():  # torch 2.13: a traced function cannot fill a cache
            _floating[backend.name] = found
    return found


def _to_native(leaf: Any, backend: Backend, device: str | None = None) -> Any:
    if type(leaf) is EmberTensor:
        leaf = leaf._array
    return leaf if type(leaf) is Var and leaf.tape.base is backend else bring(leaf, backend, device)


def _wrap(x: Any, backend: Backend) -> Any:
    """Return a native or recorded tensor as a portable one."""
    return wrap(x, x.tape if type(x) is Var else backend)


def restore_kind(x: Any, portable: bool, backend: Backend) -> Any:
    """Wrap ``x`` where it was portable, or where it depends on variables of ``backward()``, which are portable."""
    return _wrap(x, backend) if portable or (type(x) is Var and x.tape.level == 0) else x


def _dtype_of(native: Any, backend: Backend) -> Any:
    return native.dtype if type(native) is Var else backend.dtype_of(native)


class Outputs:
    """The result of a function, with its tensors taken out; the structure is known once the function has run."""

    __slots__ = ("backend", "places", "portable", "rest", "structure")

    backend: Backend
    places: list[int]
    portable: list[bool]
    rest: list[Any]
    structure: trees.Structure

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def take(self, tree: Any, strict: bool, what: str = "") -> list[Any]:
        """Return the native tensors in ``tree``; with ``strict`` every leaf is converted to a tensor."""
        leaves, self.structure = trees.flatten(tree)
        self.places = [i for i, leaf in enumerate(leaves) if strict or is_tensor_of(leaf, self.backend)]
        self.portable = [type(leaves[i]) is EmberTensor for i in self.places]
        natives = [_to_native(leaves[i], self.backend) for i in self.places]
        for place in self.places:
            leaves[place] = None  # a tensor kept here would keep its graph alive
        self.rest = leaves
        for native in natives if what else ():
            dtype = _dtype_of(native, self.backend)
            if dtype.kind not in ("float", "complex"):
                raise TypeError(f"the {what} of a function needs floating-point results, and this one gave {dtype}")
        return natives

    def tree(self, natives: Sequence[Any]) -> Any:
        leaves = list(self.rest)
        for place, portable, native in zip(self.places, self.portable, natives, strict=True):
            leaves[place] = restore_kind(native, portable, self.backend)
        return self.structure(leaves)


def is_tensor_of(x: Any, backend: Backend) -> bool:
    """Return whether ``x`` is a portable or recorded tensor, or a native one of ``backend``."""
    return type(x) is EmberTensor or type(x) is Var or backend.is_native(x)


def check_function(f: Any, what: str) -> None:
    """Raise where ``f`` cannot be called."""
    if not callable(f):
        raise TypeError(f"{what} takes a function, not {type(f).__name__}: {what}(f)(x), not {what}(f(x))")


class Arguments:
    """The arguments of a function that ``argnums`` chooses by position or name."""

    __slots__ = ("chosen", "function", "is_first", "is_single", "positions")

    chosen: tuple[Argument, ...]
    function: Callable[..., Any]
    is_first: bool
    """Whether only the first argument is chosen."""
    is_single: bool
    positions: dict[str, int]

    def __init__(self, function: Callable[..., Any], argnums: Argument | Sequence[Argument], what: str) -> None:
        check_function(function, what)
        self.function = function
        self.is_single = isinstance(argnums, int | str)
        self.chosen = (argnums,) if isinstance(argnums, int | str) else _list_argnums(argnums)
        self.is_first = type(argnums) is int and argnums == 0
        self.positions = {}
        if any(isinstance(argument, str) for argument in self.chosen):
            parameters = inspect.signature(function).parameters.values()
            named = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
            self.positions = {name: place for place, name in enumerate(named)}

    def pick(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the value of the chosen argument, or of several in a tuple."""
        if self.is_single:
            slot = self._slot(self.chosen[0], args, kwargs)
            return kwargs[slot] if isinstance(slot, str) else args[slot]
        slots = [self._slot(argument, args, kwargs) for argument in self.chosen]
        if len(set(slots)) < len(slots):
            raise ValueError(f"argnums {self.chosen} means one argument twice")
        return tuple(kwargs[slot] if isinstance(slot, str) else args[slot] for slot in slots)

    def _slot(self, argument: Argument, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Argument:
        """Return where the argument is: its name in ``kwargs``, or its index in ``args``."""
        if isinstance(argument, str):
            if argument in kwargs:
                return argument
            place = self.positions.get(argument, len(args))
        else:
            place = argument + len(args) if argument < 0 else argument
        if not 0 <= place < len(args):
            name = getattr(self.function, "__name__", "the function")
            raise ValueError(f"{name} was called without the argument {argument!r} that is to be differentiated")
        return place

    def put(self, picked: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return all arguments, with the chosen ones replaced by ``picked``."""
        new_args, new_kwargs = list(args), dict(kwargs)
        for argument, value in zip(self.chosen, (picked,) if self.is_single else picked, strict=True):
            slot = self._slot(argument, args, kwargs)
            if isinstance(slot, str):
                new_kwargs[slot] = value
            else:
                new_args[slot] = value
        return new_args, new_kwargs


def _replace_function(arguments: Arguments, parts: list[Any]) -> Arguments:
    made = copy(arguments)
    (made.function,) = parts
    return made


# so that variables that a function captures are found through its gradient too
trees.register_node(Arguments, lambda arguments: ((arguments.function,), arguments), _replace_function)


def _list_argnums(argnums: Any) -> tuple[Argument, ...]:
    if not isinstance(argnums, list | tuple) or not all(isinstance(argument, int | str) for argument in argnums):
        raise TypeError(f"argnums is a position, a name or a tuple of those, not {argnums!r}")
    return tuple(argnums)


def check_one_number(value: Any, backend: Backend) -> Any:
    """Return the result of a function that is differentiated, as a native tensor; raise unless it is a 0-d float."""
    if type(value) is backend.tensor_type:
        native, dtype = value, backend.dtype_of(value)
    elif type(value) is Var and value.tape.base is backend and not value.value.shape and value.dtype.kind == "float":
        return value
    else:
        if value is None or type(value) in (tuple, list, dict):
            raise TypeError(
                f"the gradient is that of one real number, and the function gave {type(value).__name__}; "
                "with has_aux=True it gives a pair: that number and anything else"
            )
        native = _to_native(value, backend)
        dtype = _dtype_of(native, backend)
    if native.ndim or dtype.kind != "float":
        advice = "take its real part or abs" if dtype.kind == "complex" else "reduce it with ops.sum or ops.mean"
        raise ValueError(
            "the gradient is that of one real number: the function must give a 0-d float tensor, and gave "
            f"{dtype} of shape {tuple(native.shape)}; {advice}"
        )
    return native


def match_leaves(tree: Any, structure: Any, like: Sequence[Any], backend: Backend) -> list[Any]:
    """Return the leaves of ``tree`` as native tensors of the dtypes and shapes of ``like``."""
    natives = [
        _to_native(leaf, backend, backend.device_of(other.plain() if type(other) is Var else other))
        for leaf, other in zip(structure.leaves(tree), like, strict=True)
    ]
    for native, other in zip(natives, like, strict=True):
        if tuple(native.shape) != tuple(other.shape):
            raise ValueError(f"a tensor of shape {tuple(native.shape)} stands where {tuple(other.shape)} is needed")
    pairs = zip(natives, like, strict=True)
    return [x if type(x) is Var else backend.cast(x, backend.dtypes[_dtype_of(y, backend)]) for x, y in pairs]


def fit_gradient(gradient: Any, x: Any, backend: Backend, name: str) -> Any:
    """Sum a caller's gradient of ``x`` over broadcast axes and cast it to the dtype of ``x``; None is zeros."""
    shape, dtype = tuple(x.shape), _dtype_of(x, backend)
    if gradient is None or dtype.kind not in ("float", "complex"):
        return OPS["zeros_like"].function(x)
    native = _to_native(gradient, backend)
    given = tuple(native.shape)
    if given != shape:
        behind = given[len(given) - len(shape) :]
        if len(given) < len(shape) or any(a not in (b, 1) for a, b in zip(shape, behind, strict=True)):
            raise ValueError(f"the gradient function of {name} gave shape {given} for an argument of shape {shape}")
        native = unbroadcast(native, shape)
    if dtype.kind == "float" and _dtype_of(native, backend).kind == "complex":
        native = OPS["real"].function(native)
    return OPS["cast"].function(native, dtype)

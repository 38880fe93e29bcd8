"""Gradients of functions, on every backend: of tensors, of nested containers, of modules.

PyTorch and MLX differentiate with their own engines; on NumPy, and on any backend that brings no engine, the tape does.
Functions of functions take a Python function and give one; nothing is computed until that is called, on the backend
that is active then.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ember_ml import trees
from ember_ml.backend import active
from ember_ml.backend.streams import bookmark, streaming
from ember_ml.ops.closures import open_closure
from ember_ml.ops.declare import gradient, plain, primitive
from ember_ml.ops.dispatch import bring
from ember_ml.ops.engine import engine_of
from ember_ml.ops.rules import KEEP
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.var import Var
from ember_ml.typing import Tensor, TensorLike

__all__ = [
    "checkpoint",
    "custom_gradient",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
]

Argument = int | str


class _Leaves:
    """The tensors in a tree as native ones, and the way back."""

    __slots__ = ("backend", "natives", "portable", "structure")

    def __init__(self, tree: Any, backend: Any, what: str = "") -> None:
        leaves, self.structure = trees.flatten(tree)
        self.backend = backend
        own = backend.tensor_type
        self.portable = None
        if all(type(leaf) is own for leaf in leaves):
            self.natives = leaves
        else:
            self.portable = [type(leaf) is EmberTensor for leaf in leaves]
            self.natives = [_native(leaf, backend) for leaf in leaves]
        for native in self.natives if what else ():
            dtype = _dtype_of(native, backend)
            if dtype.kind not in ("float", "complex"):
                raise TypeError(f"{what} needs floating-point tensors, and got {dtype}; cast it first")

    def tree(self, natives: Sequence[Any]) -> Any:
        """The same tree with other tensors: portable where the first ones were."""
        if self.portable is None:
            return self.structure(natives)
        pairs = zip(natives, self.portable, strict=True)
        return self.structure([_wrapped(x, self.backend) if portable else x for x, portable in pairs])


def _native(leaf: Any, backend: Any) -> Any:
    if type(leaf) is EmberTensor:
        leaf = leaf._array
    return leaf if type(leaf) is Var else bring(leaf, backend)


def _wrapped(x: Any, backend: Any) -> Any:
    return wrap(x, x.tape if type(x) is Var else backend)


def _dtype_of(native: Any, backend: Any) -> Any:
    return native.dtype if type(native) is Var else backend.dtype_of(native)


class _Outputs:
    """What a function gave, with its tensors apart; the structure is known once the function has run."""

    __slots__ = ("backend", "places", "portable", "rest", "structure")

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def take(self, tree: Any, strict: bool) -> list[Any]:
        """The native tensors in ``tree``; with ``strict`` whatever is no tensor becomes one."""
        leaves, self.structure = trees.flatten(tree)
        self.places = [i for i, leaf in enumerate(leaves) if strict or _is_tensor(leaf, self.backend)]
        self.portable = [type(leaves[i]) is EmberTensor for i in self.places]
        natives = [_native(leaves[i], self.backend) for i in self.places]
        for place in self.places:
            leaves[place] = None  # a tensor kept here would keep all that it was computed from
        self.rest = leaves
        return natives

    def tree(self, natives: Sequence[Any]) -> Any:
        leaves = list(self.rest)
        for place, portable, native in zip(self.places, self.portable, natives, strict=True):
            leaves[place] = _wrapped(native, self.backend) if portable else native
        return self.structure(leaves)


def _is_tensor(x: Any, backend: Any) -> bool:
    return type(x) is EmberTensor or type(x) is Var or backend.is_native(x)


class _Arguments:
    """Which arguments of a function are meant by position or name, and how the others stay as they are."""

    __slots__ = ("chosen", "function", "is_single", "positions")

    def __init__(self, function: Callable[..., Any], argnums: Argument | Sequence[Argument]) -> None:
        self.function = function
        self.is_single = isinstance(argnums, int | str)
        self.chosen: tuple[Argument, ...] = (argnums,) if isinstance(argnums, int | str) else tuple(argnums)
        self.positions: dict[str, int] = {}
        if any(isinstance(argument, str) for argument in self.chosen):
            self.positions = {name: place for place, name in enumerate(inspect.signature(function).parameters)}

    def pick(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._find(argument, args, kwargs) for argument in self.chosen)

    def _find(self, argument: Argument, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(argument, str):
            if argument in kwargs:
                return kwargs[argument]
            place = self.positions.get(argument, len(args))
        else:
            place = argument + len(args) if argument < 0 else argument
        if not 0 <= place < len(args):
            name = getattr(self.function, "__name__", "the function")
            raise ValueError(f"{name} was called without the argument {argument!r} that is to be differentiated")
        return args[place]

    def put(self, picked: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict]:
        new_args, new_kwargs = list(args), dict(kwargs)
        for argument, value in zip(self.chosen, picked, strict=True):
            if isinstance(argument, str) and argument in new_kwargs:
                new_kwargs[argument] = value
            else:
                new_args[self.positions[argument] if isinstance(argument, str) else argument] = value
        return new_args, new_kwargs


def _scalar(value: Any, backend: Any) -> Any:
    native = _native(value, backend)
    if tuple(native.shape) != () or _dtype_of(native, backend).kind != "float":
        raise ValueError(
            "the gradient is that of one real number: the function must give a 0-d float tensor, and gave "
            f"{_dtype_of(native, backend)} of shape {tuple(native.shape)}; reduce it with ops.sum or ops.mean"
        )
    return native


@plain
def value_and_grad(
    f: Callable[..., Any], argnums: Argument | Sequence[Argument] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that gives the value of ``f`` and its gradient with respect to the arguments ``argnums``.

    ``argnums`` names arguments by position or name; for several the gradients are a tuple. An argument may be a tensor,
    a Python float, or nested dicts, lists and tuples of them: the gradient has the same form, and is portable where the
    argument is. ``f`` gives one real number, or with ``has_aux`` that and anything else, which is passed on. An
    argument that ``f`` does not use has gradient zero.

    >>> from ember_ml import ops
    >>> f = ops.value_and_grad(lambda p: ops.sum(p["w"] * p["w"]) + p["b"])
    >>> value, gradient = f({"w": ops.array([1.0, 2.0]), "b": 0.5})
    >>> ops.item(value), ops.to_numpy(gradient["w"]).tolist(), ops.item(gradient["b"])
    (5.5, [2.0, 4.0], 1.0)
    """
    arguments = _Arguments(f, argnums)

    @wraps(f)
    def value_and_gradients(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        backend = active()
        leaves = _Leaves(arguments.pick(args, kwargs), backend, "grad")
        outputs, is_portable = _Outputs(backend), False

        def flat(*natives: Any) -> tuple[Any, list[Any]]:
            nonlocal is_portable
            new_args, new_kwargs = arguments.put(leaves.tree(natives), args, kwargs)
            result = f(*new_args, **new_kwargs)
            value, rest = result if has_aux else (result, None)
            is_portable = type(value) is EmberTensor
            return _scalar(value, backend), outputs.take(rest, strict=False)

        value, rest, gradients = engine_of(backend, leaves.natives).value_and_gradients(flat, leaves.natives)
        found = leaves.tree(gradients)
        if is_portable:
            value = _wrapped(value, backend)
        return (value, outputs.tree(rest)) if has_aux else value, found[0] if arguments.is_single else found

    return value_and_gradients


@plain
def grad(
    f: Callable[..., Any], argnums: Argument | Sequence[Argument] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that gives the gradient of ``f`` like :func:`value_and_grad`; with ``has_aux`` also what else it gave.

    >>> from ember_ml import ops
    >>> slope = ops.grad(lambda x: ops.power(x, 3.0))
    >>> ops.item(slope(2.0)), ops.item(ops.grad(slope)(2.0))
    (12.0, 12.0)
    """
    both = value_and_grad(f, argnums, has_aux)

    @wraps(f)
    def gradients(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradients


@plain
def vjp(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """What ``f`` gives for ``primals``, and the function that takes a gradient of that back to one of each argument.

    >>> from ember_ml import ops
    >>> value, pull = ops.vjp(lambda x: x * x, ops.array([1.0, 2.0]))
    >>> ops.to_numpy(pull(ops.array([1.0, 10.0]))[0]).tolist()
    [2.0, 40.0]
    """
    backend = active()
    leaves, outputs = _Leaves(primals, backend, "vjp"), _Outputs(backend)

    def flat(*natives: Any) -> list[Any]:
        return outputs.take(f(*leaves.tree(natives)), strict=True)

    results, pull = engine_of(backend, leaves.natives).pullback(flat, leaves.natives)
    value = outputs.tree(results)

    def pull_tree(cotangents: Any) -> tuple[Any, ...]:
        given = _matched(cotangents, outputs.structure, results, backend)
        return leaves.tree(list(pull(given)))

    return value, pull_tree


def _matched(tree: Any, structure: Any, like: Sequence[Any], backend: Any) -> list[Any]:
    """The leaves of ``tree`` as native tensors of the dtypes and shapes of ``like``."""
    natives = [_native(leaf, backend) for leaf in structure.leaves(tree)]
    for native, other in zip(natives, like, strict=True):
        if tuple(native.shape) != tuple(other.shape):
            raise ValueError(f"a tensor of shape {tuple(native.shape)} stands where {tuple(other.shape)} is needed")
    pairs = zip(natives, like, strict=True)
    return [x if type(x) is Var else backend.cast(x, backend.dtypes[_dtype_of(y, backend)]) for x, y in pairs]


@plain
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """What ``f`` gives for ``primals``, and how that changes along ``tangents``.

    >>> from ember_ml import ops
    >>> value, slope = ops.jvp(ops.square, (ops.array(3.0),), (ops.array(1.0),))
    >>> ops.item(value), ops.item(slope)
    (9.0, 6.0)
    """
    backend = active()
    leaves, outputs = _Leaves(tuple(primals), backend, "jvp"), _Outputs(backend)
    directions = _matched(tuple(tangents), leaves.structure, leaves.natives, backend)

    def flat(*natives: Any) -> list[Any]:
        return outputs.take(f(*leaves.tree(natives)), strict=True)

    results, changes = engine_of(backend, leaves.natives).pushforward(flat, leaves.natives, directions)
    return outputs.tree(results), outputs.tree(changes)


@plain
def jacobian(f: Callable[..., Any], argnums: Argument | Sequence[Argument] = 0) -> Callable[..., Any]:
    """A function that gives the derivative of every element of what ``f`` gives by every element of its arguments.

    Of an output of shape ``s`` and an argument of shape ``t`` it has shape ``s + t``; nested containers give nested
    results, the output's outside.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.jacobian(lambda x: x * x)(ops.array([1.0, 2.0]))).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    arguments = _Arguments(f, argnums)

    @wraps(f)
    def derivatives(*args: Any, **kwargs: Any) -> Any:
        backend = active()
        leaves, outputs = _Leaves(arguments.pick(args, kwargs), backend, "jacobian"), _Outputs(backend)

        def flat(*natives: Any) -> list[Any]:
            new_args, new_kwargs = arguments.put(leaves.tree(natives), args, kwargs)
            return outputs.take(f(*new_args, **new_kwargs), strict=True)

        rows = engine_of(backend, leaves.natives).jacobian(flat, leaves.natives)
        found = [leaves.tree(list(row)) for row in rows]
        return outputs.structure([part[0] for part in found] if arguments.is_single else found)

    return derivatives


@plain
def hessian(f: Callable[..., Any], argnums: Argument | Sequence[Argument] = 0) -> Callable[..., Any]:
    """A function that gives the second derivatives of ``f``, which gives one number.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.hessian(lambda x: ops.sum(x * x * x))(ops.array([1.0, 2.0]))).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(grad(f, argnums), argnums)


@plain
def vmap(
    f: Callable[..., Any], in_axes: int | Sequence[int | None] | None = 0, out_axes: int = 0
) -> Callable[..., Any]:
    """A function that applies ``f`` to every slice of its arguments along ``in_axes`` and stacks what it gives.

    ``in_axes`` is one axis for all arguments or one for each; an argument with None is given whole to each call.
    PyTorch and MLX compute all slices at once; on NumPy ``f`` runs once for each.

    >>> from ember_ml import ops
    >>> dots = ops.vmap(ops.dot)
    >>> ops.to_numpy(dots(ops.array([[1.0, 2.0], [3.0, 4.0]]), ops.array([[1.0, 1.0], [1.0, 1.0]]))).tolist()
    [3.0, 7.0]
    """

    @wraps(f)
    def mapped(*args: Any) -> Any:
        backend = active()
        leaves, outputs = _Leaves(args, backend), _Outputs(backend)
        each = (in_axes,) * len(args) if in_axes is None or isinstance(in_axes, int) else tuple(in_axes)
        if len(each) != len(args):
            raise ValueError(f"vmap got {len(args)} arguments, and in_axes for {len(each)}")
        axes = [axis for arg, axis in zip(args, each, strict=True) for _ in trees.flatten(arg)[0]]
        lengths = {x.shape[axis] for x, axis in zip(leaves.natives, axes, strict=True) if axis is not None}
        if len(lengths) != 1:
            raise ValueError(f"vmap needs one length along in_axes, and found {sorted(lengths) or 'none'}")

        def flat(*natives: Any) -> list[Any]:
            return outputs.take(f(*leaves.tree(natives)), strict=True)

        return outputs.tree(engine_of(backend, leaves.natives).vmap(flat, leaves.natives, axes, out_axes))

    return mapped


@primitive(KEEP)
def stop_gradient(x: TensorLike) -> Tensor:
    """``x`` itself, as a constant to every gradient.

    >>> from ember_ml import ops
    >>> ops.item(ops.grad(lambda x: x * ops.stop_gradient(x))(3.0))
    3.0
    """
    ...


gradient(stop_gradient, x=None)


@plain
def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` with its own gradient: it gives its result and a function from the result's gradient to its arguments'.

    With several results that function gets a gradient for each; with several arguments it gives a tuple of gradients.

    >>> from ember_ml import ops
    >>> @ops.custom_gradient
    ... def clipped(x):
    ...     return ops.exp(x), lambda upstream: ops.clip(upstream, -1.0, 1.0)
    >>> ops.item(ops.grad(lambda x: 5.0 * clipped(x))(0.0))
    1.0
    """

    @wraps(f)
    def wrapped(*args: Any) -> Any:
        backend = active()
        leaves, outputs = _Leaves(args, backend), _Outputs(backend)

        def flat(*natives: Any) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
            result, rule = f(*leaves.tree(natives))
            results = outputs.take(result, strict=True)

            def pull(gradients: Sequence[Any]) -> list[Any]:
                tree = outputs.tree(gradients)
                found = rule(*tree) if isinstance(tree, tuple) else rule(tree)
                found = found if isinstance(found, tuple) and len(args) > 1 else (found,)
                return [_native(leaf, backend) for leaf in leaves.structure.leaves(found)]

            return results, pull

        return outputs.tree(list(engine_of(backend, leaves.natives).custom(flat, leaves.natives)))

    return wrapped


@plain
def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, whose inner values are not kept for the gradient but computed again when it is taken: time for memory.

    >>> from ember_ml import ops
    >>> block = ops.checkpoint(lambda x: ops.sin(ops.exp(x)))
    >>> f = lambda g: ops.grad(lambda x: ops.sum(g(x)))
    >>> x = ops.array([0.1, 0.2])
    >>> ops.item(ops.allclose(f(block)(x), f(lambda x: ops.sin(ops.exp(x)))(x)))
    True
    """

    @wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        backend = active()
        captured, rebuilt = [], None
        if hasattr(engine_of(backend), "sees_arguments_only"):
            captured, rebuilt = open_closure(f, lambda x: _is_tensor(x, backend))
        leaves, outputs = _Leaves((args, captured), backend), _Outputs(backend)
        again: Any = None

        def run(natives: Sequence[Any]) -> list[Any]:
            new_args, others = leaves.tree(natives)
            function = f if rebuilt is None else rebuilt(others)
            return outputs.take(function(*new_args, **kwargs), strict=True)

        def flat(*natives: Any) -> list[Any]:
            nonlocal again
            if again is None:
                again = bookmark()
                return run(natives)
            with streaming(again()):  # the second time it draws the same random numbers
                return run(natives)

        return outputs.tree(list(engine_of(backend, leaves.natives).checkpoint(flat, leaves.natives)))

    return wrapped

"""Gradients of functions, on every backend: of tensors, of nested containers, of modules.

PyTorch, MLX and JAX differentiate with their own engines; on NumPy, and on any backend without one, the tape does.
Functions of functions take a Python function and give one; nothing is computed until that is called, on the backend
that is active then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from ember_ml import ops
from ember_ml.autodiff.captured_tensors import Closure, open_closure
from ember_ml.autodiff.engines import run, while_on
from ember_ml.backend.contract import Backend
from ember_ml.backend.random.generator import bookmark, streaming
from ember_ml.backend.selection import active, half_here
from ember_ml.core import trees
from ember_ml.dispatch.declare import plain
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.variable import Variable, assign_all, keep, put_back, values_of
from ember_ml.transforms.arguments import (
    Argument,
    Arguments,
    Leaves,
    Outputs,
    check_function,
    check_one_number,
    fit_gradient,
    is_tensor_of,
    match_leaves,
    restore_kind,
)
from ember_ml.transforms.captured_variables import Holder, State, find_holders

__all__ = [
    "checkpoint",
    "custom_gradient",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vectorize",
    "vjp",
    "vmap",
]


@plain
def value_and_grad(
    f: Callable[..., Any], argnums: Argument | Sequence[Argument] = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """A function that gives the value of ``f`` and its gradient with respect to the arguments ``argnums``.

    ``argnums`` names arguments by position or name; for several the gradients are a tuple. An argument may be a tensor,
    a Python float, or nested dicts, lists and tuples of them: the gradient has the same form, and is portable where the
    argument is. Of a module it is a dict of the gradients of its trainable parameters by name. ``f`` gives one real
    number, or with ``has_aux`` that and anything else, which is passed on. An
    argument that ``f`` does not use has gradient zero.

    >>> from ember_ml import ops
    >>> f = ops.value_and_grad(lambda p: ops.sum(p["w"] * p["w"]) + p["b"])
    >>> value, gradient = f({"w": ops.array([1.0, 2.0]), "b": 0.5})
    >>> ops.item(value), ops.to_numpy(gradient["w"]).tolist(), ops.item(gradient["b"])
    (5.5, [2.0, 4.0], 1.0)
    """
    arguments = Arguments(f, argnums, "grad")

    @wraps(f)
    def value_and_gradients(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        backend, is_first = active(), args and arguments.is_first
        picked = args[0] if is_first else arguments.pick(args, kwargs)
        if isinstance(picked, Holder) or (type(picked) is tuple and any(isinstance(x, Holder) for x in picked)):
            return _differentiate_modules(f, arguments, has_aux, args, kwargs)
        leaves = Leaves(picked, backend, "grad")
        outputs, is_portable = Outputs(backend) if has_aux else None, False

        def flat(*natives: Any) -> tuple[Any, list[Any]]:
            nonlocal is_portable
            rest: list[Any] = []
            if is_first:
                value = f(leaves.tree(natives), *args[1:], **kwargs)
            else:
                new_args, new_kwargs = arguments.put(leaves.tree(natives), args, kwargs)
                value = f(*new_args, **new_kwargs)
            if outputs is not None:
                value, aux = _check_pair(value)
                rest = outputs.take(aux, strict=False)
            is_portable = type(value) is EmberTensor
            return check_one_number(value, backend), rest

        value, rest, gradients = run("value_and_gradients", flat, backend, leaves.natives)
        value = restore_kind(value, is_portable, backend)
        return value if outputs is None else (value, outputs.tree(rest)), leaves.tree(gradients)

    return value_and_gradients


def _check_pair(result: Any) -> tuple[Any, Any]:
    """Return the number and the rest that a function with ``has_aux`` gave."""
    if not (isinstance(result, tuple) and len(result) == 2):
        raise TypeError("with has_aux=True the function gives a pair: a number and anything else")
    return result


def _differentiate_modules(
    f: Callable[..., Any], arguments: Arguments, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """Return value and gradients where an argument is a module: differentiate by its parameters."""
    found = arguments.pick(args, kwargs)
    picked = (found,) if arguments.is_single else found
    named = [x.trained_variables() if isinstance(x, Holder) else None for x in picked]
    backend = active()
    trained = {id(x) for variables in named if variables for x in variables.values()}
    held = [x.held() for x in picked if isinstance(x, Holder)]
    others = {id(x): x for variables, _ in filter(None, held) for x in variables if id(x) not in trained}
    assigned: list[Variable] = []

    def of_tensors(*given: Any) -> tuple[Any, Any]:
        """Call ``f`` while its modules hold the given tensors; return also what it assigned to other variables."""
        kept = keep(x for variables in named if variables for x in variables.values())
        kept_others = keep(others.values())
        values = list(given)
        for place, variables in enumerate(named):
            if variables is not None:
                for name, variable in variables.items():
                    variable.held, variable.home = given[place][name], backend
                values[place] = picked[place]
        try:
            new_args, new_kwargs = arguments.put(values[0] if arguments.is_single else values, args, kwargs)
            result = f(*new_args, **new_kwargs)
            assigned[:] = [x for x, tensor, _ in kept_others if x.held is not tensor]
            changes = values_of(assigned)
        finally:  # no variable keeps a recorded tensor
            put_back(kept)
            put_back(kept_others)
        value, rest = _check_pair(result) if has_aux else (result, None)
        return value, (rest, changes)

    tensors = [
        x if variables is None else {name: variable.value for name, variable in variables.items()}
        for x, variables in zip(picked, named, strict=True)
    ]
    (value, (rest, changes)), found = value_and_grad(of_tensors, tuple(range(len(picked))), has_aux=True)(*tensors)
    assign_all(assigned, changes)
    return (value, rest) if has_aux else value, found[0] if arguments.is_single else found


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
    check_function(f, "vjp")
    backend = active()
    leaves, outputs = Leaves(primals, backend, "vjp"), Outputs(backend)

    def flat(*natives: Any) -> list[Any]:
        return outputs.take(f(*leaves.tree(natives)), strict=True)

    results, pull = run("pullback", flat, backend, leaves.natives)
    value = outputs.tree(results)

    def pull_tree(cotangents: Any) -> tuple[Any, ...]:
        with while_on(backend):
            given = match_leaves(cotangents, outputs.structure, results, backend)
            return leaves.tree(list(pull(given)))

    return value, pull_tree


@plain
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """What ``f`` gives for ``primals``, and how that changes along ``tangents``.

    >>> from ember_ml import ops
    >>> value, slope = ops.jvp(ops.square, (ops.array(3.0),), (ops.array(1.0),))
    >>> ops.item(value), ops.item(slope)
    (9.0, 6.0)
    """
    check_function(f, "jvp")
    if not isinstance(primals, list | tuple) or not isinstance(tangents, list | tuple):
        raise TypeError("jvp takes the arguments of the function as a tuple, and a tuple of their tangents")
    backend = active()
    leaves, outputs = Leaves(tuple(primals), backend, "jvp"), Outputs(backend)
    directions = match_leaves(tuple(tangents), leaves.structure, leaves.natives, backend)

    def flat(*natives: Any) -> list[Any]:
        return outputs.take(f(*leaves.tree(natives)), strict=True)

    results, changes = run("pushforward", flat, backend, leaves.natives, directions)
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
    arguments = Arguments(f, argnums, "jacobian")

    @wraps(f)
    def derivatives(*args: Any, **kwargs: Any) -> Any:
        backend = active()
        leaves, outputs = Leaves(arguments.pick(args, kwargs), backend, "jacobian"), Outputs(backend)

        def flat(*natives: Any) -> list[Any]:
            new_args, new_kwargs = arguments.put(leaves.tree(natives), args, kwargs)
            return outputs.take(f(*new_args, **new_kwargs), strict=True, what="jacobian")

        rows = run("jacobian", flat, backend, leaves.natives)
        return outputs.structure([leaves.tree(list(row)) for row in rows])

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

    check_function(f, "vmap")

    @wraps(f)
    def mapped(*args: Any) -> Any:
        backend = active()
        leaves, outputs = Leaves(args, backend), Outputs(backend)
        each = (in_axes,) * len(args) if in_axes is None or isinstance(in_axes, int) else tuple(in_axes)
        if len(each) != len(args):
            raise ValueError(f"vmap got {len(args)} arguments, and in_axes for {len(each)}")
        axes = [axis for arg, axis in zip(args, each, strict=True) for _ in trees.flatten(arg)[0]]
        lengths = {_length(x, axis) for x, axis in zip(leaves.natives, axes, strict=True) if axis is not None}
        if len(lengths) != 1:
            raise ValueError(f"vmap needs one length along in_axes, and found {sorted(lengths) or 'none'}")

        def flat(*natives: Any) -> list[Any]:
            return outputs.take(f(*leaves.tree(natives)), strict=True)

        return outputs.tree(run("vmap", flat, backend, leaves.natives, axes, out_axes))

    return mapped


@plain
def vectorize(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that applies ``f``, of numbers, to the elements of its arguments, which broadcast.

    Like :func:`vmap` it computes all elements at once where the backend can.

    >>> from ember_ml import ops
    >>> larger = ops.vectorize(lambda x, y: ops.where(x > y, x, y))
    >>> ops.to_numpy(larger(ops.array([[1.0], [4.0]]), ops.array([2.0, 3.0]))).tolist()
    [[2.0, 3.0], [4.0, 4.0]]
    """
    check_function(f, "vectorize")

    @wraps(f)
    def elementwise(*args: Any) -> Any:
        arrays = ops.broadcast_arrays(*map(ops.asarray, args))
        shape = ops.shape(arrays[0])
        results = vmap(f)(*(ops.reshape(x, (-1,)) for x in arrays))
        return trees.map_tree(lambda y: ops.reshape(y, (*shape, *ops.shape(y)[1:])), results)

    return elementwise


def _length(x: Any, axis: int) -> int:
    shape = tuple(x.shape)
    if not -len(shape) <= axis < len(shape):
        raise IndexError(f"vmap over axis {axis} of a tensor of shape {shape}, which has no such axis")
    return shape[axis]


@plain
def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` with its own gradient: it gives its result and a function from the result's gradient to its arguments'.

    With several results that function gets a gradient for each; with several arguments it gives a tuple of gradients,
    None where there is none. Gradients flow to the arguments alone: what ``f`` closes over is constant.

    >>> from ember_ml import ops
    >>> @ops.custom_gradient
    ... def clipped(x):
    ...     return ops.exp(x), lambda upstream: ops.clip(upstream, -1.0, 1.0)
    >>> ops.item(ops.grad(lambda x: 5.0 * clipped(x))(0.0))
    1.0
    """

    check_function(f, "custom_gradient")
    name = getattr(f, "__name__", "the function")

    @wraps(f)
    def with_own_gradient(*args: Any) -> Any:
        backend, half, closure = active(), half_here(), Closure([], lambda _: f, True)
        if backend.gradients is not None and backend.gradients.refuses_captured:
            closure = open_closure(f, lambda x: _is_recorded(x, backend))
        leaves, outputs = Leaves((args, closure.tensors), backend), Outputs(backend)

        def flat(*natives: Any) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
            with while_on(backend, half):
                given, held = leaves.tree(natives)
                result, rule = closure.rebuild(held)(*given)
                results = outputs.take(result, strict=True)

            def pull(gradients: Sequence[Any]) -> list[Any]:
                with while_on(backend, half):
                    tree = outputs.tree(gradients)
                    found = rule(*tree) if isinstance(tree, tuple) else rule(tree)
                    parts = _match_arguments(found if len(args) > 1 else (found,), args, name)
                    parts += [None] * len(closure.tensors)
                    return [fit_gradient(part, x, backend, name) for part, x in zip(parts, natives, strict=True)]

            return results, pull

        return outputs.tree(list(run("custom", flat, backend, leaves.natives)))

    return with_own_gradient


def _is_recorded(x: Any, backend: Backend) -> bool:
    native = x._array if type(x) is EmberTensor else x
    return backend.is_native(native) and backend.is_recorded(native)


def _match_arguments(found: Any, args: tuple[Any, ...], name: str) -> list[Any]:
    """Match a caller's gradients to the tensors of the arguments; None for those without a gradient."""
    if not isinstance(found, tuple) or len(found) != len(args):
        given = f"{len(found)} gradients" if isinstance(found, tuple) else "no tuple of gradients"
        raise ValueError(f"the gradient function of {name} gave {given} for {len(args)} arguments")
    parts: list[Any] = []
    for arg, part in zip(args, found, strict=True):
        structure = trees.flatten(arg)[1]
        parts += [None] * structure.count if part is None else structure.leaves(part)
    return parts


@plain
def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, whose inner values are not kept for the gradient but computed again when it is taken: time for memory.

    Gradients flow to the arguments and to whatever else ``f`` uses; ``f`` may be a module, or use some. Inside
    :func:`vmap`, and on PyTorch inside :func:`jacobian`, :func:`hessian` and :func:`jvp`, nothing is saved.

    >>> from ember_ml import ops
    >>> block = ops.checkpoint(lambda x: ops.sin(ops.exp(x)))
    >>> f = lambda g: ops.grad(lambda x: ops.sum(g(x)))
    >>> x = ops.array([0.1, 0.2])
    >>> ops.item(ops.allclose(f(block)(x), f(lambda x: ops.sin(ops.exp(x)))(x)))
    True
    """

    check_function(f, "checkpoint")

    @wraps(f)
    def computed_again(*args: Any, **kwargs: Any) -> Any:
        backend, half, call = active(), half_here(), partial(f, **kwargs) if kwargs else f
        state = State.of(find_holders(call))
        if state is None:  # a layer that is called for the first time makes its parameters
            return call(*args)
        variables = state.variables
        closure, again = Closure([], lambda _: call, True), None
        if backend.gradients is not None and backend.gradients.sees_arguments_only:
            closure = open_closure(call, lambda x: is_tensor_of(x, backend))
        leaves, outputs = Leaves((args, closure.tensors), backend), Outputs(backend)
        changed: list[Variable] = []

        def once(natives: Sequence[Any]) -> list[Any]:
            """Call the function while the variables that it uses hold the first of ``natives``."""
            given = natives[: len(variables)]
            kept = keep(variables)
            assign_all(variables, given)
            try:
                new_args, others = leaves.tree(natives[len(variables) :])
                found = outputs.take(closure.rebuild(others)(*new_args), strict=False)
                changed[:] = [v for v, before in zip(variables, given, strict=True) if v.held is not before]
                return [*found, *(variable.held for variable in changed)]
            finally:
                put_back(kept)

        def flat(*natives: Any) -> list[Any]:
            nonlocal again
            if again is None:
                again = bookmark()
                return once(natives)
            with while_on(backend, half), streaming(again()):  # draws the same random numbers again
                return once(natives)

        natives = [*values_of(variables), *leaves.natives]
        found = list(run("checkpoint", flat, backend, natives, closure.is_complete))
        assign_all(changed, found[len(found) - len(changed) :])
        return outputs.tree(found[: len(found) - len(changed)])

    return computed_again

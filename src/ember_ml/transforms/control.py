"""Control flow: branches and loops that compile where the backend compiles.

The functions that they take may work on native or portable tensors; operands, carried values and results may be nested
containers. Eager code runs as the Python that it stands for. Inside a function that PyTorch or JAX compiles, branches
and loops become the library's own; inside one that MLX compiles, and under the vectorizing transforms, all branches are
computed and the right one is selected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import as_dtype
from ember_ml.core.trees import map_tree
from ember_ml.dispatch.declare import plain
from ember_ml.errors import UnsupportedOp
from ember_ml.tensor.var import read_if_known
from ember_ml.transforms.loop_state import (
    LoopState,
    Tree,
    device_of,
    is_portable,
    to_tensor,
    traced_control_flow,
    wrap_portable,
)
from ember_ml.typing import TensorLike

__all__ = ["cond", "fori_loop", "switch", "while_loop"]

_BOOL, _INTEGER = ("bool",), ("int", "uint")


def _read(op: str, value: Any, kinds: tuple[str, ...], backend: Backend, device: str | None = None) -> tuple[Any, Any]:
    """Return the Python value of one number, None where it is traced, and the number as a native tensor."""
    native = to_tensor(value, backend, None, device)
    dtype, shape = as_dtype(native.dtype), tuple(native.shape)
    if dtype.kind not in kinds:
        hint = "compare it first: x != 0" if kinds is _BOOL else "cast it first"
        raise TypeError(f"ops.{op} decides by a {kinds[0]}, not by a tensor of {dtype}; {hint}")
    if any(length != 1 for length in shape):
        raise ValueError(f"ops.{op} decides by one {kinds[0]}, not by a tensor of shape {shape}; reduce it first")
    if type(value) in (bool, int):
        return value, native
    native = ops.reshape(native, ())
    return read_if_known(native, backend), native


@plain
def cond(pred: TensorLike, true_fn: Callable[..., Tree], false_fn: Callable[..., Tree], *operands: Tree) -> Any:
    """The result of ``true_fn(*operands)`` where ``pred`` is true, else that of ``false_fn(*operands)``.

    ``pred`` is one bool. Only the chosen function runs, except where ``pred`` cannot be known yet: both functions are
    then traced, and must give the same structure, dtypes and shapes. A function that PyTorch compiles still computes
    only the chosen one. One that MLX compiles, or that is vectorized over ``pred``, computes both and selects, so that
    both must be safe to compute.

    >>> from ember_ml import ops
    >>> x = ops.array([3.0, -4.0])
    >>> ops.to_numpy(ops.cond(ops.sum(x) > 0, lambda v: v, ops.negative, x)).tolist()
    [-3.0, 4.0]
    """
    if type(pred) is bool:
        return (true_fn if pred else false_fn)(*operands)
    backend = active()
    decided, native = _read("cond", pred, _BOOL, backend)
    if decided is not None:
        return (true_fn if decided else false_fn)(*operands)
    branches = (lambda: true_fn(*operands), lambda: false_fn(*operands))
    return _trace_branches("cond", native, branches, backend, is_portable(pred, operands))


def _trace_branches(
    op: str, pred: Any, branches: tuple[Callable[[], Tree], Callable[[], Tree]], backend: Backend, portable: bool
) -> Tree:
    """Trace both branches: in the backend's own conditional where it has one, else select between the results."""
    form = traced_control_flow(backend)
    if form is None:
        first = LoopState(op, "result of the branches", branches[0](), backend, portable, device_of(pred, backend))
        pairs = zip(first.leaves, first.keep(branches[1]()), strict=True)
        return first.tree([ops.where(pred, x, y) for x, y in pairs])

    device = device_of(pred, backend)

    def natives(function: Callable[[], Tree]) -> Callable[[], Tree]:
        return lambda: map_tree(lambda leaf: to_tensor(leaf, backend, None, device), function())

    result = form.cond(pred, natives(branches[0]), natives(branches[1]))
    return map_tree(lambda x: wrap_portable(x, backend), result) if portable else result


@plain
def switch(index: TensorLike, branches: Sequence[Callable[..., Tree]], *operands: Tree) -> Any:
    """The result of ``branches[index](*operands)``, with ``index`` clipped to the branches that there are.

    ``index`` is one integer. Where it cannot be known yet, what is said of :func:`cond` holds for all branches.

    >>> from ember_ml import ops
    >>> branches = [ops.sin, ops.square, ops.negative]
    >>> [ops.item(ops.switch(i, branches, 3.0)) for i in (1, 2, 7)]
    [9.0, -3.0, -3.0]
    """
    if not branches:
        raise ValueError("ops.switch needs at least one branch")
    backend = active()
    decided, native = _read("switch", index, _INTEGER, backend)
    if decided is not None:
        return branches[min(max(decided, 0), len(branches) - 1)](*operands)
    portable = is_portable(index, operands)

    def choose(first: int, last: int) -> Tree:
        if last - first == 1:
            return branches[first](*operands)
        middle = (first + last) // 2
        sides = (lambda: choose(first, middle), lambda: choose(middle, last))
        return _trace_branches("switch", ops.less(native, middle), sides, backend, portable)

    return choose(0, len(branches))


@plain
def while_loop(
    cond: Callable[..., TensorLike],
    body: Callable[..., Tree],
    loop_vars: Tree,
    maximum_iterations: int | None = None,
) -> Any:
    """What ``body`` has made of ``loop_vars``, called again and again, when ``cond`` is first false of it.

    ``cond`` gives one bool. Where ``loop_vars`` is a list or tuple, both functions take its elements as arguments of
    their own. ``body`` gives new variables of the same structure, dtypes and shapes, and runs ``maximum_iterations``
    times at most. Python numbers become tensors before the first step.

    A function that MLX compiles cannot ask for values, nor can a vectorized one, and JAX has no gradient of such a loop
    in a function that it compiles: ``UnsupportedOp``. Use :func:`fori_loop` with a fixed number of steps there, and
    select with :func:`where`.

    >>> from ember_ml import ops
    >>> n, total = ops.while_loop(lambda n, total: total < 10, lambda n, total: (n + 1, total + n), (0, 0))
    >>> ops.item(n), ops.item(total)
    (5, 10)
    """
    backend = active()
    is_spread = type(loop_vars) in (list, tuple)
    carried = LoopState("while_loop", "loop variables", loop_vars, backend, is_portable(loop_vars))

    def call(function: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        tree = carried.tree(leaves)
        return function(*tree) if is_spread else function(tree)

    def test(leaves: Sequence[Any]) -> tuple[Any, Any]:
        return _read("while_loop", call(cond, leaves), _BOOL, backend)

    def step(leaves: Sequence[Any]) -> list[Any]:
        result = call(body, leaves)
        if is_spread:  # a single variable may come bare
            result = type(loop_vars)(result if type(result) in (list, tuple) else (result,))
        return carried.keep(result)

    leaves, left = carried.leaves, maximum_iterations
    while left is None or left > 0:
        decided, _ = test(leaves)
        if decided is None:
            leaves = _trace_loop(lambda leaves: test(leaves)[1], step, leaves, left, backend)
            break
        if not decided:
            break
        leaves = step(leaves)
        left = None if left is None else left - 1
    return carried.tree(leaves)


def _trace_loop(
    test: Callable[[Sequence[Any]], Any],
    step: Callable[[Sequence[Any]], list[Any]],
    leaves: Sequence[Any],
    limit: int | None,
    backend: Backend,
) -> Sequence[Any]:
    """Trace a loop in the backend's own form, with a count of its steps where they are limited."""
    form = traced_control_flow(backend)
    if form is None:
        raise UnsupportedOp(
            f"{backend.name} cannot end a loop by a value while it compiles or vectorizes a function; "
            "use ops.fori_loop with Python integers as bounds, and select with ops.where"
        )
    if limit is None:
        return form.while_loop(test, step, leaves)

    def counted_test(leaves: Sequence[Any]) -> Any:
        return ops.logical_and(ops.less(leaves[0], limit), test(leaves[1:]))

    def counted_step(leaves: Sequence[Any]) -> list[Any]:
        return [ops.add(leaves[0], 1), *step(leaves[1:])]

    count = to_tensor(0, backend, None, device_of(leaves, backend))
    return form.while_loop(counted_test, counted_step, [count, *leaves])[1:]


@plain
def fori_loop(lower: TensorLike, upper: TensorLike, body_fun: Callable[[Any, Tree], Tree], init_val: Tree) -> Any:
    """What the steps ``val = body_fun(i, val)`` make of ``init_val``, with ``i`` from ``lower`` up to ``upper - 1``.

    With Python integers as bounds, ``i`` is a Python integer, and a compiled function holds each step by itself. With a
    tensor among the bounds, ``i`` is a tensor of int64, and a function that PyTorch compiles holds one loop. The values
    keep their structure, dtypes and shapes; Python numbers become tensors before the first step.

    >>> from ember_ml import ops
    >>> ops.item(ops.fori_loop(0, 5, lambda i, total: total + i, 0))
    10
    """
    backend = active()
    portable = is_portable(lower, upper, init_val)
    device = device_of((init_val, lower, upper), backend)
    carried = LoopState("fori_loop", "value", init_val, backend, portable, device)
    (first, start), (last, stop) = (_read("fori_loop", bound, _INTEGER, backend, device) for bound in (lower, upper))

    def step(i: Any, leaves: Sequence[Any]) -> list[Any]:
        return carried.keep(body_fun(i, carried.tree(leaves)))

    def counter(i: Any) -> Any:
        native = ops.cast(to_tensor(i, backend, None, device), "int64")
        return wrap_portable(native, backend) if portable else native

    if first is None or last is None:
        found = _trace_loop(
            lambda leaves: ops.less(leaves[0], stop),
            lambda leaves: [ops.add(leaves[0], 1), *step(counter(leaves[0]), leaves[1:])],
            [ops.cast(start, "int64"), *carried.leaves],
            None,
            backend,
        )
        return carried.tree(found[1:])
    is_fixed = not any(is_portable(bound) or backend.is_native(bound) for bound in (lower, upper))
    leaves = carried.leaves
    for i in range(first, last):
        leaves = step(i if is_fixed else counter(i), leaves)
    return carried.tree(leaves)

"""Control flow inside functions that PyTorch, MLX and JAX compile: the same results, nothing decided while tracing."""

from __future__ import annotations

import importlib.metadata
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.core.trees import flatten, map_tree
from ember_ml.errors import UnsupportedOp
from ember_ml.nn.tensor import EmberTensor

Pair = namedtuple("Pair", ["first", "second"])

# torch's own imports of what its scan needs
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


@pytest.fixture(params=["torch", "mlx", "jax"])
def compiler(request: pytest.FixtureRequest) -> Any:
    """Give the function that compiles on a backend, which is the active one."""
    if request.param == "torch":
        torch = pytest.importorskip("torch")
        torch.compiler.reset()
        compiled: Any = lambda f: torch.compile(f, backend="eager", fullgraph=True)  # noqa: E731
    elif request.param == "jax":
        compiled = pytest.importorskip("jax").jit
    else:
        compiled = pytest.importorskip("mlx.core").compile
    before = ember_ml.get_backend()
    ember_ml.set_backend(request.param)
    yield compiled
    ember_ml.set_backend(before)


def _cond(x: Any) -> Any:
    return ops.cond(ops.sum(x) > 0, lambda v: {"a": v, "b": [v * 2, None]}, lambda v: {"b": [-v, None], "a": v + 1}, x)


def _cond_with_constants(x: Any) -> Any:
    return ops.cond(ops.sum(x) > 0, lambda: Pair(x, ops.ones(())), lambda: Pair(ops.square(x), 2.0))


def _nested_cond(x: Any) -> Any:
    return ops.cond(
        ops.sum(x) > 0, lambda: ops.cond(ops.max(x) > 2.5, lambda: x * 2, lambda: x * 3), lambda: ops.sin(x)
    )


def _switch(x: Any) -> Any:
    index = ops.cast(ops.sum(x), "int64")
    return ops.switch(index, [ops.sin, ops.cos, ops.square, ops.negative, lambda v: v * 5], x)


def _fori(x: Any) -> Any:
    return ops.fori_loop(0, 4, lambda i, v: v * x + i, x)


def _scan(x: Any) -> Any:
    return ops.scan(lambda c, v: ({"c": ops.tanh(c["c"] * v)}, (v + c["c"], None)), {"c": 0.5}, x)


def _scan_reversed(x: Any) -> Any:
    return ops.scan(lambda c, v: (ops.tanh(c * v), v - c), 0.5, x, reverse=True)


def _scan_without_slices(x: Any) -> Any:
    return ops.scan(lambda c, _: (ops.tanh(c * 1.5), None), x, length=5)


def _map(x: Any) -> Any:
    return ops.map(lambda v: {"s": ops.sin(v)}, x)


def _vectorized(x: Any) -> Any:
    rows = ops.stack([x, -x])
    return ops.vectorized_map(lambda v: ops.cond(ops.sum(v) > 0, ops.sin, ops.cos, v), rows)


def _associative(x: Any) -> Any:
    return ops.associative_scan(lambda a, b: {"x": a["x"] * b["x"]}, {"x": x}, reverse=True)


def _portable(x: Any) -> Any:
    portable = ops.cond(ops.sum(x) > 0, lambda v: v * 2, lambda v: -v, EmberTensor(x))
    return ops.scan(lambda c, v: (c + v, c * v), 0.0, portable)[1]._array


EVERYWHERE = [
    _cond,
    _cond_with_constants,
    _nested_cond,
    _switch,
    _fori,
    _scan,
    _scan_reversed,
    _scan_without_slices,
    _map,
    _vectorized,
    _associative,
    _portable,
]
INPUTS = [[1.5, 2.0, 3.0], [-1.5, 0.5, 0.25], [0.5, 0.25, 0.75]]


def _numbers(tree: Any) -> Any:
    return map_tree(lambda x: x if isinstance(x, float) else ops.to_numpy(x).tolist(), tree)


def _skip_portable_branches(f: Callable[..., Any]) -> None:
    if f is _portable and ember_ml.get_backend() == "torch" and importlib.metadata.version("torch") < "2.13":
        pytest.skip("its branches cannot make portable tensors")


def _check(compiled: Callable[..., Any], f: Callable[..., Any], *rest: Any) -> None:
    for numbers in INPUTS:
        x = ops.array(numbers)
        wanted, found = _numbers(f(x, *rest)), _numbers(compiled(x, *rest))
        assert flatten(wanted)[1].leaves(found) == pytest.approx(flatten(wanted)[0], rel=1e-6)


@pytest.mark.parametrize("f", EVERYWHERE)
def test_compiled_gives_what_eager_gives(f: Callable[..., Any], compiler: Any) -> None:
    _skip_portable_branches(f)
    _check(compiler(f), f)


@pytest.mark.parametrize("f", [_nested_cond, _scan, _scan_reversed, _vectorized, _portable])
def test_compiled_is_differentiable(f: Callable[..., Any], compiler: Any) -> None:
    _skip_portable_branches(f)

    def loss(g: Callable[..., Any]) -> Callable[..., Any]:
        def total(x: Any) -> Any:
            floats = [ops.sum(ops.convert_to_tensor(leaf)) for leaf in flatten(g(x))[0]]
            return sum(floats[1:], floats[0])

        return total

    wanted = ops.grad(loss(f))
    found = ops.grad(loss(compiler(f)))
    for numbers in INPUTS:
        x = ops.array(numbers)
        assert ops.to_numpy(found(x)).tolist() == pytest.approx(ops.to_numpy(wanted(x)).tolist(), rel=1e-5, abs=1e-6)


def test_gradients_of_scans_are_computed_inside_of_compiled_functions(compiler: Any) -> None:
    def derive(x: Any) -> Any:
        return ops.grad(lambda x: sum(ops.sum(part) for part in _scan_reversed(x)))(x)

    _check(compiler(derive), derive)


def test_a_scan_is_compiled_by_the_front_end(backend: str) -> None:
    """PyTorch's compiler is asked in another way than where whole programs are wanted."""

    def f(x: Any) -> Any:
        return ops.scan(lambda c, v: (ops.tanh(c + v), c * v), 0.5, x)

    _check(ember_ml.compile(f), f)


def _while(x: Any) -> Any:
    return ops.while_loop(lambda n, v: ops.sum(v) < 100.0, lambda n, v: (n + 1, v * 2 + 1), (0, x), 50)


def _while_limited(x: Any) -> Any:
    return ops.while_loop(lambda d: ops.sum(d["v"]) < 1e6, lambda d: {"v": d["v"] * d["v"] + x}, {"v": x}, 3)


def _fori_by_tensors(x: Any, n: Any) -> Any:
    return ops.fori_loop(1, n, lambda i, d: {"s": d["s"] * x + i}, {"s": x})


def test_loops_that_end_by_a_value(compiler: Any) -> None:
    steps = ops.array(4)
    if ember_ml.get_backend() != "mlx":
        _check(compiler(_while), _while)
        _check(compiler(_while_limited), _while_limited)
        _check(compiler(_fori_by_tensors), _fori_by_tensors, steps)
        return
    for f, args in ((_while, ()), (_while_limited, ()), (_fori_by_tensors, (steps,))):
        with pytest.raises(UnsupportedOp, match=r"ops\.fori_loop with Python integers"):
            compiler(f)(ops.array(INPUTS[0]), *args)


def test_branches_that_differ_are_refused(compiler: Any) -> None:
    def f(x: Any) -> Any:
        return ops.cond(ops.sum(x) > 0, lambda: x, lambda: ops.sum(x))

    with pytest.raises(Exception, match=r"must keep its shape|cond"):
        compiler(f)(ops.array(INPUTS[0]))


def test_a_long_scan_is_one_loop_in_what_torch_compiles() -> None:
    torch = pytest.importorskip("torch")
    if torch.__version__ < "2.13":
        pytest.skip("the gradient of its loop is wrong, so every step is written into the program")
    sizes = []

    def measure(graph: Any, example: Any) -> Any:
        sizes.append(len(list(graph.graph.nodes)))
        return graph.forward

    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")
    try:
        for length in (3, 300):
            torch.compiler.reset()
            f = torch.compile(lambda x: ops.scan(lambda c, v: (c + v, c * v), 0.0, x), backend=measure, fullgraph=True)
            f(torch.ones(length))
    finally:
        ember_ml.set_backend(before)
    assert sizes[0] == sizes[1]


@pytest.mark.long
def test_torch_generates_code_of_control_flow() -> None:
    torch = pytest.importorskip("torch")
    torch.compiler.reset()
    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")

    def f(x: Any) -> Any:
        chosen = _nested_cond(x)
        looped = _while(chosen)[1]
        return ops.sum(ops.scan(lambda c, v: (ops.tanh(c * v), ops.matmul(ops.outer(x, x), x) * c), 0.5, looped)[1])

    try:
        x = torch.tensor([1.5, 2.0, 3.0], requires_grad=True)
        f(x).backward()
        wanted, x.grad = x.grad, None
        torch.compile(f, fullgraph=True)(x).backward()
        assert x.grad.tolist() == pytest.approx(wanted.tolist(), rel=1e-5)
    finally:
        ember_ml.set_backend(before)


@pytest.fixture
def torch_backend() -> Any:
    pytest.importorskip("torch").compiler.reset()
    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")
    yield
    ember_ml.set_backend(before)


def _square_root(p: Any) -> Any:
    """Return a square root by Newton's method."""

    def step(x: Any) -> tuple[Any]:
        value, slope = ops.jvp(lambda z: z * z - p, (x,), (ops.ones_like(x),))
        return (x - value / slope,)

    return ops.while_loop(lambda x: ops.abs(x * x - p) > 1e-5, step, (ops.ones(()),))[0]


def test_compiled_loops_and_branches_compute_forward_derivatives(torch_backend: None) -> None:
    if importlib.metadata.version("torch") < "2.13":
        pytest.skip("loops and branches that PyTorch 2.12 compiles have no derivatives in them")

    def branch(p: Any) -> Any:
        return ops.cond(p > 1, lambda q: ops.jvp(ops.square, (q,), (ops.ones_like(q),))[1], ops.negative, p)

    root, branch = ops.compile(_square_root), ops.compile(branch)
    for p in (9.0, 16.0, 0.25):
        assert ops.item(root(ops.array(p))) == pytest.approx(p**0.5, rel=1e-5)
        assert ops.item(branch(ops.array(p))) == pytest.approx(2 * p if p > 1 else -p)


def test_gradients_of_compiled_loops_are_refused(torch_backend: None) -> None:
    with pytest.raises(UnsupportedOp, match="the gradient of such a loop"):
        ops.compile(ops.grad(_square_root))(ops.array(9.0))

"""stop_gradient, custom_gradient and checkpoint."""

from __future__ import annotations

import gc
import warnings
import weakref
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.core.trees import map_tree, register_node
from ember_ml.nn.tensor import EmberTensor

EVERY_BACKEND = pytest.mark.parametrize("name", installed_backends())
X, W = [0.5, -1.5], [[1.0, 0.25], [-0.5, 2.0]]


def values(tree: Any) -> Any:
    return map_tree(lambda x: ops.to_numpy(x).tolist(), tree)


def close(found: Any, expected: Any) -> bool:
    pairs = map_tree(lambda a, b: ops.item(ops.max(ops.abs(ops.subtract(a, b)))) <= 1e-5, found, expected)
    flags: list[bool] = []
    map_tree(flags.append, pairs)
    return all(flags)


# Constants


def test_stop_gradient_gives_the_value_and_no_gradient(backend: str) -> None:
    x = ops.array([3.0, 4.0])
    assert values(ops.stop_gradient(x)) == [3.0, 4.0]
    assert values(ops.grad(lambda x: ops.sum(x * ops.stop_gradient(x)))(x)) == [3.0, 4.0]
    assert values(ops.grad(lambda x: ops.sum(ops.stop_gradient(x * x)))(x)) == [0.0, 0.0]
    assert values(ops.jvp(lambda x: x * ops.stop_gradient(x), (x,), (x,))[1]) == [9.0, 16.0]
    assert type(ops.stop_gradient(EmberTensor([1.0]))) is EmberTensor


def test_stop_gradient_stops_every_order(backend: str) -> None:
    assert ops.item(ops.grad(ops.grad(lambda x: x * x * ops.stop_gradient(x)))(3.0)) == 6.0


# Gradients of one's own


@ops.custom_gradient
def doubled(x: Any) -> Any:
    """The exponential, with a gradient that is not its own."""
    return ops.exp(x), lambda g: g * 2.0


@ops.custom_gradient
def product(x: Any, y: Any) -> Any:
    return x * y, lambda g: (g * y * 10.0, g * x * 100.0)


@ops.custom_gradient
def two_results(x: Any) -> Any:
    return (x * x, x + 1.0), lambda g, h: g * 2.0 * x + h * 3.0


@ops.custom_gradient
def square(x: Any) -> Any:
    return x * x, lambda g: g * 2.0 * x


@ops.custom_gradient
def of_tree(p: Any) -> Any:
    return {"s": p["a"] * p["b"]}, lambda g: {"a": g["s"] * p["b"], "b": -(g["s"] * p["a"])}


@ops.custom_gradient
def first_only(x: Any, y: Any) -> Any:
    return x * y, lambda g: (g * y, None)


def test_the_gradient_is_the_given_one(backend: str) -> None:
    x, y = ops.array([1.0, 2.0]), ops.array([3.0, 4.0])
    assert close(doubled(x), ops.exp(x))
    assert values(ops.grad(lambda x: ops.sum(doubled(x)))(x)) == [2.0, 2.0]
    assert values(ops.grad(lambda x, y: ops.sum(product(x, y)), (0, 1))(x, y)) == ([30.0, 40.0], [100.0, 200.0])
    assert values(ops.grad(lambda x: ops.sum(product(x, y)))(x)) == [30.0, 40.0]
    assert values(ops.grad(lambda y: ops.sum(product(x, y)))(y)) == [100.0, 200.0]
    assert values(ops.grad(lambda p: ops.sum(of_tree(p)["s"]))({"a": x, "b": y})) == {
        "a": [3.0, 4.0],
        "b": [-1.0, -2.0],
    }


def test_several_results(backend: str) -> None:
    x = ops.array([1.0, 2.0])
    assert values(ops.grad(lambda x: ops.sum(two_results(x)[0] * two_results(x)[1]))(x)) == [7.0, 24.0]
    assert values(ops.grad(lambda x: ops.sum(two_results(x)[1]))(x)) == [3.0, 3.0]


def test_every_transform_uses_it(backend: str) -> None:
    x = ops.array([1.0, 2.0])
    assert values(ops.jacobian(doubled)(x)) == [[2.0, 0.0], [0.0, 2.0]]
    assert values(ops.vjp(doubled, x)[1](x)) == ([2.0, 4.0],)
    assert values(ops.jvp(doubled, (x,), (x,))[1]) == [2.0, 4.0]
    assert values(ops.vmap(ops.grad(doubled))(x)) == [2.0, 2.0]
    assert close(ops.vmap(doubled)(x), ops.exp(x))
    assert values(ops.vmap(square)(x)) == [1.0, 4.0]


def test_second_derivatives_go_through_the_rule(backend: str) -> None:
    assert ops.item(ops.grad(ops.grad(lambda x: square(x) * x))(3.0)) == pytest.approx(18.0)
    assert ops.item(ops.grad(ops.grad(ops.grad(lambda x: square(x) * x)))(3.0)) == pytest.approx(6.0)
    assert values(ops.hessian(lambda x: ops.sum(square(x) * x))(ops.array([1.0, 2.0]))) == [[6.0, 0.0], [0.0, 12.0]]
    # exp with slope 2: f = x e(x), f' = e + 2 x, f'' = 2 + 2
    assert ops.item(ops.grad(ops.grad(lambda x: doubled(x) * x))(0.0)) == pytest.approx(4.0)


def test_arguments_without_gradient(backend: str) -> None:
    x = ops.array([1.0, 2.0])
    assert values(ops.grad(lambda x, y: ops.sum(first_only(x, y)), (0, 1))(x, x)) == ([1.0, 2.0], [0.0, 0.0])
    assert values(ops.grad(lambda x: ops.sum(first_only(x, ops.array([3, 4]))))(x)) == [3.0, 4.0]
    assert values(ops.grad(lambda x: ops.sum(first_only(x, 2.0)))(x)) == [2.0, 2.0]


def test_gradients_are_summed_where_the_argument_was_broadcast(backend: str) -> None:
    x, y = ops.array([[1.0, 2.0], [3.0, 4.0]]), ops.array([[2.0], [3.0]])
    _, of_y = ops.grad(lambda x, y: ops.sum(product(x, y)), (0, 1))(x, y)
    assert values(of_y) == [[300.0], [700.0]]
    assert ops.item(ops.grad(lambda y: ops.sum(product(x, y)))(2.0)) == 1000.0


def test_portable_tensors_and_dtypes(backend: str) -> None:
    x = EmberTensor([1.0, 2.0], dtype="float16")
    seen = []

    @ops.custom_gradient
    def f(x: Any) -> Any:
        seen.append(type(x))
        return x * x, lambda g: ops.multiply(ops.cast(g, "float32"), 3.0)

    gradient = ops.grad(lambda x: ops.sum(f(x)))(x)
    assert set(seen) == {EmberTensor}
    assert type(gradient) is EmberTensor
    assert gradient.dtype == "float16"
    assert gradient.tolist() == [3.0, 3.0]


def test_what_it_closes_over_is_constant(backend: str) -> None:
    x = ops.array([1.0, 2.0])

    def f(w: Any, x: Any) -> Any:
        return ops.sum(ops.custom_gradient(lambda x: (x * w, lambda g: g * w * w))(x))

    assert values(ops.grad(f, (0, 1))(ops.array([3.0, 4.0]), x)) == ([0.0, 0.0], [9.0, 16.0])
    assert values(ops.grad(f)(ops.array([3.0, 4.0]), x)) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda g: g, "gave no tuple of gradients for 2 arguments"),
        (lambda g: (g, g, g), "gave 3 gradients for 2 arguments"),
        (lambda g: (ops.sum(g), g), r"gave shape \(\) for an argument of shape \(2,\)"),
        (lambda g: (g[:1], g), r"gave shape \(1,\) for an argument of shape \(2,\)"),
        (lambda g: ((g, g), g), "differ in structure"),
    ],
    ids=["one", "three", "scalar", "short", "nested"],
)
def test_rules_that_do_not_fit(rule: Any, message: str, backend: str) -> None:
    f = ops.custom_gradient(lambda x, y: (x * y, rule))
    with pytest.raises(ValueError, match=message):
        ops.grad(lambda x: ops.sum(f(x, x)))(ops.array([1.0, 2.0]))


def test_rules_that_hold_the_result_are_let_go(backend: str) -> None:
    class Held:
        pass

    references = []

    def f(x: Any) -> Any:
        y, marker = ops.exp(x), Held()
        references.append(weakref.ref(marker))
        return y, lambda g, marker=marker: g * y

    gradient = ops.grad(lambda x: ops.sum(ops.custom_gradient(f)(x)))(ops.array([0.0]))
    assert values(gradient) == [1.0]
    gc.collect()
    assert not [reference for reference in references if reference() is not None]


# Computing again


def block(x: Any, w: Any) -> Any:
    return ops.tanh(ops.matmul(w, ops.sin(x) * ops.exp(x)))


def test_value_and_gradient_stay(backend: str) -> None:
    x, w = ops.array(X), ops.array(W)
    again = ops.checkpoint(block)
    assert close(again(x, w), block(x, w))
    f, g = (lambda x, w, b=b: ops.sum(b(x, w) * x) for b in (again, block))
    assert close(ops.grad(f, (0, 1))(x, w), ops.grad(g, (0, 1))(x, w))
    assert again.__name__ == "block"


def test_the_function_runs_again_for_the_gradient(backend: str) -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return ops.sin(x)

    ops.checkpoint(f)(ops.array(X))
    assert len(calls) == 1
    ops.grad(lambda x: ops.sum(ops.checkpoint(f)(x)))(ops.array(X))
    assert len(calls) == 3


class Layer:
    """What Ember ML knows nothing of."""

    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, x: Any) -> Any:
        return block(x, self.w)

    def method(self, x: Any) -> Any:
        return block(x, self.w)


class Module(Layer):
    """A container of its weights."""


register_node(Module, lambda m: ((m.w,), None), lambda note, parts: Module(*parts))

CLOSURES = {
    "argument": lambda w: ops.checkpoint(partial(_swapped, w)),
    "cell": lambda w: ops.checkpoint(lambda x: block(x, w)),
    "cell of a cell": lambda w: ops.checkpoint(lambda x: (lambda: block(x, w))()),
    "another function": lambda w: ops.checkpoint(_calling(lambda x: block(x, w))),
    "container": lambda w: _in_container({"layers": [{"w": w}]}),
    "computed": lambda w: _in_container({"layers": [{"w": w * 1.0}]}),
    "default": lambda w: ops.checkpoint(lambda x, w=w: block(x, w)),
    "keyword default": lambda w: ops.checkpoint(lambda x, *, w=w: block(x, w)),
    "keyword": lambda w: lambda x: ops.checkpoint(block)(x, w=w),
    "portable": lambda w: _in_container({"layers": [{"w": EmberTensor(w)}]}),
    "module": lambda w: ops.checkpoint(Module(w)),
    "method of a module": lambda w: ops.checkpoint(Module(w).method),
    "recursive": lambda w: ops.checkpoint(_recursive(w)),
}


def _swapped(w: Any, x: Any) -> Any:
    return block(x, w)


def _calling(f: Any) -> Any:
    def outer(x: Any) -> Any:
        return f(x)

    return outer


def _in_container(p: Any) -> Any:
    return ops.checkpoint(lambda x: block(x, p["layers"][0]["w"]))


def _recursive(w: Any) -> Any:
    def f(x: Any, depth: int = 0) -> Any:
        return block(x, w) if depth else f(x, 1)

    return f


@pytest.mark.parametrize("form", CLOSURES)
def test_whatever_the_function_uses_gets_its_gradient(form: str, backend: str) -> None:
    x, w = ops.array(X), ops.array(W)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if form != "recursive" else "ignore")
        found = ops.grad(lambda x, w: ops.sum(CLOSURES[form](w)(x) * x), (0, 1))(x, w)
    assert close(found, ops.grad(lambda x, w: ops.sum(block(x, w) * x), (0, 1))(x, w))


@pytest.mark.parametrize("form", ["object", "method"])
def test_what_cannot_be_an_argument_still_gets_its_gradient(form: str, backend: str) -> None:
    """On MLX, at the price of memory, and with a warning that says so."""
    x, w = ops.array(X), ops.array(W)

    def f(w: Any) -> Any:
        layer = Layer(w)
        return ops.sum(ops.checkpoint({"object": layer, "method": layer.method}[form])(x))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ops.grad(f)(w)
    assert [("no memory is saved" in str(w.message)) for w in caught] == ([True] if backend == "mlx" else [])
    assert close(found, ops.grad(lambda w: ops.sum(block(x, w)))(w))


def test_outer_variables_are_assigned_to(backend: str) -> None:
    count, seen = 0, []

    def f(w: Any) -> Any:
        def counting(x: Any) -> Any:
            nonlocal count
            count += 1
            seen.append(count)
            return x * w

        return ops.sum(ops.checkpoint(counting)(ops.array(X)))

    assert values(ops.grad(f)(ops.array([3.0, 4.0]))) == X
    assert count == 2
    assert seen == [1, 2]


def test_keyword_and_other_arguments(backend: str) -> None:
    w = ops.array([3.0, 4.0])
    assert values(ops.grad(lambda w: ops.sum(ops.checkpoint(lambda x, k: x * k * k)(w, k=2.0)))(w)) == [4.0, 4.0]
    assert values(ops.grad(lambda w: ops.sum(ops.checkpoint(lambda x, p: x**p)(w, p=2)))(w)) == [6.0, 8.0]
    assert values(ops.grad(lambda w: ops.checkpoint(lambda x, axis: ops.sum(x * x, axis=axis))(w, axis=0))(w)) == [
        6.0,
        8,
    ]


def test_results_of_any_form(backend: str) -> None:
    def f(p: Any) -> Any:
        return {"square": p["x"] * p["x"], "largest": ops.argmax(p["x"])}, "text", None, 3

    def loss(p: Any) -> Any:
        found, text, nothing, number = ops.checkpoint(f)(p)
        assert (text, nothing, number) == ("text", None, 3)
        assert ops.item(found["largest"]) == 1
        return ops.sum(found["square"])

    assert values(ops.grad(loss)({"x": ops.array([3.0, 4.0])})) == {"x": [6.0, 8.0]}
    assert type(ops.checkpoint(lambda x: x)(EmberTensor([1.0]))) is EmberTensor


def test_one_inside_another(backend: str) -> None:
    x, w = ops.array(X), ops.array(W)
    inner = ops.checkpoint(block)
    outer = ops.checkpoint(lambda x, w: inner(inner(x, w) + x, w))

    def plain(x: Any, w: Any) -> Any:
        return block(block(x, w) + x, w)

    found, expected = (ops.grad(lambda x, w, f=f: ops.sum(f(x, w)), (0, 1))(x, w) for f in (outer, plain))
    assert close(found, expected)


def test_inside_second_derivatives(backend: str) -> None:
    def f(x: Any) -> Any:
        return ops.sin(ops.exp(x))

    again = ops.checkpoint(f)
    x, w = ops.array(X), ops.array(0.3)
    assert close(ops.grad(ops.grad(again))(w), ops.grad(ops.grad(f))(w))
    assert close(ops.hessian(lambda x: ops.sum(again(x)))(x), ops.hessian(lambda x: ops.sum(f(x)))(x))
    assert close(ops.jacobian(again)(x), ops.jacobian(f)(x))
    assert close(ops.jvp(again, (x,), (x,)), ops.jvp(f, (x,), (x,)))
    assert close(ops.vmap(ops.grad(again))(x), ops.vmap(ops.grad(f))(x))
    closing = ops.grad(ops.grad(lambda w: ops.checkpoint(lambda x: ops.sin(w * w * x))(ops.array(2.0))))
    assert close(closing(w), ops.grad(ops.grad(lambda w: ops.sin(w * w * 2.0)))(w))


@pytest.mark.parametrize("start", [2.0, "variable"])
def test_a_gradient_inside_a_checkpoint_inside_a_gradient(start: Any, backend: str) -> None:
    """Steps of gradient descent, differentiated by what the loss closes over."""

    def descended(scale: Any, step_of: Any) -> Any:
        slope = ops.grad(lambda w, scale: w * w * w * scale)
        w = scale * 4.0 if start == "variable" else ops.array(start)
        for _ in range(3):
            w = step_of(lambda w: w - 0.01 * slope(w, scale))(w)
        return w

    found = ops.value_and_grad(lambda scale: descended(scale, ops.checkpoint))(0.5)
    assert close(found, ops.value_and_grad(lambda scale: descended(scale, lambda f: f))(0.5))
    second = ops.grad(ops.grad(lambda scale: descended(scale, ops.checkpoint)))(0.5)
    assert close(second, ops.grad(ops.grad(lambda scale: descended(scale, lambda f: f)))(0.5))


def test_under_backward(backend: str) -> None:
    x, w = EmberTensor(X, requires_grad=True), EmberTensor([3.0, 4.0], requires_grad=True)
    ops.checkpoint(lambda x: x * x * w)(x).sum().backward()
    assert x.grad is not None
    assert w.grad is not None
    assert x.grad.tolist() == [3.0, -12.0]
    assert w.grad.tolist() == [0.25, 2.25]


def test_it_computes_again_on_the_backend_of_the_first_time(backend: str) -> None:
    x = EmberTensor(X, requires_grad=True)
    seen = []

    def f(x: Any) -> Any:
        seen.append(ember_ml.get_backend())
        return ops.sin(x)

    total = ops.checkpoint(f)(x).sum()
    for name in installed_backends():
        ember_ml.set_backend(name)
    total.backward()
    assert seen == [backend, backend]


@EVERY_BACKEND
@given(depth=st.integers(1, 4), segments=st.integers(1, 3), x=st.floats(-1.0, 1.0, width=32))
def test_any_cut_of_a_chain_has_the_gradient_of_the_chain(name: str, depth: int, segments: int, x: float) -> None:
    def chain(x: Any, w: Any, length: int) -> Any:
        for _ in range(length):
            x = ops.tanh(x * w) + 0.5 * x
        return x

    with ember_ml.use_backend(name):

        def cut(x: Any, w: Any) -> Any:
            for _ in range(segments):
                x = ops.checkpoint(lambda x: chain(x, w, depth))(x)
            return x

        point, weight = ops.array(x), ops.array(1.25)
        found = ops.value_and_grad(cut, (0, 1))(point, weight)
        assert close(found, ops.value_and_grad(lambda x, w: chain(x, w, depth * segments), (0, 1))(point, weight))


def test_rule_that_closes_over_an_outer_variable_adds_to_plain_gradients(backend: str) -> None:
    """Of three gradients of one tensor two are plain and the last depends on a variable around it."""

    def slopes(w: Any) -> Any:
        @ops.custom_gradient
        def scaled(x: Any) -> Any:
            return ops.sin(x), lambda upstream: upstream * w

        def f(x: Any) -> Any:
            y = scaled(x)
            return ops.sum(y) + ops.sum(x * 2.0) + ops.sum(x * 3.0)

        return ops.sum(ops.grad(f)(ops.array([1.0, 2.0])))

    value, slope = ops.value_and_grad(slopes)(ops.array(4.0))
    assert (ops.item(value), ops.item(slope)) == (18.0, 2.0)

"""grad and value_and_grad: of which arguments, in which containers, of what kinds, and inside one another."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends, load
from ember_ml.core.trees import map_tree
from ember_ml.nn.tensor import EmberTensor

Pair = namedtuple("Pair", ["first", "second"])
EVERY_BACKEND = pytest.mark.parametrize("name", installed_backends())
NUMBERS = st.floats(-3.0, 3.0, width=32)


def values(tree: Any) -> Any:
    return map_tree(lambda x: ops.to_numpy(x).tolist(), tree)


def product(x: Any, y: Any) -> Any:
    return ops.sum(ops.multiply(ops.square(x), y))


# Containers


def test_gradients_have_the_form_of_the_argument(backend: str) -> None:
    tree = {
        "list": [ops.array([1.0, 2.0]), (ops.array([3.0, 4.0]), None)],
        "pair": Pair(ops.array(2.0), 5.0),
        "ordered": OrderedDict(z=1.5),
        "unused": ops.ones((2, 3)),
        "empty": {},
    }

    def f(p: Any) -> Any:
        first, (second, _) = p["list"]
        return ops.sum(first * second) + p["pair"].first * p["pair"].second * p["ordered"]["z"]

    gradient = ops.grad(f)(tree)
    assert isinstance(gradient["pair"], Pair)
    assert isinstance(gradient["ordered"], OrderedDict)
    assert values(gradient) == {
        "list": [[3.0, 4.0], ([1.0, 2.0], None)],
        "pair": Pair(7.5, 3.0),
        "ordered": {"z": 10.0},
        "unused": [[0.0] * 3] * 2,
        "empty": {},
    }


@pytest.mark.parametrize("nothing", [None, {}, [], ()], ids=repr)
def test_an_argument_without_tensors_has_a_gradient_of_its_form(nothing: Any, backend: str) -> None:
    value, gradient = ops.value_and_grad(lambda p, x: ops.sum(x))(nothing, ops.array([1.0, 2.0]))
    assert gradient == nothing
    assert ops.item(value) == 3.0


def test_one_tensor_in_two_places_has_two_gradients(backend: str) -> None:
    x = ops.array([3.0])
    assert values(ops.grad(lambda p: ops.sum(p[0] * p[0] * p[1]))([x, x])) == [[18.0], [9.0]]


# Which arguments


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, [12.0]),
        (1, [4.0]),
        (-1, [4.0]),
        (-2, [12.0]),
        ("x", [12.0]),
        ("y", [4.0]),
        ((0, 1), ([12.0], [4.0])),
        ([1, 0], ([4.0], [12.0])),
        (("y",), ([4.0],)),
        (("y", 0), ([4.0], [12.0])),
        ((), ()),
    ],
    ids=repr,
)
def test_arguments_by_position_and_name(argnums: Any, expected: Any, backend: str) -> None:
    x, y = ops.array([2.0]), ops.array([3.0])
    assert values(ops.grad(product, argnums)(x, y)) == expected


def test_arguments_passed_by_keyword(backend: str) -> None:
    x, y = ops.array([2.0]), ops.array([3.0])
    assert values(ops.grad(product, "y")(x, y=y)) == [4.0]
    assert values(ops.grad(product, ("x", "y"))(y=y, x=x)) == ([12.0], [4.0])
    assert values(ops.grad(product)(x, y=y)) == [12.0]
    assert values(ops.grad(lambda x, *, scale: ops.sum(x * scale), "scale")(x, scale=y)) == [2.0]
    assert values(ops.grad(lambda x, **rest: ops.sum(x * rest["y"]), "y")(x, y=y)) == [2.0]
    assert values(ops.grad(lambda x, *rest, y: ops.sum(x * y), "y")(x, x, x, y=y)) == [2.0]


def test_arguments_that_are_not_chosen_stay_what_they_are(backend: str) -> None:
    marker = object()

    def f(x: Any, mode: str, kept: Any, count: int = 2) -> Any:
        assert mode == "square"
        assert kept is marker
        return ops.sum(x**count)

    assert values(ops.grad(f)(ops.array([3.0]), "square", marker, count=3)) == [27.0]


@pytest.mark.parametrize(
    ("argnums", "error", "message"),
    [
        (2, ValueError, "product was called without the argument 2 that is to be differentiated"),
        (-3, ValueError, "without the argument -3"),
        ("z", ValueError, "without the argument 'z'"),
        ((0, 0), ValueError, "one argument twice"),
        ((0, "x"), ValueError, "one argument twice"),
        ((1, -1), ValueError, "one argument twice"),
        (1.5, TypeError, "argnums is a position, a name or a tuple of those, not 1.5"),
        ((0, None), TypeError, "argnums"),
    ],
    ids=repr,
)
def test_arguments_that_there_are_not(argnums: Any, error: type, message: str, backend: str) -> None:
    with pytest.raises(error, match=message):
        ops.grad(product, argnums)(ops.array([2.0]), ops.array([3.0]))


# Kinds of tensors


def test_gradients_are_of_the_kind_of_their_argument(backend: str) -> None:
    native, portable = ops.array([1.0, 2.0]), EmberTensor([3.0, 4.0])
    value, (of_native, of_portable) = ops.value_and_grad(product, (0, 1))(native, portable)
    assert type(value) is EmberTensor
    assert type(of_native) is load(backend).tensor_type
    assert type(of_portable) is EmberTensor
    assert values((of_native, of_portable)) == ([6.0, 16.0], [1.0, 4.0])
    assert type(ops.value_and_grad(product)(native, native)[0]) is load(backend).tensor_type


@pytest.mark.parametrize("left_is_portable", [True, False])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_native_and_portable_tensors_meet_in_operators(left_is_portable: bool, shape: Any, backend: str) -> None:
    """The operator of a native tensor on the left must not take the portable one for a number."""
    x, y = ops.full(shape, 2.0), EmberTensor(ops.full(shape, 5.0))
    args = (y, x) if left_is_portable else (x, y)
    found = ops.grad(lambda a, b: ops.sum(a * b + a / b - (a - b)), (0, 1))(*args)
    a, b = (5.0, 2.0) if left_is_portable else (2.0, 5.0)
    expected = (b + 1 / b - 1, a - a / b**2 + 1)
    for gradient, want in zip(found, expected, strict=True):
        assert ops.to_numpy(gradient).reshape(-1).tolist() == pytest.approx([want] * (2 if shape else 1), abs=1e-6)


def test_python_floats_and_foreign_tensors_are_arguments(backend: str) -> None:
    with ember_ml.use_backend("numpy"):
        foreign = ops.array([1.0, 2.0])
    gradient = ops.grad(lambda x, y: ops.sum(x) * y, (0, 1))(foreign, 3.0)
    assert values(gradient) == ([3.0, 3.0], 3.0)
    assert all(type(g) is load(backend).tensor_type for g in gradient)
    assert [ops.dtype(g) for g in gradient] == ["float32", "float32"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_gradient_has_the_dtype_of_its_argument(dtype: str, backend: str) -> None:
    x = ops.array([1.0, 2.0], dtype=dtype)
    value, gradient = ops.value_and_grad(lambda x: ops.sum(x * x))(x)
    assert ops.dtype(value) == ops.dtype(gradient) == dtype
    assert ops.to_numpy(gradient).astype("float64").tolist() == [2.0, 4.0]


def test_an_argument_of_one_dtype_among_wider_ones(backend: str) -> None:
    x, y = ops.array([1.0], dtype="float32"), ops.array([3.0], dtype="float64")
    of_x, of_y = ops.grad(lambda x, y: ops.sum(x * y), (0, 1))(x, y)
    assert (ops.dtype(of_x), ops.dtype(of_y)) == ("float32", "float64")


# What the function gives


def test_aux_may_be_anything(backend: str) -> None:
    marker = object()

    def f(x: Any) -> Any:
        y = x * 2.0
        return ops.sum(y), {"y": y, "text": "a", "nothing": None, "number": 3, "object": marker, "many": [y, (x,)]}

    x = ops.array([1.0, 2.0])
    (value, aux), gradient = ops.value_and_grad(f, has_aux=True)(x)
    assert ops.item(value) == 6.0
    assert aux["object"] is marker
    assert (aux["text"], aux["nothing"], aux["number"]) == ("a", None, 3)
    assert values([aux["y"], *aux["many"]]) == [[2.0, 4.0], [2.0, 4.0], ([1.0, 2.0],)]
    assert type(aux["y"]) is load(backend).tensor_type
    same, again = ops.grad(f, has_aux=True)(x)
    assert values(same) == values(gradient) == [2.0, 2.0]
    assert again["object"] is marker


def test_aux_carries_no_gradient_out(backend: str) -> None:
    """What leaves is a plain tensor: it can be read, and go to other backends."""
    (_, aux), _ = ops.value_and_grad(lambda x: (ops.sum(x * x), x * x), has_aux=True)(EmberTensor([1.0, 2.0]))
    assert not aux.requires_grad
    with ember_ml.use_backend("numpy"):
        assert values(ops.add(aux, 1.0)) == [2.0, 5.0]


@pytest.mark.parametrize("value", [1.0, "tensor"])
def test_a_constant_function_has_gradient_zero(value: Any, backend: str) -> None:
    value = ops.array(1.0) if value == "tensor" else value
    found, gradient = ops.value_and_grad(lambda x: value)(ops.array([1.0, 2.0]))
    assert ops.item(found) == 1.0
    assert values(gradient) == [0.0, 0.0]


def test_an_argument_can_be_given_back(backend: str) -> None:
    assert values(ops.value_and_grad(lambda x: x)(ops.array(3.0))) == (3.0, 1.0)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda x: x * x, ValueError, r"0-d float tensor, and gave float32 of shape \(2,\); reduce it with ops.sum"),
        (lambda x: ops.argmax(x), ValueError, r"gave int64 of shape \(\)"),
        (lambda x: ops.sum(ops.cast(x, "complex64")), ValueError, "complex64 of shape .*; take its real part"),
        (lambda x: None, TypeError, "gave NoneType"),
        (lambda x: (ops.sum(x), 1), TypeError, "gave tuple; with has_aux=True it gives a pair"),
        (lambda x: "text", TypeError, "str"),
    ],
    ids=["tensor", "integer", "complex", "nothing", "pair", "text"],
)
def test_results_that_have_no_gradient(function: Any, error: type, message: str, backend: str) -> None:
    with pytest.raises(error, match=message):
        ops.grad(function)(ops.array([1.0, 2.0]))


@pytest.mark.parametrize("result", [1.0, (1.0,), (1.0, 2, 3)], ids=repr)
def test_aux_must_be_there_when_it_is_announced(result: Any, backend: str) -> None:
    with pytest.raises(TypeError, match="has_aux=True the function gives a pair"):
        ops.grad(lambda x: result, has_aux=True)(1.0)


@pytest.mark.parametrize("x", [2, [1, 2], True], ids=repr)
def test_integers_have_no_gradient(x: Any, backend: str) -> None:
    with pytest.raises(TypeError, match=r"grad needs floating-point tensors, and got (int64|bool); cast it first"):
        ops.grad(lambda x: ops.sum(x))(ops.array(x))
    with pytest.raises(TypeError, match="cast it first"):
        ops.grad(lambda tree: ops.sum(tree["w"]))({"w": ops.array(1.0), "step": 3})


@pytest.mark.parametrize("transform", ["grad", "value_and_grad", "vmap", "jacobian", "hessian", "checkpoint"])
def test_transforms_take_functions(transform: str, backend: str) -> None:
    with pytest.raises(TypeError, match="takes a function, not "):
        getattr(ops, transform)(ops.array(1.0))


def test_errors_of_the_function_come_through_and_leave_nothing_behind(backend: str) -> None:
    def f(x: Any) -> Any:
        raise ZeroDivisionError("here")

    with pytest.raises(ZeroDivisionError, match="here"):
        ops.grad(ops.grad(f))(1.0)
    assert ops.item(ops.grad(ops.grad(lambda x: x**3))(2.0)) == pytest.approx(12.0)


# The functions themselves


def test_names_and_documents_stay(backend: str) -> None:
    gradient = ops.grad(product)
    assert gradient.__name__ == "product"
    assert values(ops.grad(partial(product, y=ops.array([3.0])))(ops.array([2.0]))) == [12.0]


def test_methods_and_objects_can_be_differentiated(backend: str) -> None:
    class Model:
        weight = 3.0

        def __call__(self, x: Any) -> Any:
            return self.loss(x)

        def loss(self, x: Any) -> Any:
            return ops.sum(x * x * self.weight)

    model = Model()
    assert values(ops.grad(model)(ops.array([2.0]))) == [12.0]
    assert values(ops.grad(model.loss, "x")(ops.array([2.0]))) == [12.0]


def test_what_is_closed_over_is_constant(backend: str) -> None:
    w = ops.array([3.0, 4.0])
    portable = EmberTensor(w)
    assert values(ops.grad(lambda x: ops.sum(x * w))(ops.array([1.0, 1.0]))) == [3.0, 4.0]
    assert values(ops.grad(lambda x: ops.sum(x * portable))(ops.array([1.0, 1.0]))) == [3.0, 4.0]


def test_the_caller_s_tensors_stay_as_they_are(backend: str) -> None:
    x, portable = ops.array([1.0, 2.0]), EmberTensor([1.0, 2.0])
    ops.grad(product, (0, 1))(x, portable)
    assert not portable.requires_grad
    assert not getattr(x, "requires_grad", False)  # emberlint: ignore[EMB502] what PyTorch would have changed
    assert values(x) == values(portable) == [1.0, 2.0]


def test_values_can_be_read_on_the_way(backend: str) -> None:
    """Branches, numbers and printing see values; numbers carry no gradient."""
    seen = []

    def f(x: Any) -> Any:
        seen.append((ops.item(x), ops.shape(x), str(ops.dtype(x)), ops.to_numpy(x).tolist(), bool(x > 1.0)))
        assert repr(x)
        return x * ops.item(x) if x > 1.0 else x

    assert ops.item(ops.grad(f)(3.0)) == 3.0
    assert ops.item(ops.grad(f)(0.5)) == 1.0
    assert seen == [(3.0, (), "float32", 3.0, True), (0.5, (), "float32", 0.5, False)]


# One gradient inside another


@pytest.mark.parametrize("portable", [False, True])
def test_derivatives_of_any_order(portable: bool, backend: str) -> None:
    f: Any = lambda x: x**4  # noqa: E731
    x = EmberTensor(2.0) if portable else 2.0
    for expected in (32.0, 48.0, 48.0, 24.0):
        f = ops.grad(f)
        for _ in range(2):  # what the first call has settled must not mislead the second
            assert ops.item(f(x)) == pytest.approx(expected)


@pytest.mark.parametrize("portable", [False, True])
def test_gradients_are_not_confused_with_those_around_them(portable: bool, backend: str) -> None:
    def number(value: float) -> Any:
        return EmberTensor(value) if portable else ops.array(value)

    cases = [
        (lambda x: x * ops.grad(lambda y: x + y)(number(1.0)), 1.0),
        (lambda x: ops.grad(lambda y: x * y * y)(x), 12.0),  # 2 x x
        (lambda x: ops.grad(lambda y: x * y * y)(number(5.0)), 10.0),
        (lambda x: x * ops.grad(lambda y: ops.stop_gradient(x) * y)(number(2.0)), 3.0),
        (lambda x: ops.grad(lambda y: ops.grad(lambda z: x * y * z * z)(y))(x), 24.0),  # 4 x x
        (lambda x: ops.vjp(lambda y: x * y**3, number(2.0))[1](number(1.0))[0], 12.0),
        (lambda x: ops.jvp(lambda y: x * y**3, (number(2.0),), (number(1.0),))[1], 12.0),
    ]
    for place, (f, expected) in enumerate(cases):
        for _ in range(2):  # what the first call has settled must not mislead the second
            assert ops.item(ops.grad(f)(number(3.0))) == pytest.approx(expected), place


def test_value_and_gradient_inside_a_gradient(backend: str) -> None:
    """A step of gradient descent, differentiated: both the value and the gradient go on."""

    def after_one_step(rate: Any) -> Any:
        value, slope = ops.value_and_grad(lambda w: (w - 1.0) ** 2)(3.0)
        w = 3.0 - rate * slope
        return (w - 1.0) ** 2 + 0.0 * value

    # w - 1 = 2 - 4 rate, so the derivative is -8 (2 - 4 rate)
    assert ops.item(ops.grad(after_one_step)(0.1)) == pytest.approx(-12.8, rel=1e-5)


@EVERY_BACKEND
@given(a=NUMBERS, b=NUMBERS, x=NUMBERS)
def test_mixed_derivatives_are_symmetric(name: str, a: float, b: float, x: float) -> None:
    def f(u: Any, v: Any) -> Any:
        return ops.sin(u * a) * ops.exp(v * b) + u * u * v

    with ember_ml.use_backend(name):
        uv = ops.grad(lambda u, v: ops.grad(f, 1)(u, v), 0)(x, 0.5)
        vu = ops.grad(lambda u, v: ops.grad(f, 0)(u, v), 1)(x, 0.5)
        assert ops.item(uv) == pytest.approx(ops.item(vu), rel=1e-4, abs=1e-4)


@EVERY_BACKEND
@given(weights=st.lists(NUMBERS, min_size=1, max_size=4), scale=NUMBERS)
def test_gradients_are_linear(name: str, weights: list[float], scale: float) -> None:
    """The gradient of a sum is the sum of gradients."""

    def f(x: Any) -> Any:
        return ops.sum(ops.tanh(x) * x)

    def g(x: Any) -> Any:
        return ops.sum(ops.cos(x))

    with ember_ml.use_backend(name):
        x = ops.array(weights)
        together = ops.grad(lambda x: f(x) * scale + g(x))(x)
        apart = ops.add(ops.multiply(ops.grad(f)(x), scale), ops.grad(g)(x))
        assert ops.to_numpy(together).tolist() == pytest.approx(ops.to_numpy(apart).tolist(), rel=1e-4, abs=1e-4)


def test_vectorize_broadcasts_a_function_of_numbers(backend: str) -> None:
    function = ops.vectorize(lambda x, y: (ops.where(x > y, x - y, 0.0), x * y))
    x, y = ops.array([[1.0], [4.0]]), ops.array([2.0, 3.0])
    above, product = function(x, y)
    assert ops.to_numpy(above).tolist() == [[0.0, 0.0], [2.0, 1.0]]
    assert ops.to_numpy(product).tolist() == [[2.0, 3.0], [8.0, 12.0]]

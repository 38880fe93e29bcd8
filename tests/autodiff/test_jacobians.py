"""vjp, jvp, jacobian, hessian and vmap: against closed forms, and against each other."""

from __future__ import annotations

from collections import namedtuple
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
VECTORS = st.lists(st.floats(-2.0, 2.0, width=32), min_size=3, max_size=3)
X, Y = [1.0, 2.0], [3.0, 4.0]


def values(tree: Any) -> Any:
    return map_tree(lambda x: ops.to_numpy(x).tolist(), tree)


def dot(x: Any, y: Any) -> float:
    return ops.item(ops.sum(ops.multiply(x, y)))


# Both products with the Jacobian


def test_vjp_of_containers(backend: str) -> None:
    def f(p: Any, y: Any) -> Any:
        return {"product": p["x"] * y, "sum": (ops.sum(p["x"]),)}

    value, pull = ops.vjp(f, {"x": ops.array(X), "unused": ops.array(1.0)}, ops.array(Y))
    assert values(value) == {"product": [3.0, 8.0], "sum": (3.0,)}
    gradients = pull({"product": ops.array([1.0, 10.0]), "sum": (ops.array(2.0),)})
    assert values(gradients) == ({"x": [5.0, 42.0], "unused": 0.0}, [1.0, 20.0])


def test_the_pullback_can_be_used_again_and_later(backend: str) -> None:
    _, pull = ops.vjp(lambda x: x * x, ops.array(X))
    for name in installed_backends():
        ember_ml.set_backend(name)  # it computes where the function ran
        (gradient,) = pull(ops.array([1.0, 10.0]))
        assert type(gradient) is load(backend).tensor_type
        assert values(gradient) == [2.0, 40.0]


def test_jvp_of_containers(backend: str) -> None:
    def f(p: Any, y: Any) -> Any:
        return Pair(p["x"] * y, ops.sum(p["x"])), ops.array(7.0)

    value, change = ops.jvp(
        f, ({"x": ops.array(X)}, ops.array(Y)), ({"x": ops.array([1.0, 0.0])}, ops.array([0.0, 1.0]))
    )
    assert values(value) == (Pair([3.0, 8.0], 3.0), 7.0)
    assert values(change) == (Pair([3.0, 2.0], 1.0), 0.0)
    assert isinstance(change[0], Pair)


@pytest.mark.parametrize("transform", ["vjp", "jvp"])
def test_products_of_a_constant_are_zero(transform: str, backend: str) -> None:
    x = ops.array(X)
    if transform == "vjp":
        assert values(ops.vjp(lambda x: ops.array(Y), x)[1](ops.array(Y))) == ([0.0, 0.0],)
    else:
        assert values(ops.jvp(lambda x: ops.array(Y), (x,), (x,))) == (Y, [0.0, 0.0])


def test_products_keep_the_kind_of_tensors(backend: str) -> None:
    x = EmberTensor(X)
    value, pull = ops.vjp(lambda x, y: x * y, x, ops.array(Y))
    assert type(value) is EmberTensor
    assert [type(g) is EmberTensor for g in pull(value)] == [True, False]
    value, change = ops.jvp(lambda x: x * x, (x,), (ops.array(X),))
    assert type(value) is type(change) is EmberTensor
    assert values(change) == [2.0, 8.0]


def test_vjp_of_one_output_given_twice(backend: str) -> None:
    """Each place has a gradient of its own, though the tensor in both is the same."""

    def f(x: Any) -> Any:
        y = x * x
        return y, x, y, ops.reshape(y, (2,))

    _, pull = ops.vjp(f, ops.array(X))
    zero, one = ops.array([0.0, 0.0]), ops.array([1.0, 1.0])
    for place, expected in ((0, [2.0, 4.0]), (1, [1.0, 1.0]), (2, [2.0, 4.0]), (3, [2.0, 4.0])):
        assert values(pull(tuple(one if p == place else zero for p in range(4)))) == (expected,)
    assert values(pull((one, one, one, one))) == ([7.0, 13.0],)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: ops.vjp(ops.square, x)[1](ops.array([1.0])), ValueError, r"shape \(1,\) stands where \(2,\)"),
        (lambda x: ops.vjp(ops.square, x)[1]((x,)), ValueError, "two trees differ in structure"),
        (lambda x: ops.jvp(ops.square, (x,), (ops.array([1.0]),)), ValueError, r"shape \(1,\) stands where \(2,\)"),
        (lambda x: ops.jvp(ops.square, (x,), (x, x)), ValueError, "two trees differ in structure"),
        (lambda x: ops.jvp(ops.square, x, x), TypeError, "jvp takes the arguments of the function as a tuple"),
        (lambda x: ops.vjp(ops.square, ops.array([1, 2])), TypeError, "vjp needs floating-point tensors"),
        (lambda x: ops.jvp(ops.square, (ops.array([1, 2]),), (x,)), TypeError, "jvp needs floating-point tensors"),
        (lambda x: ops.jacobian(ops.argmax)(x), TypeError, "floating-point results, and this one gave int64"),
    ],
)
def test_what_does_not_fit_raises(call: Any, error: type, message: str, backend: str) -> None:
    with pytest.raises(error, match=message):
        call(ops.array(X))


@EVERY_BACKEND
@given(x=VECTORS, v=VECTORS, u=VECTORS)
def test_both_products_are_those_of_one_matrix(name: str, x: list[float], v: list[float], u: list[float]) -> None:
    """<u, J v> is <J^T u, v>."""
    with ember_ml.use_backend(name):
        matrix = ops.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [0.0, 1.0, 1.0]])

        def f(x: Any) -> Any:
            return ops.tanh(ops.matmul(matrix, x)) * ops.sin(x) + ops.cumsum(x * x)

        point, along, against = ops.array(x), ops.array(v), ops.array(u)
        _, forward = ops.jvp(f, (point,), (along,))
        _, pull = ops.vjp(f, point)
        assert dot(against, forward) == pytest.approx(dot(pull(against)[0], along), rel=1e-4, abs=1e-4)
        assert ops.to_numpy(forward).tolist() == pytest.approx(
            ops.to_numpy(ops.matmul(ops.jacobian(f)(point), along)).tolist(), rel=1e-4, abs=1e-4
        )


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (lambda f: ops.grad(lambda x: ops.jvp(f, (x,), (1.0,))[1]), 12.0),
        (lambda f: lambda x: ops.jvp(ops.grad(f), (x,), (1.0,))[1], 12.0),
        (lambda f: lambda x: ops.jvp(lambda y: ops.jvp(f, (y,), (1.0,))[1], (x,), (1.0,))[1], 12.0),
        (lambda f: ops.grad(lambda x: ops.vjp(f, x)[1](1.0)[0]), 12.0),
        (lambda f: lambda x: ops.vjp(ops.grad(f), x)[1](1.0)[0], 12.0),
        (lambda f: ops.hessian(f), 12.0),
        (lambda f: ops.jacobian(ops.jacobian(f)), 12.0),
    ],
    ids=["grad-jvp", "jvp-grad", "jvp-jvp", "grad-vjp", "vjp-grad", "hessian", "jacobian-jacobian"],
)
def test_second_derivatives_by_every_way(second: Any, expected: float, backend: str) -> None:
    assert ops.item(second(lambda x: x**3)(2.0)) == pytest.approx(expected, rel=1e-5)


# Jacobians


def test_jacobian_of_containers(backend: str) -> None:
    x, y = ops.array(X), ops.array(Y)
    found = ops.jacobian(lambda p: {"product": p["x"] * p["y"], "sum": [ops.sum(p["x"])]})({"x": x, "y": y})
    assert values(found) == {
        "product": {"x": [[3.0, 0.0], [0.0, 4.0]], "y": [[1.0, 0.0], [0.0, 2.0]]},
        "sum": [{"x": [1.0, 1.0], "y": [0.0, 0.0]}],
    }


def test_jacobian_of_several_arguments_and_shapes(backend: str) -> None:
    def f(a: Any, b: Any) -> Any:
        return ops.matmul(a, b)

    a, b = ops.reshape(ops.arange(6.0), (2, 3)), ops.array([1.0, -1.0, 2.0])
    of_a, of_b = ops.jacobian(f, ("a", 1))(a, b)
    assert ops.shape(of_a) == (2, 2, 3)
    assert values(of_b) == values(a)
    zero = [0.0] * 3
    assert values(of_a) == [[values(b), zero], [zero, values(b)]]


def test_jacobian_of_shared_constant_and_empty_outputs(backend: str) -> None:
    def f(x: Any) -> Any:
        y = x * x
        return y, y, ops.array([5.0]), x[:0]

    first, second, constant, empty = ops.jacobian(f)(ops.array(X))
    assert values(first) == values(second) == [[2.0, 0.0], [0.0, 4.0]]
    assert values(constant) == [[0.0, 0.0]]
    assert ops.shape(empty) == (0, 2)
    assert ops.dtype(empty) == "float32"


def test_jacobian_of_nothing_and_of_numbers(backend: str) -> None:
    assert ops.jacobian(lambda p: ops.array(X))({}) == {}
    assert values(ops.jacobian(lambda x: x**3)(2.0)) == 12.0
    assert type(ops.jacobian(lambda x: x * x)(EmberTensor(X))) is EmberTensor


@EVERY_BACKEND
@given(x=VECTORS)
def test_hessian_of_a_quadratic_form_is_its_matrix(name: str, x: list[float]) -> None:
    matrix = [[2.0, -1.0, 0.5], [-1.0, 3.0, 0.25], [0.5, 0.25, 1.0]]
    with ember_ml.use_backend(name):
        a = ops.array(matrix)
        found = ops.hessian(lambda x: ops.sum(x * ops.matmul(a, x)) * 0.5)(ops.array(x))
        assert ops.item(ops.max(ops.abs(found - a))) < 1e-5


def test_hessian_of_containers(backend: str) -> None:
    point = {"a": ops.array(X), "b": ops.array(Y)}
    found = values(ops.hessian(lambda p: ops.sum(p["a"] * p["a"] * p["b"]))(point))
    assert found["a"]["a"] == [[6.0, 0.0], [0.0, 8.0]]
    assert found["a"]["b"] == found["b"]["a"] == [[2.0, 0.0], [0.0, 4.0]]
    assert found["b"]["b"] == [[0.0, 0.0], [0.0, 0.0]]


def test_hessian_of_several_arguments(backend: str) -> None:
    found = values(ops.hessian(lambda a, b: ops.sum(a * a * b), (0, "b"))(ops.array(X), ops.array(Y)))
    assert found == (([[6.0, 0.0], [0.0, 8.0]], [[2.0, 0.0], [0.0, 4.0]]), ([[2.0, 0.0], [0.0, 4.0]], [[0.0] * 2] * 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_derivatives_keep_the_dtype(dtype: str, backend: str) -> None:
    x = ops.array(X, dtype=dtype)
    tangent = ops.array([1.0, 1.0], dtype="float32")
    assert ops.dtype(ops.jacobian(ops.sin)(x)) == dtype
    assert ops.dtype(ops.hessian(lambda x: ops.sum(ops.sin(x)))(x)) == dtype
    assert ops.dtype(ops.jvp(ops.sin, (x,), (tangent,))[1]) == dtype
    assert ops.dtype(ops.vjp(ops.sin, x)[1](tangent)[0]) == dtype


# Mapping over an axis

MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    ("in_axes", "out_axes", "expected"),
    [
        (0, 0, [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]),
        (1, 0, [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]),
        (-1, 0, [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]),
        (-2, 0, [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]),
        (0, 1, [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]),
        (0, -1, [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]),
        ((1,), 1, [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]),
    ],
)
def test_vmap_axes(in_axes: Any, out_axes: int, expected: Any, backend: str) -> None:
    assert values(ops.vmap(lambda row: row * 2.0, in_axes, out_axes)(ops.array(MATRIX))) == expected


def test_vmap_of_several_arguments_in_containers(backend: str) -> None:
    def f(p: Any, scale: Any, weight: Any) -> Any:
        return Pair(p["row"] * scale, [ops.sum(p["row"]) * weight["w"], None])

    mapped = ops.vmap(f, in_axes=(0, None, 0))
    found = mapped({"row": ops.array(MATRIX)}, ops.array([1.0, 0.0, -1.0]), {"w": ops.array([1.0, 10.0])})
    assert isinstance(found, Pair)
    assert values(found) == Pair([[1.0, 0.0, -3.0], [4.0, 0.0, -6.0]], [[6.0, 150.0], None])


def test_vmap_of_portable_integers_and_constants(backend: str) -> None:
    assert type(ops.vmap(lambda x: x * x)(EmberTensor(X))) is EmberTensor
    assert values(ops.vmap(lambda x: x * 2)(ops.array([1, 2]))) == [2, 4]
    assert values(ops.vmap(lambda x: ops.array(7.0))(ops.array(X))) == [7.0, 7.0]


def test_vmap_over_nothing(backend: str) -> None:
    found = ops.vmap(lambda x, y: (ops.sum(x), x * y), in_axes=(0, None), out_axes=-1)(ops.zeros((0, 3)), ops.ones(3))
    assert [ops.shape(part) for part in found] == [(0,), (3, 0)]
    assert ops.dtype(found[0]) == "float32"


@pytest.mark.parametrize(
    ("in_axes", "error", "message"),
    [
        (2, IndexError, r"vmap over axis 2 of a tensor of shape \(2, 3\)"),
        (None, ValueError, "found none"),
        ((0, 0), ValueError, "vmap got 1 arguments, and in_axes for 2"),
    ],
)
def test_vmap_over_axes_that_there_are_not(in_axes: Any, error: type, message: str, backend: str) -> None:
    with pytest.raises(error, match=message):
        ops.vmap(lambda x: x, in_axes)(ops.array(MATRIX))


def test_vmap_needs_one_length(backend: str) -> None:
    with pytest.raises(ValueError, match=r"one length along in_axes, and found \[2, 3\]"):
        ops.vmap(ops.add)(ops.array(MATRIX), ops.ones(3))


_pick = ops.get_item
INDEXED = {
    "two lists": lambda x: _pick(_pick(x, [1, 0, 1, 0]), (slice(None), [0, 0, 2])),
    "pairs": lambda x: _pick(_pick(x, (slice(None), [0, 0, 2])), ([1, 0, 1], [0, 1, 1])),
    "take": lambda x: ops.take(ops.take(x, [1, 0, 1], axis=0), [[0, 1], [1, 1]], axis=1),
    "pad": lambda x: ops.pad(ops.pad(x, ((1, 1), (0, 0)), mode="reflect"), ((0, 0), (4, 4)), mode="reflect"),
    "repeat": lambda x: ops.repeat(ops.repeat(x, [1, 2], axis=0), [2, 0, 1], axis=1),
    "diagonal": lambda x: ops.diagonal(_pick(_pick(x, [1, 0, 1]), (slice(None), [0, 0, 2]))),
    "einsum": lambda x: ops.einsum("ii->i", _pick(_pick(x, [1, 0, 1]), (slice(None), [0, 0, 2]))),
    "along": lambda x: ops.take_along_axis(_pick(x, [1, 0, 1]), ops.array([[1, 0], [0, 0], [2, 2]]), axis=1),
    "quantile": lambda x: ops.quantile(_pick(x, (slice(None), [0, 2, 1])), [0.1, 0.5, 0.7], axis=1),
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_vmap_of_gradients_of_indices(name: str, axis: int, backend: str) -> None:
    """MLX writes to foreign memory in the gradient of an index whose mapped axis is not the first."""
    samples = [[[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]], [[1.5, 2.5, -0.5], [-2.0, 1.0, 4.0]]]

    def f(x: Any) -> Any:
        return ops.sum(ops.square(INDEXED[name](x * x)))

    want = [values(ops.grad(f)(ops.array(sample))) for sample in samples]
    got = ops.vmap(ops.grad(f), in_axes=axis)(ops.stack([ops.array(sample) for sample in samples], axis=axis))
    assert ops.allclose(got, ops.array(want), rtol=1e-5)


@pytest.mark.parametrize("key", [(None, None, ..., slice(None, None, -2)), (None, 0, None), (..., None, None)])
def test_vmap_of_new_axes(key: Any, backend: str) -> None:
    samples = [[[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]], [[1.5, 2.5, -0.5], [-2.0, 1.0, 4.0]]]
    want = ops.stack([ops.get_item(ops.array(sample), key) for sample in samples])
    for axis in range(3):
        stacked = ops.stack([ops.array(sample) for sample in samples], axis=axis)
        assert values(ops.vmap(lambda x: ops.get_item(x, key), in_axes=axis)(stacked)) == values(want)


def test_vmap_and_derivatives_of_one_another(backend: str) -> None:
    matrix, x = ops.array(MATRIX), ops.array(X)
    cubes = ops.vmap(ops.grad(lambda row: ops.sum(row**3)))
    expected = [[3.0, 12.0, 27.0], [48.0, 75.0, 108.0]]
    assert ops.to_numpy(cubes(matrix)).tolist() == [pytest.approx(row, rel=1e-5) for row in expected]
    whole = ops.grad(lambda m: ops.sum(ops.vmap(lambda row: row**3)(m)))(matrix)
    assert ops.to_numpy(whole).tolist() == [pytest.approx(row, rel=1e-5) for row in expected]
    assert values(ops.jacobian(ops.vmap(lambda a: a * a))(x)) == [[2.0, 0.0], [0.0, 4.0]]
    assert values(ops.vmap(ops.jacobian(lambda row: row * row))(ops.array([X]))) == [[[2.0, 0.0], [0.0, 4.0]]]
    assert values(ops.vmap(ops.hessian(lambda row: ops.sum(row * row * row)))(ops.array([X]))) == [
        [[6.0, 0], [0, 12.0]]
    ]
    assert values(ops.vmap(lambda a: ops.vjp(ops.square, a)[1](ops.array(1.0))[0])(x)) == [2.0, 4.0]
    assert values(ops.vmap(lambda a: ops.jvp(ops.square, (a,), (ops.array(1.0),))[1])(x)) == [2.0, 4.0]
    assert values(ops.vmap(lambda a: ops.vmap(lambda b: a * b)(x))(x)) == [[1.0, 2.0], [2.0, 4.0]]

"""Scans and maps: what the Python loops they stand for would give."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.errors import UnsupportedOp
from ember_ml.nn.tensor import EmberTensor

EVERY_BACKEND = pytest.mark.parametrize("name", installed_backends())
NUMBERS = st.lists(st.integers(-9, 9), min_size=1, max_size=17)


def values(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


@EVERY_BACKEND
@given(numbers=NUMBERS, reverse=st.booleans())
def test_scan_gives_what_the_loop_gives(name: str, numbers: list[int], reverse: bool) -> None:
    carry, outputs = 3, []
    for x in reversed(numbers) if reverse else numbers:
        outputs.append(carry * x)
        carry = (carry + 2 * x) % 1001
    outputs = outputs[::-1] if reverse else outputs
    with ember_ml.use_backend(name):
        found, ys = ops.scan(
            lambda c, x: (ops.mod(ops.add(c, ops.multiply(x, 2)), 1001), ops.multiply(c, x)),
            3,
            ops.array(numbers),
            reverse=reverse,
        )
        assert (values(found), values(ys)) == (carry, outputs)


def test_scan_takes_and_gives_trees(backend: str) -> None:
    xs = {"a": ops.array([1.0, 2.0, 3.0]), "b": (ops.ones((3, 2)), None)}

    def step(carry: list[Any], x: dict[str, Any]) -> Any:
        assert x["b"][1] is None
        return [carry[0] + x["a"]], (carry[0], {"row": x["b"][0] * x["a"], "nothing": None})

    (total,), (before, rest) = ops.scan(step, [0.5], xs)
    assert values(total) == 6.5
    assert values(before) == [0.5, 1.5, 3.5]
    assert values(rest["row"]) == [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
    assert rest["nothing"] is None


def test_scan_without_slices_counts(backend: str) -> None:
    last, ys = ops.scan(lambda c, x: (c * 2, None if x is None else c), 1, length=5)
    assert (values(last), ys) == (32, None)
    last, ys = ops.scan(lambda c, x: (c, c + x), 1, ops.array([1, 2]), length=2)
    assert values(ys) == [2, 3]


def test_scan_over_nothing_gives_empty_outputs(backend: str) -> None:
    carry, ys = ops.scan(lambda c, x: (c + 1.0, ops.outer(x, c)), ops.ones(3), ops.zeros((0, 2)))
    assert (values(carry), ops.shape(ys), ops.dtype(ys)) == ([1.0] * 3, (0, 2, 3), ops.float32)
    assert ops.shape(ops.scan(lambda c, x: (c, c), ops.ones(3), length=0)[1]) == (0, 3)
    assert ops.shape(ops.map(ops.sum, ops.zeros((0, 4)))) == (0,)
    mapped = ops.vectorized_map(lambda d: {"s": ops.sum(d["x"]) > 0}, {"x": ops.zeros((0, 4))})
    assert (ops.shape(mapped["s"]), ops.dtype(mapped["s"])) == ((0,), ops.bool)


def test_scan_keeps_portable_tensors_portable(backend: str) -> None:
    carry, ys = ops.scan(lambda c, x: (c + x, c * x), 0.0, EmberTensor([1.0, 2.0]))
    assert (type(carry), type(ys), ys.tolist()) == (EmberTensor, EmberTensor, [0.0, 2.0])
    carry, ys = ops.scan(lambda c, x: (c + x, c * x), EmberTensor(0.0), ops.array([1.0, 2.0]))
    assert (type(carry), type(ys)) == (EmberTensor, EmberTensor)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.scan(lambda c, x: (c, x), 0.0), ValueError, "needs tensors to go over, or length"),
        (lambda: ops.scan(lambda c, x: (c, x), 0.0, ops.array(1.0)), ValueError, "the tensors has none"),
        (
            lambda: ops.scan(lambda c, x: (c, x), 0.0, [ops.ones(2), ops.ones(3)]),
            ValueError,
            "one length, not of 2, 3",
        ),
        (lambda: ops.scan(lambda c, x: (c, x), 0.0, ops.ones(2), length=3), ValueError, "one length, not of 3, 2"),
        (lambda: ops.scan(lambda c, x: c, 0.0, ops.ones(2)), TypeError, "must give a pair"),
        (lambda: ops.scan(lambda c, x: (ops.add(c, x), x), 0, ops.ones(2)), TypeError, "was int64 and became float32"),
        (lambda: ops.map(lambda x: x, []), ValueError, "needs tensors to go over$"),
        (lambda: ops.associative_scan(ops.add, ops.array(1.0)), IndexError, "axis 0 is out of range"),
        (lambda: ops.associative_scan(ops.add, [ops.ones(2), ops.ones(3)]), ValueError, r"not of \[2, 3\]"),
        (lambda: ops.associative_scan(lambda a, b: ops.sum(a), ops.ones(3)), ValueError, "must keep its shape"),
    ],
)
def test_misuse_is_explained(call: Any, error: type, message: str, backend: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_outputs_of_one_kind(backend: str) -> None:
    outputs = iter([ops.array(1.0), ops.array(1)])
    with pytest.raises(TypeError, match=r"ops\.map: the output must keep its dtype: it was float32 and became int64"):
        ops.map(lambda x: next(outputs), ops.ones(2))


@EVERY_BACKEND
@given(numbers=NUMBERS)
def test_both_maps_stack_the_results(name: str, numbers: list[int]) -> None:
    with ember_ml.use_backend(name):
        xs = (ops.array(numbers), {"y": ops.ones((len(numbers), 2), dtype="int64")})

        def f(x: Any) -> Any:
            return [ops.multiply(x[1]["y"], x[0]), ops.add(x[0], 1)]

        for apply in (ops.map, ops.vectorized_map):
            products, sums = apply(f, xs)
            assert values(products) == [[x, x] for x in numbers]
            assert values(sums) == [x + 1 for x in numbers]


def test_vectorized_map_selects_in_branches(backend: str) -> None:
    x = ops.array([[1.0, 2.0], [-3.0, 1.0], [0.0, 0.0]])

    def f(v: Any) -> Any:
        signed = ops.cond(ops.sum(v) > 0, lambda v: v * 2.0, lambda v: v * -1.0, v)
        return ops.switch(ops.cast(ops.sum(v), "int64"), [ops.negative, lambda v: v + 1.0], signed)

    assert values(ops.vectorized_map(f, x)) == values(ops.map(f, x))
    assert values(ops.map(f, x))[:2] == [[3.0, 5.0], [-3.0, 1.0]]


def test_vectorized_map_refuses_a_loop_that_ends_by_a_value(backend: str) -> None:
    def f(v: Any) -> Any:
        return ops.while_loop(lambda v: v < 10.0, lambda v: v * 2.0, v)

    x = ops.array([1.0, 3.0])
    assert values(ops.map(f, x)) == [16.0, 12.0]
    if backend == "numpy":
        assert values(ops.vectorized_map(f, x)) == [16.0, 12.0]
    else:
        with pytest.raises(UnsupportedOp, match=r"ops\.fori_loop|use ops\.map"):
            ops.vectorized_map(f, x)


def _affine(first: Any, second: Any) -> Any:
    """The composition of x -> a x + b, which is associative and does not commute."""
    (a, b), (c, d) = first, second
    return ops.multiply(a, c), ops.add(ops.multiply(b, c), d)


@EVERY_BACKEND
@given(factors=NUMBERS, reverse=st.booleans(), axis=st.sampled_from([0, 1, -1]))
def test_associative_scan_composes_in_order(name: str, factors: list[int], reverse: bool, axis: int) -> None:
    signs = [1 if x > 0 else -1 for x in factors]
    ordered = list(zip(signs, factors, strict=True))[:: -1 if reverse else 1]
    expected = list(itertools.accumulate(ordered, lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1])))
    expected = expected[:: -1 if reverse else 1]
    with ember_ml.use_backend(name):
        elems = tuple(ops.expand_dims(ops.array(x), 1 if axis == 0 else 0) for x in (signs, factors))
        found = ops.associative_scan(_affine, elems, reverse=reverse, axis=axis)
        assert type(found) is tuple
        assert [values(ops.ravel(x)) for x in found] == [list(x) for x in zip(*expected, strict=True)]


def test_associative_scan_of_matrices_and_of_nothing(backend: str) -> None:
    turns = ops.array([[[0.0, -1.0], [1.0, 0.0]]] * 6)
    found = ops.associative_scan(ops.matmul, turns)
    assert values(found[3]) == [[1.0, 0.0], [0.0, 1.0]]
    assert values(found[5]) == [[-1.0, 0.0], [0.0, -1.0]]
    assert ops.shape(ops.associative_scan(ops.add, ops.zeros((0, 2)))) == (0, 2)
    portable = ops.associative_scan(lambda a, b: {"x": a["x"] + b["x"]}, {"x": EmberTensor([1, 2, 3])})
    assert (type(portable["x"]), portable["x"].tolist()) == (EmberTensor, [1, 3, 6])


def test_gradients_flow_through_scans(backend: str) -> None:
    x = ops.array([0.5, -1.0, 2.0])

    def by_scan(x: Any) -> Any:
        return ops.sum(ops.scan(lambda c, v: (c * v, c * v), 1.0, x)[1])

    def by_tree(x: Any) -> Any:
        return ops.sum(ops.associative_scan(ops.multiply, x))

    def by_map(x: Any) -> Any:
        return ops.sum(ops.map(lambda v: v * v, x)) + ops.sum(ops.vectorized_map(ops.exp, x))

    # d/dx of x0 + x0 x1 + x0 x1 x2
    expected = [1 - 1 + -2.0, 0.5 + 1.0, -0.5]
    assert values(ops.grad(by_scan)(x)) == expected
    assert values(ops.grad(by_tree)(x)) == expected
    assert values(ops.grad(by_map)(x)) == pytest.approx([2 * v + math.exp(v) for v in (0.5, -1.0, 2.0)], rel=1e-6)


def test_scan_over_a_negative_length(backend: str) -> None:
    with pytest.raises(ValueError, match="length of 0 or more, not -1"):
        ops.scan(lambda carry, _: (carry, carry), 0, length=-1)


def test_numbers_beyond_64_bits_in_loops(backend: str) -> None:
    with pytest.raises(OverflowError, match="does not fit int64"):
        ops.fori_loop(0, 3, lambda _, x: x, 2**70)
    with pytest.raises(OverflowError, match="does not fit int64"):
        ops.vectorized_map(lambda x: x, [2**70])

"""Branches and loops: what the Python they stand for would give, with values of any structure."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn.tensor import EmberTensor

Pair = namedtuple("Pair", ["first", "second"])
SMALL = st.integers(-1000, 1000)
EVERY_BACKEND = pytest.mark.parametrize("name", installed_backends())


def values(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


@pytest.mark.parametrize("kind", ["python", "native", "portable", "numpy", "one element"])
@pytest.mark.parametrize("truth", [True, False])
def test_cond_runs_the_chosen_function_only(kind: str, truth: bool, backend: str) -> None:
    pred = {
        "python": truth,
        "native": ops.array(truth),
        "portable": EmberTensor(truth),
        "numpy": ops.to_numpy(ops.array(truth)),
        "one element": ops.array([[truth]]),
    }[kind]
    calls = []

    def branch(name: str) -> Any:
        return lambda x: calls.append(name) or {name: x}

    x = ops.array([1.0, 2.0])
    result = ops.cond(pred, branch("true"), branch("false"), x)
    name = str(truth).lower()
    assert calls == [name]
    assert result[name] is x


def test_cond_takes_any_number_of_operands(backend: str) -> None:
    assert values(ops.cond(True, lambda: ops.array(3), lambda: ops.array(4))) == 3
    assert values(ops.cond(ops.array(False), ops.add, ops.subtract, ops.array(3), ops.array(5))) == -2


@pytest.mark.parametrize(
    ("pred", "error", "message"),
    [
        (1, TypeError, "decides by a bool, not by a tensor of int64; compare it first"),
        ([1.5], TypeError, "float32"),
        ([True, False], ValueError, r"shape \(2,\); reduce it first"),
    ],
)
def test_cond_decides_by_one_bool(pred: Any, error: type, message: str, backend: str) -> None:
    for given_as in (ops.array(pred), EmberTensor(pred)):
        with pytest.raises(error, match=rf"ops\.cond .*{message}"):
            ops.cond(given_as, lambda: 1, lambda: 2)


@EVERY_BACKEND
@given(index=SMALL, count=st.integers(1, 5))
def test_switch_clips_its_index(name: str, index: int, count: int) -> None:
    with ember_ml.use_backend(name):
        branches = [lambda x, i=i: ops.add(x, i) for i in range(count)]
        expected = 10 + min(max(index, 0), count - 1)
        assert values(ops.switch(index, branches, ops.array(10))) == expected
        assert values(ops.switch(ops.array(index), branches, ops.array(10))) == expected
        assert values(ops.switch(EmberTensor([index], dtype="int32"), branches, ops.array(10))) == expected


def test_switch_refuses_what_is_no_index(backend: str) -> None:
    with pytest.raises(ValueError, match="at least one branch"):
        ops.switch(0, [])
    with pytest.raises(TypeError, match="decides by a int, not by a tensor of float32"):
        ops.switch(ops.array(1.0), [ops.sin])


@EVERY_BACKEND
@given(start=SMALL, factor=st.integers(2, 5), end=SMALL)
def test_while_loop_gives_what_python_gives(name: str, start: int, factor: int, end: int) -> None:
    x, steps = abs(start) + 1, 0
    with ember_ml.use_backend(name):
        found = ops.while_loop(
            lambda x, steps: ops.less(x, end), lambda x, steps: (ops.multiply(x, factor), ops.add(steps, 1)), (x, 0)
        )
        assert type(found) is tuple
        while x < end:
            x, steps = x * factor, steps + 1
        assert [values(part) for part in found] == [x, steps]


def test_while_loop_passes_lists_and_tuples_as_arguments_and_other_trees_whole(backend: str) -> None:
    listed = ops.while_loop(lambda x, y: x < 3, lambda x, y: [x + 1, y * 2.0], [ops.array(0), ops.array([1.0, 2.0])])
    assert type(listed) is list
    assert values(listed[1]) == [8.0, 16.0]
    single = ops.while_loop(lambda x: x < 3, lambda x: x + 1, [ops.array(0)])
    assert (type(single), values(single[0])) == (list, 3)
    named = ops.while_loop(lambda p: p.first < 3, lambda p: Pair(p.first + 1, p.second), Pair(0, None))
    assert (type(named), values(named.first), named.second) == (Pair, 3, None)
    nested = ops.while_loop(
        lambda d: d["n"] < 2, lambda d: {"x": [d["x"][0] + 1.0], "n": d["n"] + 1}, {"n": 0, "x": [0.5]}
    )
    assert list(nested) == ["n", "x"]
    assert values(nested["x"][0]) == 2.5
    assert values(ops.while_loop(lambda x: x < 100, lambda x: x * 3, ops.array(1))) == 243


@pytest.mark.parametrize(("limit", "expected"), [(0, 1), (1, 2), (3, 8), (10, 16), (None, 16)])
def test_while_loop_stops_at_the_limit(limit: int | None, expected: int, backend: str) -> None:
    assert values(ops.while_loop(lambda x: x < 10, lambda x: x * 2, 1, maximum_iterations=limit)) == expected


def test_while_loop_ends_by_a_python_bool(backend: str) -> None:
    left = [True, True, False]
    assert values(ops.while_loop(lambda x: left.pop(0), lambda x: x + 1, 0)) == 2


@EVERY_BACKEND
@given(lower=st.integers(-20, 20), upper=st.integers(-20, 20))
def test_fori_loop_counts_as_range_does(name: str, lower: int, upper: int) -> None:
    total = 0
    for i in range(lower, upper):
        total = 2 * total + i
    with ember_ml.use_backend(name):
        seen: list[Any] = []

        def step(i: Any, total: Any) -> Any:
            seen.append(i)
            return ops.add(ops.multiply(total, 2), i)

        assert values(ops.fori_loop(lower, upper, step, 0)) == total
        assert seen == list(range(lower, upper))
        assert values(ops.fori_loop(ops.array(lower), upper, step, 0)) == total
        assert values(ops.fori_loop(lower, EmberTensor(upper), step, 0)) == total


def test_index_of_fori_loop_is_what_the_bounds_are(backend: str) -> None:
    kinds: list[Any] = []

    def step(i: Any, x: Any) -> Any:
        kinds.append(i if type(i) is int else (type(i) is EmberTensor, ops.dtype(i)))
        return x

    ops.fori_loop(0, 1, step, ops.array(1.0))
    ops.fori_loop(0, ops.array(1, dtype="uint8"), step, ops.array(1.0))
    ops.fori_loop(0, EmberTensor(1), step, ops.array(1.0))
    assert kinds == [0, (False, ops.int64), (True, ops.int64)]


def test_portable_in_portable_out(backend: str) -> None:
    x = EmberTensor([1.0, 2.0])
    seen: list[type] = []

    def step(i: int, carried: tuple[Any, Any]) -> Any:
        seen.extend(type(part) for part in carried)
        return carried[0] + 1.0, ops.multiply(carried[1], 2.0)

    first, second = ops.fori_loop(0, 2, step, (x, ops.array(1.0)))
    assert {*seen, type(first), type(second)} == {EmberTensor}
    assert (first.tolist(), second.tolist()) == ([3.0, 4.0], 4.0)
    native = ops.fori_loop(0, 2, lambda i, v: EmberTensor(v) + 1.0, ops.array(1.0))
    assert type(native) is type(ops.array(1.0))


def test_python_numbers_become_tensors(backend: str) -> None:
    first, second, third = ops.fori_loop(0, 1, lambda i, v: v, (1, 2.0, True))
    assert [ops.dtype(x) for x in (first, second, third)] == [ops.int64, ops.float32, ops.bool]
    kept = ops.fori_loop(0, 1, lambda i, v: 3, ops.array(1.0, dtype="float64"))
    assert (ops.dtype(kept), values(kept)) == (ops.float64, 3.0)


@pytest.mark.parametrize(
    ("init", "step", "error", "message"),
    [
        (
            1,
            lambda x: ops.multiply(x, 0.5),
            TypeError,
            r"the loop variables must keep its dtype: it was int64 and became float32",
        ),
        (1, lambda x: 0.5, TypeError, r"float 0.5 into a tensor of int64"),
        ([1.0], lambda x: ops.stack([x, x]), ValueError, r"must keep its shape: it was \(\) and became \(2,\)"),
        (
            {"a": 1.0, "b": 2.0},
            lambda d: d | {"b": ops.array(1)},
            TypeError,
            r"tensor 2 of \{'a': \*, 'b': \*\}\) must keep its dtype",
        ),
        ({"a": 1.0}, lambda d: {"c": d["a"]}, ValueError, r"structure, and two trees differ .* \['a'\].* \['c'\]"),
        ([1.0, 2.0], lambda x, y: (x,), ValueError, "must keep its structure"),
    ],
)
def test_a_step_that_changes_what_it_carries(init: Any, step: Any, error: type, message: str, backend: str) -> None:
    with pytest.raises(error, match=rf"ops\.while_loop.*{message}"):
        ops.while_loop(lambda *x: True, step, init, maximum_iterations=3)


def test_errors_of_the_functions_are_passed_on(backend: str) -> None:
    def fails(*args: Any) -> Any:
        raise KeyError("mine")

    for call in (
        lambda: ops.cond(True, fails, fails),
        lambda: ops.while_loop(lambda x: True, fails, 1),
        lambda: ops.fori_loop(0, 1, fails, 1),
        lambda: ops.scan(fails, 0.0, ops.array([1.0])),
        lambda: ops.map(fails, ops.array([1.0])),
    ):
        with pytest.raises(KeyError, match="mine"):
            call()


def test_a_huge_length_is_not_laid_out_before_the_first_step(backend: str) -> None:
    def stop(carry: Any, x: Any) -> Any:
        raise KeyError("at once")

    for reverse in (False, True):
        with pytest.raises(KeyError, match="at once"):
            ops.scan(stop, 0.0, length=2**60, reverse=reverse)


def test_gradients_flow_through_branches_and_loops(backend: str) -> None:
    def f(x: Any) -> Any:
        doubled = ops.cond(ops.sum(x) > 0, lambda v: v * 2.0, lambda v: v, x)
        looped = ops.while_loop(lambda v: ops.sum(v) < 50.0, lambda v: v * x, doubled)
        return ops.sum(ops.fori_loop(0, 2, lambda i, v: v * x + float(i), looped))

    # 2 x^2 = [8, 18] and 2 x^3 = [16, 54] end the loop; then x (2 x^4) + 1
    assert values(ops.grad(f)(ops.array([2.0, 3.0]))) == [2 * 5 * 2.0**4, 2 * 5 * 3.0**4]

"""Compiled functions give what they give uncompiled, on every backend, with dropout and a switch in between."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn.tensor import EmberTensor
from tests.reference import close_enough
from tests.reference.matrices import numpy


def _network(parameters: dict[str, Any], x: Any, rate: float = 0.0) -> Any:
    h = ops.tanh(ops.add(ops.matmul(x, parameters["w"]), parameters["b"]))
    return ops.mean(ops.square(ops.dropout(h, rate) if rate else h))


def _parameters() -> dict[str, Any]:
    return {"w": ops.random_normal((3, 4), seed=1), "b": ops.random_normal((4,), seed=2)}


def _same(got: Any, want: Any) -> bool:
    return close_enough(ops.to_numpy(got), ops.to_numpy(want), rtol=1e-5, atol=1e-6)


def test_compiled_function_gives_the_eager_result(backend: str) -> None:
    compiled = ember_ml.compile(_network)
    x = ops.random_normal((5, 3), seed=3)
    for _ in range(2):
        assert _same(compiled(_parameters(), x), _network(_parameters(), x))
    shorter = ops.random_normal((2, 3), seed=4)
    assert _same(compiled(_parameters(), x=shorter), _network(_parameters(), shorter))


def test_value_and_gradients_compile_and_compiled_functions_have_gradients(backend: str) -> None:
    x = ops.random_normal((5, 3), seed=3)
    value, gradients = ops.value_and_grad(_network)(_parameters(), x)
    for step in (ember_ml.compile(ops.value_and_grad(_network)), ops.value_and_grad(ember_ml.compile(_network))):
        got, found = step(_parameters(), x)
        assert _same(got, value)
        assert all(_same(found[name], gradients[name]) for name in gradients)


def test_dropout_draws_from_the_stream_of_the_process(backend: str) -> None:
    compiled = ember_ml.compile(_network)
    x = ops.random_normal((5, 3), seed=3)
    ops.seed(11)
    eager = [_network(_parameters(), x, 0.5) for _ in range(3)] + [ops.random_uniform(2)]
    ops.seed(11)
    found = [compiled(_parameters(), x, 0.5) for _ in range(3)] + [ops.random_uniform(2)]
    assert all(_same(got, want) for got, want in zip(found, eager, strict=True))
    assert not _same(found[0], found[1])


def test_switch_of_the_backend_compiles_anew() -> None:
    compiled = ember_ml.compile(_network)
    found = []
    for name in (*installed_backends(), *installed_backends()):
        ember_ml.set_backend(name)
        result = compiled(_parameters(), ops.random_normal((5, 3), seed=3))
        assert type(result) is ember_ml.get_backend_module().tensor_type
        found.append(ops.to_numpy(result))
    ember_ml.set_backend("numpy")
    assert all(close_enough(got, found[0], rtol=1e-5) for got in found)


def test_portable_tensors_containers_and_constants_pass_through(backend: str) -> None:
    @ember_ml.compile
    def f(pair: tuple[Any, Any], options: dict[str, Any], scale: float) -> Any:
        return {"sum": (pair[0] + pair[1]) * scale, "name": options["name"], "none": None}

    result = f((EmberTensor([1.0, 2.0]), EmberTensor([3.0, 4.0])), {"name": "x"}, 2.0)
    assert type(result["sum"]) is EmberTensor
    assert result["sum"].tolist() == [8.0, 12.0]
    assert (result["name"], result["none"]) == ("x", None)
    assert ops.to_numpy(f((ops.ones(2), ops.ones(2)), {"name": "y"}, 3.0)["sum"]).tolist() == [6.0, 6.0]


@pytest.mark.long_with("torch")  # a compilation takes seconds
def test_numbers_of_numpy_are_constants(backend: str) -> None:
    x = ops.asarray([1.0, 2.0])
    for function in (ops.multiply, lambda x, k: ops.add(k, ops.sum(x))):
        for dtype in ("float32", "float16", "int64", "bool"):
            number = numpy.ones((), dtype)[()]
            got, want = ember_ml.compile(function)(x, number), function(x, number)
            assert _same(got, want)
            assert ops.dtype(got) == ops.dtype(want)


def test_native_tensors_in_containers_are_told_apart(backend: str) -> None:
    compiled = ember_ml.compile(lambda parts, scale: [len(parts), scale is None, sum(map(_first, _parts_of(parts)))])
    one, two = ops.array([1.0, 0.0]), ops.array([2.0, 0.0])
    given = [[one, two], (one, two), [one, two], {"a": one, "b": two}, {"b": two, "a": one}, [one, two, two], []]
    for parts in given:
        for scale in (None, one):
            count, is_none, total = compiled(parts, scale)
            assert (count, is_none) == (len(parts), scale is None)
            assert float(ops.to_numpy(ops.asarray(total))) == sum(map(float, map(_first, _parts_of(parts))))
    assert compiled([one, [two]], None)[0] == 2  # deeper ones are found too


def _parts_of(parts: Any) -> list[Any]:
    return list(parts.values() if isinstance(parts, dict) else parts)


def _first(x: Any) -> Any:
    return ops.sum(x[0] if isinstance(x, list) else x)


@pytest.mark.long_with("torch", "mlx")
@pytest.mark.parametrize("start", [1.0, True], ids=["number", "truth"])
def test_constants_are_told_from_tensors_after_a_call_with_tensors(backend: str, start: float) -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * 2.0 if y else -x) if isinstance(y, bool | int | float) else ops.add(x, ops.cast(y, "float32"))

    compiled = ember_ml.compile(f)
    x, tensor = ops.array([1.0, 2.0]), ops.array(start)
    others = [True, 1.0, 2, tensor, ops.array([3.0, 4.0]), ops.array(2), False, EmberTensor([5.0, 6.0]), tensor]
    for y in (tensor, tensor, *others):
        found = compiled(x, y)
        assert type(found) is type(f(x, y))
        assert ops.to_numpy(found).tolist() == ops.to_numpy(f(x, y)).tolist()


@pytest.mark.long_with("torch", "mlx")
def test_results_of_another_form_for_another_shape(backend: str) -> None:
    def f(x: Any) -> Any:
        return {"x": x + 1.0} if x.shape[0] == 3 else (x + 2.0, 7) if x.shape[0] == 4 else (x + 3.0,)

    compiled = ember_ml.compile(f)
    for length in (2, 2, 3, 2, 4, 4, 5, 2):
        x = ops.zeros(length)
        found, want = compiled(x), f(x)
        assert type(found) is type(want)
        (got, *rest), (first, *others) = (list(y.values() if isinstance(y, dict) else y) for y in (found, want))
        assert ops.to_numpy(got).tolist() == ops.to_numpy(first).tolist()
        assert rest == others


def test_what_cannot_be_a_constant_is_named(backend: str) -> None:
    compiled = ember_ml.compile(lambda x, y: x)
    if backend == "numpy":  # which runs the function as it is
        assert ops.to_numpy(compiled(ops.ones(2), {1, 2})).tolist() == [1.0, 1.0]
        return
    with pytest.raises(TypeError, match="set"):
        compiled(ops.ones(2), {1, 2})


@pytest.mark.long_with("torch")  # each compilation takes two seconds there
def test_many_constants_warn_once(backend: str) -> None:
    compiled = ember_ml.compile(lambda x, n: x + n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(36):
            compiled(ops.ones(2), n)
    wanted = [] if backend == "numpy" else [True]  # NumPy compiles nothing
    assert ["compiled for" in str(warning.message) for warning in caught] == wanted


def test_compiled_inside_compiled(backend: str) -> None:
    inner = ember_ml.compile(lambda x: ops.exp(x))
    outer = ember_ml.compile(lambda x: inner(x) + 1.0)
    assert _same(outer(ops.zeros(3)), ops.full((3,), 2.0))

"""Gradients in threads and scopes compute where they began, and none is lost between backends without a word."""

from __future__ import annotations

import contextvars
import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends, load
from ember_ml.errors import LostGradient
from ember_ml.nn.tensor import EmberTensor

PAIRS = [(one, other) for one in installed_backends() for other in installed_backends() if one != other]


@pytest.fixture(autouse=True)
def _backend_stays() -> Any:
    before = ember_ml.get_backend()
    yield
    ember_ml.set_backend(before)


# Threads


def in_threads(works: list[Callable[[], Any]]) -> list[Any]:
    """What each function gives, all started together."""
    start = Barrier(len(works))

    def run(work: Callable[[], Any]) -> Any:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def test_many_threads_differentiate_at_once(backend: str) -> None:
    def work(factor: float) -> Any:
        def run() -> list[float]:
            found = []
            for _ in range(20):
                second = ops.grad(ops.grad(lambda x: factor * x**3))
                found.append(ops.item(second(2.0)))
            return found

        return run

    found = in_threads([work(float(i)) for i in range(6)])
    assert found == [[pytest.approx(12.0 * i, rel=1e-5)] * 20 for i in range(6)]


def test_threads_on_different_backends() -> None:
    names = [*installed_backends()] * 2

    def work(name: str) -> Any:
        def run() -> tuple[Any, list[float]]:
            with ember_ml.use_backend(name):
                gradient = None
                for _ in range(20):
                    gradient = ops.grad(lambda x: ops.sum(ops.checkpoint(ops.sin)(x) * x))(ops.array([0.0, 1.0]))
                return type(gradient), ops.to_numpy(gradient).tolist()

        return run

    for name, (kind, row) in zip(names, in_threads([work(name) for name in names]), strict=True):
        assert kind is load(name).tensor_type
        assert row == pytest.approx([0.0, 1.3817732906760363], abs=1e-6)


def test_variables_of_different_threads(backend: str) -> None:
    """Each thread adds to a variable of its own; recording is of nobody else."""

    def work(start: float) -> Any:
        def run() -> float:
            x = EmberTensor(start, requires_grad=True)
            for _ in range(10):
                (x * x).backward()
            assert x.grad is not None
            return x.grad.item()

        return run

    assert in_threads([work(float(i)) for i in range(5)]) == [20.0 * i for i in range(5)]


def test_backward_in_another_thread(backend: str) -> None:
    x = EmberTensor([1.0, 2.0], requires_grad=True)
    total = (x * x).sum()

    def work() -> None:
        total.backward()
        ops.to_numpy(x.grad)  # MLX evaluates only in the thread that computed

    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 4.0]


# Scopes and switches


@pytest.mark.parametrize(("process", "scope"), PAIRS)
def test_a_scope_decides_where_a_gradient_is_computed(process: str, scope: str) -> None:
    ember_ml.set_backend(process)
    slope = ops.grad(lambda x: ops.sum(x * x))
    with ember_ml.use_backend(scope):
        assert type(slope(ops.array([1.0]))) is load(scope).tensor_type
        second = ops.hessian(lambda x: ops.sum(x**3))(ops.array([1.0, 2.0]))
        assert type(second) is load(scope).tensor_type
        assert ops.to_numpy(second).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert type(slope(ops.array([1.0]))) is load(process).tensor_type


@pytest.mark.parametrize(("process", "scope"), PAIRS)
def test_a_thread_can_inherit_the_scope(process: str, scope: str) -> None:
    ember_ml.set_backend(process)
    with ember_ml.use_backend(scope), ThreadPoolExecutor(1) as pool:
        context = contextvars.copy_context()
        gradient = pool.submit(context.run, ops.grad(lambda x: x * x), 3.0).result()
    assert type(gradient) is load(scope).tensor_type


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_backward_computes_where_the_forward_pass_ran(one: str, other: str) -> None:
    ember_ml.set_backend(one)
    x = EmberTensor([1.0, 2.0], requires_grad=True)
    total = ops.sum(ops.tanh(x) * x)
    ember_ml.set_backend(other)
    total.backward()
    assert x.grad is not None
    assert x.grad.backend == one
    expected = [1.1815685, 1.105327]  # tanh x + x / cosh^2 x
    assert x.grad.tolist() == pytest.approx(expected, abs=1e-5)
    (x * x).sum().backward(ops.array(1.0))  # operators stay on the tensor's own backend, whatever seeds them
    assert x.grad.tolist() == pytest.approx([expected[0] + 2.0, expected[1] + 4.0], abs=1e-5)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_constants_may_come_from_anywhere(one: str, other: str) -> None:
    ember_ml.set_backend(other)
    native, portable = ops.array([3.0, 4.0]), EmberTensor([1.0, 1.0])
    ember_ml.set_backend(one)
    gradient = ops.grad(lambda x: ops.sum(ops.multiply(x, native) + ops.multiply(x, portable)))(ops.array([1.0, 1.0]))
    assert ops.to_numpy(gradient).tolist() == [4.0, 5.0]


# Crossing

CROSSINGS: dict[str, Callable[[Any], Any]] = {
    "op": ops.exp,
    "op with a number": lambda x: ops.add(x, 1.0),
    "second operand": lambda x: ops.multiply(ops.ones(2), x),
    "list of tensors": lambda x: ops.stack([ops.ones(2), x]),
    "value of an update": lambda x: ops.index_update(ops.zeros((2, 2)), 0, x),
    "array": ops.array,
    "asarray": ops.asarray,
    "portable": EmberTensor,
    "gradient": lambda x: ops.grad(lambda y: ops.sum(y * y))(x),
    "closure of a gradient": lambda x: ops.grad(lambda y: ops.sum(ops.multiply(y, x)))(ops.ones(2)),
}


@pytest.mark.parametrize("crossing", CROSSINGS)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_live_gradient_does_not_cross_inside_grad(one: str, other: str, crossing: str) -> None:
    def f(x: Any) -> Any:
        y = ops.sin(x)
        with ember_ml.use_backend(other):
            CROSSINGS[crossing](y)
        return ops.sum(y)

    ember_ml.set_backend(one)
    with pytest.raises(LostGradient, match="being differentiated") as caught:
        ops.grad(f)(ops.array([1.0, 2.0]))
    assert isinstance(caught.value, RuntimeError)
    # the values themselves may, and what does not depend on the variable may too
    constant = ops.array([1.0, 2.0])

    def allowed(x: Any) -> Any:
        y, z = ops.stop_gradient(x), ops.cos(constant)
        with ember_ml.use_backend(other):
            CROSSINGS[crossing](y)
            CROSSINGS[crossing](z)
            ops.to_numpy(x)
        return ops.sum(x)

    assert ops.to_numpy(ops.grad(allowed)(ops.array([1.0, 2.0]))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("crossing", CROSSINGS)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_live_gradient_does_not_cross_after_recording(one: str, other: str, crossing: str) -> None:
    ember_ml.set_backend(one)
    x = EmberTensor([1.0, 2.0], requires_grad=True)
    y = ops.sin(x)
    ember_ml.set_backend(other)
    for tensor in (x, y):
        with pytest.raises(LostGradient, match="being differentiated"):
            CROSSINGS[crossing](tensor)
    CROSSINGS[crossing](y.detach())
    assert ops.shape(ops.to_numpy(y)) == (2,)


def test_a_list_of_live_tensors_is_no_tensor(backend: str) -> None:
    """Its numbers would be read, and the gradient lost; ops.stack keeps it."""
    for call in (ops.array, ops.asarray, ops.convert_to_tensor, ops.sum, EmberTensor):
        with pytest.raises(LostGradient, match=r"ops\.stack"):
            ops.grad(lambda x, call=call: ops.sum(call([x, x * 2.0])))(3.0)
    with pytest.raises(LostGradient):
        ops.grad(lambda x: ops.sum(ops.index_update(ops.zeros(2), 0, [x])))(3.0)
    assert ops.item(ops.grad(lambda x: ops.sum(ops.stack([x, x * 2.0])))(3.0)) == 3.0
    assert ops.grad(lambda x: x * len(ops.shape([x, x])))(3.0) == 1.0


def test_copies_leave_the_recording(backend: str) -> None:
    x = EmberTensor([1.0, 2.0], requires_grad=True)
    copied = copy.deepcopy(ops.sin(x))
    (copied * 2.0).sum().backward()
    assert x.grad is None
    assert copied.grad is not None


@pytest.mark.parametrize("transform", ["jacobian", "jvp", "vjp", "hessian"])
def test_no_transform_lets_gradients_cross(transform: str, backend: str) -> None:
    other = next((name for name in installed_backends() if name != backend), None)
    if other is None:
        pytest.skip("gradients cross between two backends, and one is installed")

    def f(x: Any) -> Any:
        with ember_ml.use_backend(other):
            y = ops.exp(ops.sin(x))
        return ops.sum(y)

    x = ops.array([1.0])
    calls = {
        "jacobian": lambda: ops.jacobian(f)(x),
        "hessian": lambda: ops.hessian(f)(x),
        "jvp": lambda: ops.jvp(f, (x,), (x,)),
        "vjp": lambda: ops.vjp(f, x)[1](ops.array(1.0)),
    }
    with pytest.raises(LostGradient):
        calls[transform]()

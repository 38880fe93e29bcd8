"""requires_grad, backward(), grad and detach() of portable tensors, the same on every backend."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.nn.tensor import EmberTensor

EVERY_BACKEND = pytest.mark.parametrize("name", installed_backends())
NUMBERS = st.floats(-2.0, 2.0, width=32)


def variable(values: Any = (1.0, 2.0), **rest: Any) -> EmberTensor:
    return EmberTensor(list(values) if isinstance(values, tuple) else values, requires_grad=True, **rest)


def gradient_of(x: EmberTensor) -> Any:
    assert type(x.grad) is EmberTensor
    assert not x.grad.requires_grad
    return x.grad.tolist()


# What backward does


def test_backward_of_a_number(backend: str) -> None:
    x, y = variable(), variable((3.0, 4.0))
    assert x.grad is None
    assert (x * y * x).sum().backward() is None
    assert gradient_of(x) == [6.0, 16.0]
    assert gradient_of(y) == [1.0, 4.0]
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.backend, x.grad.shape) == ("float32", backend, (2,))


def test_gradients_add_up_until_they_are_reset(backend: str) -> None:
    x = variable()
    (x * x).sum().backward()
    first = x.grad
    (x * 3.0).sum().backward()
    assert gradient_of(x) == [5.0, 7.0]
    assert first is not None
    assert first.tolist() == [2.0, 4.0]  # what was read stays
    x.grad = None
    assert x.grad is None
    (x * 3.0).sum().backward()
    assert gradient_of(x) == [3.0, 3.0]


def test_one_graph_with_many_paths(backend: str) -> None:
    x = variable(2.0)
    y = x * x
    z = y + y * x + x  # x^2 + x^3 + x
    z.backward()
    assert gradient_of(x) == 17.0


@pytest.mark.parametrize("kind", ["list", "native", "portable", "wider"])
def test_backward_of_a_tensor_takes_its_gradient(kind: str, backend: str) -> None:
    x = variable()
    given_as = {
        "list": [1.0, 10.0],
        "native": ops.array([1.0, 10.0]),
        "portable": EmberTensor([1.0, 10.0]),
        "wider": ops.array([1.0, 10.0], dtype="float64"),
    }
    (x * x).backward(given_as[kind])
    assert gradient_of(x) == [2.0, 40.0]
    assert x.grad is not None
    assert x.grad.dtype == "float32"


def test_backward_of_a_variable_itself(backend: str) -> None:
    x, y = variable(3.0), variable()
    x.backward()
    y.backward([1.0, 2.0])
    assert (gradient_of(x), gradient_of(y)) == (1.0, [1.0, 2.0])


def test_backward_of_half_precision_and_complex_numbers(backend: str) -> None:
    x = variable(dtype="float16")
    (x * x).sum().backward()
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.tolist()) == ("float16", [2.0, 4.0])
    z = EmberTensor([1 + 1j, 2.0], requires_grad=True)
    ops.sum(ops.real(z * ops.conj(z))).backward()  # |z|^2 grows fastest along 2 z
    assert gradient_of(z) == [2 + 2j, 4 + 0j]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: (x * x).backward(), ValueError, r"shape \(2,\) needs the gradient of that shape; or sum it"),
        (lambda x: (x * x).backward([1.0]), ValueError, r"the gradient has shape \(1,\), and the tensor \(2,\)"),
        (lambda x: x.detach().sum().backward(), RuntimeError, "no variable went into; make one with requires_grad"),
        (lambda x: ops.argmax(x).backward(), RuntimeError, "no variable went into"),
        (lambda x: ops.sum(ops.cast(x, "complex64")).backward(), ValueError, "complex number needs its gradient"),
        (lambda x: setattr(x, "grad", [1.0]), ValueError, r"the gradient has shape \(1,\)"),
        (lambda x: setattr(x * 2.0, "grad", [1.0, 1.0]), ValueError, "only a variable has a gradient"),
        (lambda x: setattr(x.detach(), "grad", [1.0, 1.0]), ValueError, "only a variable has a gradient"),
    ],
    ids=["tensor", "shape", "constant", "integer", "complex", "set shape", "set computed", "set constant"],
)
def test_what_backward_refuses(call: Any, error: type, message: str, backend: str) -> None:
    with pytest.raises(error, match=message):
        call(variable())


@pytest.mark.parametrize("again", [lambda y, z: z.backward(), lambda y, z: (y * 2.0).sum().backward()])
def test_a_graph_is_used_up(again: Any, backend: str) -> None:
    x = variable()
    y = x * x
    z = ops.exp(y).sum()
    z.backward()
    with pytest.raises(RuntimeError):
        again(y, z)
    assert gradient_of(x) == pytest.approx([2.0 * 2.718281828, 4.0 * 54.598150033], rel=1e-5)


FLAT = [
    *(pytest.param(getattr(ops, name), id=name) for name in ("floor", "ceil", "trunc", "round", "sign", "imag")),
    pytest.param(lambda x: ops.floor_divide(x, 0.5), id="floor_divide"),
    pytest.param(lambda x: ops.floor_divide(5.0, x), id="floor_divide by"),
]


@pytest.mark.parametrize("flat", FLAT)
def test_steps_have_gradient_0(flat: Any, backend: str) -> None:
    x = variable((0.25, float("inf")) if flat is ops.imag else (0.25, -1.75))
    flat(x).sum().backward()
    assert gradient_of(x) == [0.0, 0.0]


# Which tensors record


def test_what_is_computed_from_variables_records(backend: str) -> None:
    x = variable()
    assert x.requires_grad
    assert (x + 1.0).requires_grad
    assert ops.stack([x, ops.ones(2)]).requires_grad
    assert not (x > 1.0).requires_grad
    assert not ops.argmax(x).requires_grad
    assert not x.detach().requires_grad
    assert not ops.stop_gradient(x).requires_grad
    assert not (EmberTensor([1.0]) * 2.0).requires_grad
    assert (x * 2.0).grad is None


@pytest.mark.parametrize("values", [[1, 2], [True]], ids=repr)
def test_integers_are_no_variables(values: Any, backend: str) -> None:
    with pytest.raises(TypeError, match="has no gradient; cast it to a float first"):
        EmberTensor(values, requires_grad=True)


def test_a_variable_can_be_made_and_unmade(backend: str) -> None:
    x = EmberTensor([1.0, 2.0])
    x.requires_grad = True
    (x * x).sum().backward()
    assert gradient_of(x) == [2.0, 4.0]
    x.requires_grad = False
    assert not x.requires_grad
    assert x.grad is None
    assert not (x * x).requires_grad
    assert x.tolist() == [1.0, 2.0]


def test_the_caller_s_tensor_stays_plain(backend: str) -> None:
    native = ops.array([1.0, 2.0])
    x = EmberTensor(native, requires_grad=True)
    (x * x).sum().backward()
    assert not EmberTensor(native).requires_grad


def test_a_tensor_made_of_a_recorded_one_goes_on_recording(backend: str) -> None:
    x = variable()
    y = EmberTensor(x * 2.0)
    z = EmberTensor(x, dtype="float16")
    assert (y.requires_grad, z.requires_grad) == (True, True)
    (y * y + z.astype("float32")).sum().backward()
    assert gradient_of(x) == [9.0, 17.0]


def test_detach_shares_values_and_nothing_else(backend: str) -> None:
    x = variable()
    y = (x * 2.0).detach()
    (x * y).sum().backward()
    assert gradient_of(x) == [2.0, 4.0]
    assert y.tolist() == [2.0, 4.0]
    plain = EmberTensor([1.0])
    assert plain.detach().tolist() == [1.0]


def test_facts_and_values_of_a_variable(backend: str) -> None:
    x = variable()
    assert (x.shape, x.dtype, x.ndim, x.size, len(x), x.backend) == ((2,), "float32", 1, 2, 2, backend)
    assert x.device == EmberTensor([1.0]).device
    assert x.tolist() == x.numpy().tolist() == ops.to_numpy(x).tolist() == [1.0, 2.0]
    number = variable(2.5)
    assert (number.item(), float(number), bool(number), f"{number:.1f}") == (2.5, 2.5, True, "2.5")
    assert ops.item(number * 2.0) == 5.0


def test_repr_says_what_records(backend: str) -> None:
    x = variable()
    assert (
        repr(x) == f"EmberTensor([1., 2.], dtype=float32, device={x.device!r}, backend={backend!r}, requires_grad=True)"
    )
    assert "requires_grad" not in repr(x.detach())


# Changes


@pytest.mark.parametrize("change", [operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ipow])
def test_a_variable_is_not_changed_in_place(change: Any, backend: str) -> None:
    x = variable()
    with pytest.raises(RuntimeError, match="would change a variable, and its gradient would be lost; make a new one"):
        change(x, 2.0)
    with pytest.raises(RuntimeError, match="would change a variable"):
        change(x, variable())
    assert x.tolist() == [1.0, 2.0]
    (x * x).sum().backward()
    assert gradient_of(x) == [2.0, 4.0]


def test_elements_of_a_variable_are_not_assigned(backend: str) -> None:
    x = variable()
    with pytest.raises(RuntimeError, match="this assignment would change a variable"):
        x[0] = 5.0
    with pytest.raises(RuntimeError, match=r"ops\.add in place would change a variable"):
        x[0] += 5.0
    assert x.tolist() == [1.0, 2.0]


def test_computed_tensors_are_changed_in_place(backend: str) -> None:
    x = variable()
    y = x * 1.0
    same = y
    y += x
    y *= y
    assert y is same
    y.sum().backward()
    assert gradient_of(x) == [8.0, 16.0]  # (2 x)^2


def test_a_constant_that_is_changed_by_a_variable_records(backend: str) -> None:
    x = variable()
    y = EmberTensor([3.0, 4.0])
    y *= x
    y -= 1.0
    assert y.requires_grad
    y.sum().backward()
    assert gradient_of(x) == [3.0, 4.0]


def test_assignment_to_elements_records(backend: str) -> None:
    x = variable()
    y, z = x * 1.0, EmberTensor([0.0, 0.0, 5.0])
    y[0] = 7.0
    z[1] = x[0] * 2.0
    z[2:] = x[1:]
    assert z.requires_grad
    (y * y).sum().backward()
    assert gradient_of(x) == [0.0, 4.0]
    x.grad = None
    (z * z).sum().backward()
    assert z.tolist() == [0.0, 2.0, 2.0]
    assert gradient_of(x) == [8.0, 4.0]


def test_an_element_is_added_to(backend: str) -> None:
    x = variable()
    y = x * 2.0
    y[0] += x[1]
    y.sum().backward()
    assert y.tolist() == [4.0, 4.0]
    assert gradient_of(x) == [2.0, 3.0]


def test_slices_of_recorded_tensors_write_through(backend: str) -> None:
    x = variable()
    y = x * 2.0
    part, turned = y[:1], ops.flip(y)
    part *= x[1]
    part[0] += 1.0
    assert (y.tolist(), turned.tolist()) == ([5.0, 4.0], [4.0, 5.0])
    (y + turned * 3.0).sum().backward()  # 4 (2 x0 x1 + 1) + 4 (2 x1)
    assert gradient_of(x) == [16.0, 16.0]


def test_views_of_variables_are_not_changed_in_place(backend: str) -> None:
    x = variable()
    part = x[:1]
    with pytest.raises(RuntimeError, match=r"ops\.add in place would change a variable"):
        part += 1.0
    with pytest.raises(RuntimeError, match="this assignment would change a variable"):
        part[0] = 1.0
    assert (x.tolist(), part.tolist()) == ([1.0, 2.0], [1.0])


def test_a_view_that_is_a_variable_keeps_its_source(backend: str) -> None:
    x = EmberTensor([1.0, 2.0])
    part = x[:1]
    part.requires_grad = True
    with pytest.raises(RuntimeError, match="would change a variable"):
        x += 1.0
    assert (x.tolist(), part.tolist()) == ([1.0, 2.0], [1.0])


def test_indexing_iteration_and_methods_record(backend: str) -> None:
    x = variable((1.0, 2.0, 3.0))
    first, *_, last = x
    (first * last + x[1:].sum() + x[x > 2.5].sum() + x.reshape(3, 1).T.mean()).backward()
    assert gradient_of(x) == pytest.approx([3.0 + 1 / 3, 1.0 + 1 / 3, 1.0 + 1.0 + 1.0 + 1 / 3], rel=1e-6)


def test_numbers_on_the_left(backend: str) -> None:
    x = variable()
    (2.0 * x - 1.0 / x + 3.0**x + (1.0 - x)).sum().backward()
    expected = [2.0 + 1 / v**2 + 3.0**v * 1.0986122886681098 - 1.0 for v in (1.0, 2.0)]
    assert gradient_of(x) == pytest.approx(expected, rel=1e-5)


# Copies and moves


def test_copies_are_parts_of_the_computation(backend: str) -> None:
    x = variable()
    (copy.copy(x) * 3.0 + x.copy() * 2.0).sum().backward()
    assert gradient_of(x) == [5.0, 5.0]


def test_a_deep_copy_is_a_variable_of_its_own(backend: str) -> None:
    x = variable()
    (x * x).sum().backward()
    twin = copy.deepcopy({"x": x})["x"]
    assert twin.requires_grad
    assert gradient_of(twin) == [2.0, 4.0]
    (twin * 3.0).sum().backward()
    assert gradient_of(twin) == [5.0, 7.0]
    assert gradient_of(x) == [2.0, 4.0]
    computed = copy.deepcopy(x * 2.0)
    computed.sum().backward()
    assert (computed.tolist(), gradient_of(computed), gradient_of(x)) == ([2.0, 4.0], [1.0, 1.0], [2.0, 4.0])


@pytest.mark.parametrize("name", installed_backends())
def test_pickled_variables_are_variables(name: str, backend: str) -> None:
    x = variable()
    (x * x).sum().backward()
    data = pickle.dumps([x, x * 2.0])
    ember_ml.set_backend(name)
    first, second = pickle.loads(data)
    for tensor, values in ((first, [1.0, 2.0]), (second, [2.0, 4.0])):
        assert (tensor.tolist(), tensor.backend, tensor.requires_grad, tensor.grad) == (values, backend, True, None)
        (tensor * 3.0).sum().backward()
        assert gradient_of(tensor) == [3.0, 3.0]


def test_moves_to_a_device_are_recorded(backend: str) -> None:
    x = variable()
    (x.to_device("cpu") * ops.to_device(x, "cpu")).sum().backward()
    assert gradient_of(x) == [2.0, 4.0]


# With the transforms of functions


def test_grad_of_a_variable_records_on(backend: str) -> None:
    x = variable()
    gradient = ops.grad(lambda t: ops.sum(t * t * t))(x)
    assert gradient.requires_grad
    gradient.sum().backward()
    assert gradient_of(x) == [6.0, 12.0]


@pytest.mark.parametrize("kind", [EmberTensor, ops.array], ids=["portable", "native"])
def test_a_gradient_can_be_differentiated_by_what_it_closes_over(kind: Any, backend: str) -> None:
    """The penalty on a gradient that some losses contain."""
    w = variable()
    for _ in range(2):
        slope = ops.grad(lambda x: ops.sum(w * x * x))(kind([1.0, 3.0]))
        (slope * slope).sum().backward()  # (2 w x)^2
    assert gradient_of(w) == [2 * 8.0, 2 * 144.0]
    value, _ = ops.value_and_grad(lambda x: ops.sum(w * x))(kind([1.0, 3.0]))
    w.grad = None
    value.backward()
    assert gradient_of(w) == [1.0, 3.0]


def test_variables_inside_transforms(backend: str) -> None:
    w, x = variable(), ops.array([1.0, 3.0])
    value, pull = ops.vjp(lambda x: w * x * x, x)
    (value.sum() + EmberTensor(pull(ops.array([1.0, 1.0]))[0]).sum()).backward()
    assert gradient_of(w) == [1.0 + 2.0, 9.0 + 6.0]
    w.grad = None
    EmberTensor(ops.jacobian(lambda x: w * x)(x)).sum().backward()
    assert gradient_of(w) == [1.0, 1.0]


def test_gradient_descent_in_the_manner_of_torch(backend: str) -> None:
    x = EmberTensor([3.0, -2.0], requires_grad=True)
    for _ in range(50):
        ((x - 1.0) ** 2).sum().backward()
        assert x.grad is not None
        x = x.detach() - 0.2 * x.grad
        x.requires_grad = True
    assert x.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)


@EVERY_BACKEND
@given(a=st.lists(NUMBERS, min_size=1, max_size=5), scale=NUMBERS)
def test_backward_gives_what_grad_gives(name: str, a: list[float], scale: float) -> None:
    def f(x: Any) -> Any:
        return ops.sum(ops.tanh(x * scale) * ops.cumsum(x) + ops.where(x > 0.0, x * x, x))

    with ember_ml.use_backend(name):
        x = EmberTensor(a, requires_grad=True)
        f(x).backward()
        expected = ops.to_numpy(ops.grad(f)(ops.array(a))).tolist()
        assert gradient_of(x) == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_backward_through_recurrent_layers(kind: str, backend: str) -> None:
    layer = getattr(nn, kind)(2, 3, dtype="float64")
    numbers = ops.random_normal((2, 4, 2), dtype="float64", seed=1)

    def f(x: Any) -> Any:
        return ops.sum(ops.sin(layer(x)))

    x = EmberTensor(numbers, requires_grad=True)
    assert type(layer(x)) is EmberTensor
    f(x).backward()
    assert x.grad is not None
    expected = ops.to_numpy(ops.grad(f)(numbers)).ravel().tolist()
    assert x.grad.numpy().ravel().tolist() == pytest.approx(expected, rel=1e-12)


def test_backward_through_normalized_batches(backend: str) -> None:
    layer, numbers = nn.BatchNorm(2, dtype="float64"), ops.random_normal((5, 2), dtype="float64", seed=1)

    def f(x: Any) -> Any:
        return ops.sum(ops.sin(layer(x)))

    x = EmberTensor(numbers, requires_grad=True)
    f(x).backward()
    assert x.grad is not None
    expected = ops.to_numpy(ops.grad(f)(numbers)).ravel().tolist()
    assert x.grad.numpy().ravel().tolist() == pytest.approx(expected, rel=1e-9)

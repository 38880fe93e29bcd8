"""What the libraries' own functions make of tensors that are being differentiated: they record, or they refuse."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.errors import LostGradient
from ember_ml.nn.tensor import EmberTensor


@pytest.fixture
def on_numpy() -> Any:
    """Compute on NumPy."""
    before = ember_ml.get_backend()
    ember_ml.set_backend("numpy")
    yield
    ember_ml.set_backend(before)


UFUNCS = [
    (np.sin, lambda x: np.cos(x)),
    (np.exp, lambda x: np.exp(x)),
    (np.tanh, lambda x: 1 - np.tanh(x) ** 2),
    (np.square, lambda x: 2 * x),
    (np.absolute, lambda x: np.sign(x)),
    (np.degrees, lambda x: np.full_like(x, 180 / np.pi)),
    (lambda x: np.remainder(x, 10.0), lambda x: np.ones_like(x)),
    (lambda x: np.add(x, 2.0), lambda x: np.ones_like(x)),
    (lambda x: np.multiply(np.array([2.0, 3.0], np.float32), x), lambda x: np.array([2.0, 3.0])),
    (lambda x: np.array([2.0, 3.0], np.float32) * x, lambda x: np.array([2.0, 3.0])),
    (lambda x: np.float32(2.0) / x, lambda x: -2.0 / x**2),
    (lambda x: np.maximum(x, 1.0), lambda x: (x > 1.0).astype(np.float32)),
]


@pytest.mark.parametrize(("function", "slope"), UFUNCS)
@pytest.mark.usefixtures("on_numpy")
def test_numpy_s_ufuncs_record(function: Any, slope: Any) -> None:
    x = np.array([0.5, 1.5], dtype=np.float32)
    gradient = ops.grad(lambda x: ops.sum(function(x)))(x)
    assert type(gradient) is np.ndarray
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, slope(x), rtol=1e-6)


@pytest.mark.usefixtures("on_numpy")
def test_numpy_s_ufuncs_inside_a_second_derivative() -> None:
    second = ops.grad(ops.grad(lambda x: np.sin(x) * x))(np.float64(0.5))
    np.testing.assert_allclose(second, 2 * np.cos(0.5) - 0.5 * np.sin(0.5))


@pytest.mark.parametrize(
    "call",
    [
        np.asarray,
        np.array,
        lambda x: np.add.reduce(x),
        lambda x: np.add(x, 1.0, out=np.zeros(2, np.float32)),
        lambda x: np.sin(x, where=np.array([True, False])),
        lambda x: np.spacing(x),
        lambda x: np.zeros(2).__setitem__(slice(None), x),
        lambda x: np.dot(x, x),
        lambda x: np.concatenate([x, x]),
    ],
    ids=["asarray", "array", "reduce", "out", "where", "no op", "assignment", "dot", "concatenate"],
)
@pytest.mark.usefixtures("on_numpy")
def test_what_numpy_would_lose_raises(call: Any) -> None:
    def f(x: Any) -> Any:
        call(x)
        return ops.sum(x)

    with pytest.raises((TypeError, LostGradient)):
        ops.grad(f)(np.ones(2, np.float32))


@pytest.mark.parametrize("name", installed_backends())
def test_other_libraries_get_no_live_tensor(name: str, backend: str) -> None:
    """Neither by the array protocol nor by DLPack."""
    ember_ml.set_backend(name)
    x = EmberTensor([1.0, 2.0], requires_grad=True)
    for call in (np.asarray, np.array, np.from_dlpack, lambda x: np.concatenate([x, x])):
        for tensor in (x, x * 2.0):
            with pytest.raises(LostGradient, match="would lose its gradient"):
                call(tensor)
        assert call(x.detach()).tolist()[:2] == [1.0, 2.0]
    assert np.asarray(x.numpy()).tolist() == [1.0, 2.0]

    def f(portable: Any) -> Any:
        for call in (np.asarray, np.from_dlpack):
            with pytest.raises(LostGradient):
                call(portable)
        return ops.sum(portable)

    ops.grad(f)(EmberTensor([1.0, 2.0]))


def test_a_live_tensor_says_which_error_it_is() -> None:
    """Those who catch what PyTorch or DLPack raise catch this too."""
    assert issubclass(LostGradient, RuntimeError)
    assert issubclass(LostGradient, BufferError)


def test_torch_s_own_variables_do_not_cross() -> None:
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.ones(2))
    ember_ml.set_backend("numpy")
    for tensor in (weight, weight * 2.0):
        with pytest.raises(LostGradient, match="differentiated on torch"):
            ops.sin(tensor)
        assert ops.shape(ops.to_numpy(tensor)) == (2,)
        assert ops.sin(tensor.detach()).shape == (2,)


def test_torch_s_own_functions_inside_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    ember_ml.set_backend("torch")
    gradient = ops.grad(lambda x: torch.nn.functional.softplus(x).sum() + ops.sum(torch.sin(x)))(torch.zeros(2))
    assert gradient.tolist() == [1.5, 1.5]
    ember_ml.set_backend("numpy")


def test_torch_s_backward_goes_through_ops() -> None:
    torch = pytest.importorskip("torch")
    ember_ml.set_backend("torch")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    ops.sum(ops.checkpoint(ops.square)(x)).backward()
    assert x.grad.tolist() == [2.0, 4.0]
    ember_ml.set_backend("numpy")


def test_mlx_s_own_functions_inside_a_gradient() -> None:
    mx = pytest.importorskip("mlx.core")
    ember_ml.set_backend("mlx")
    gradient = ops.grad(lambda x: mx.sum(mx.sigmoid(x)) + ops.sum(x * x))(mx.zeros(2))
    assert gradient.tolist() == [0.25, 0.25]
    native = mx.grad(lambda x: ops.sum(ops.checkpoint(ops.square)(x)))(mx.array([1.0, 2.0]))
    assert native.tolist() == [2.0, 4.0]
    ember_ml.set_backend("numpy")


@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**"])
def test_an_mlx_operator_with_a_variable_on_the_right(symbol: str, shape: Any) -> None:
    """MLX never asks the right operand: it must not become a constant."""
    mx = pytest.importorskip("mlx.core")
    ember_ml.set_backend("mlx")
    x = EmberTensor(mx.full(shape, 2.0), requires_grad=True)
    operation = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow}
    with pytest.raises(LostGradient):
        operation[symbol](mx.ones(shape), x)
    plain = operation[symbol](mx.ones(shape), x.detach())
    assert (plain.dtype, plain.shape) == (mx.float32, shape)
    ember_ml.set_backend("numpy")

"""Solvers inside functions that PyTorch and MLX compile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.errors import UnsupportedOp
from tests.reference.matrices import definite, linalg, numpy, random
from tests.reference.odes import error


@pytest.fixture
def torch() -> Iterator[Any]:
    module = pytest.importorskip("torch")
    module.compiler.reset()
    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")
    yield module
    ember_ml.set_backend(before)


@pytest.fixture
def mx() -> Iterator[Any]:
    module = pytest.importorskip("mlx.core")
    before = ember_ml.get_backend()
    ember_ml.set_backend("mlx")
    yield module
    ember_ml.set_backend(before)


def _integrated(y: Any) -> Any:
    return ops.odeint(lambda t, y: ops.multiply(y, ops.cos(t)), y, [0.0, 0.5, 1.0], method="rk4")


def _integrated_adaptively(y: Any) -> Any:
    return ops.odeint(lambda t, y: -y, y, [0.0, 1.0])


def test_torch_compiles_linear_systems_and_their_gradients(torch: Any) -> None:
    A, b = definite((4, 4)), random((4,))
    compiled = torch.compile(lambda A, b: ops.conjugate_gradient(A, b, tol=1e-12).x, backend="eager", fullgraph=True)
    right = ops.asarray(b).requires_grad_()
    x = compiled(ops.asarray(A), right)
    assert error(x.detach(), linalg.solve(A, b)) < 1e-11
    x.sum().backward()
    assert error(right.grad, linalg.solve(A, numpy.ones(4))) < 1e-9


def test_torch_compiles_integration_with_fixed_steps(torch: Any) -> None:
    y = ops.array([1.0, 2.0])
    compiled = torch.compile(_integrated, backend="eager", fullgraph=True)
    assert error(compiled(y), ops.to_numpy(_integrated(y))) < 1e-6
    with pytest.raises(Exception, match="method='rk4'"):
        torch.compile(_integrated_adaptively, backend="eager", fullgraph=True)(y)


def test_torch_makes_tensors_of_python_data_while_it_compiles(torch: Any) -> None:
    def f(x: Any) -> Any:
        return ops.add(ops.multiply(x, [1.0, 2.0]), ops.array([[0.5, 1], [2, 3]], dtype="float64"))

    found = torch.compile(f, backend="eager", fullgraph=True)(ops.ones(2))
    assert (found.dtype, found.tolist()) == (torch.float64, [[1.5, 3.0], [3.0, 5.0]])


def test_mlx_compiles_integration_with_fixed_steps_and_no_loop_that_ends_by_a_value(mx: Any) -> None:
    y = ops.array([1.0, 2.0])
    assert error(mx.compile(_integrated)(y), ops.to_numpy(_integrated(y))) < 1e-6
    with pytest.raises(UnsupportedOp, match="method='rk4'"):
        mx.compile(_integrated_adaptively)(y)
    with pytest.raises(UnsupportedOp, match="cannot end a loop by a value"):
        mx.compile(lambda A, b: ops.conjugate_gradient(A, b).x)(mx.eye(2), mx.ones(2))


def test_expm_compiles(torch: Any) -> None:
    x = ops.array([[1.0, 2.0], [-3.0, 0.5]])
    compiled = torch.compile(ops.expm, backend="eager", fullgraph=True)
    assert error(compiled(x), ops.to_numpy(ops.expm(x))) < 1e-5


def test_mlx_compiles_expm(mx: Any) -> None:
    x = ops.multiply(ops.array([[1.0, 2.0], [-3.0, 0.5]]), 10.0)
    assert error(mx.compile(ops.expm)(x), ops.to_numpy(ops.expm(x))) < 1e-3 * float(mx.max(mx.abs(ops.expm(x))))

"""Derivatives along a direction and vectorized gradients of linear algebra, against plain gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ember_ml import ops
from tests.autodiff.case import numbers

MATRIX = numbers(3, 3, seed=8).nested()
DIRECTION = numbers(3, 3, seed=9).nested()
WEIGHTS = numbers(3, 3, seed=10).nested()


def _definite(x: Any) -> Any:
    return ops.add(ops.matmul(x, ops.matrix_transpose(x)), ops.eye(3, dtype=x.dtype))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda x: ops.cholesky(_definite(x)),
    "det": ops.det,
    "eigvalsh": lambda x: ops.eigvalsh(_definite(x)),
    "expm": ops.expm,
    "fft": lambda x: ops.abs(ops.fft(x)),
    "inv": ops.inv,
    "lu_factor": lambda x: ops.lu_factor(x)[0],
    "norm": ops.norm,
    "pinv": ops.pinv,
    "qr": lambda x: ops.qr(x).R,
    "slogdet": lambda x: ops.slogdet(x)[1],
    "solve": lambda x: ops.solve(x, ops.sum(x, 0)),
    "svdvals": ops.svdvals,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_derivative_along_a_direction_is_the_product_with_the_gradient(backend: str, name: str) -> None:
    x, direction = ops.array(MATRIX), ops.array(DIRECTION)
    value, change = ops.jvp(FUNCTIONS[name], (x,), (direction,))
    weights = ops.reshape(ops.ravel(ops.array(WEIGHTS))[: ops.size(value)], ops.shape(value))
    gradient = ops.grad(lambda x: ops.sum(ops.multiply(FUNCTIONS[name](x), weights)))(x)
    along, across = ops.sum(ops.multiply(change, weights)), ops.sum(ops.multiply(gradient, direction))
    assert ops.item(along) == pytest.approx(ops.item(across), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_can_be_mapped(backend: str, name: str) -> None:
    gradient = ops.grad(lambda x: ops.sum(FUNCTIONS[name](x)))
    matrices = [ops.array(MATRIX), ops.array(DIRECTION)]
    mapped = ops.vmap(gradient)(ops.stack(matrices))
    assert ops.item(ops.allclose(mapped, ops.stack([gradient(x) for x in matrices]), rtol=1e-4, atol=1e-4))

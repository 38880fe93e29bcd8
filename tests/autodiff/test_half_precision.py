"""Half precision is rounded once on the CPU: results and gradients are those of float32, rounded, on every backend."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import ops

CASES: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "linear": (ops.linear, ((4, 32, 24), (40, 24), (40,))),
    "matmul": (ops.matmul, ((4, 32, 24), (4, 24, 16))),
    "attention": (lambda *x: ops.dot_product_attention(*x, is_causal=True), ((2, 32, 4, 16),) * 3),
    "attention, bias": (ops.dot_product_attention, (*((2, 32, 4, 16),) * 3, (2, 4, 32, 32))),
    "gelu": (ops.gelu, ((64, 64),)),
    "exact gelu": (lambda x: ops.gelu(x, approximate=False), ((64, 64),)),
    "silu": (ops.silu, ((64, 64),)),
    "softplus": (ops.softplus, ((64, 64),)),
    "mish": (ops.mish, ((64, 64),)),
    "elu": (ops.elu, ((64, 64),)),
}


def compute(function: Any, dtype: str, arguments: list[Any], weights: Any) -> list[Any]:
    """Return the result and the gradient for each argument, computed in ``dtype``."""
    result, pull_back = ember_ml.vjp(function, *(ops.cast(x, dtype) for x in arguments))
    every = [result, *pull_back(ops.cast(weights, dtype))]
    assert all(ops.dtype(x) == dtype for x in every)
    return every


@pytest.mark.parametrize("half", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_rounded_once(name: str, half: str, backend: str) -> None:
    with ops.use_device("cpu"):  # kernels for GPUs round attention's probabilities, and on JAX products before a bias
        check(name, half)


def check(name: str, half: str) -> None:
    function, shapes = CASES[name]
    ops.random.seed(0)

    def draw(shape: tuple[int, ...]) -> Any:  # numbers that half precision holds exactly
        return ops.cast(ops.cast(ops.random_normal(shape), half), "float32")

    arguments = [draw(shape) for shape in shapes]
    weights = draw(ops.shape(function(*arguments)))
    wide = compute(function, "float32", arguments, weights)
    for number, x in enumerate(compute(function, half, arguments, weights)):
        found, wanted = ops.cast(x, "float32"), ops.cast(ops.cast(wide[number], half), "float32")
        # the last bit of float32 depends on the order of a sum, and turns one rounding in some hundreds
        turned = ops.item(ops.mean(ops.cast(ops.not_equal(found, wanted), "float32")))
        assert turned < 0.02, (number, turned)
        assert ops.allclose(found, wanted, rtol=2.0 ** (-7 if half == "bfloat16" else -10), atol=1e-6), number

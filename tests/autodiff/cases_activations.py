"""Gradient cases of the activations, on both sides of their kinks and far out."""

from __future__ import annotations

from tests.autodiff.case import Numbers, case, numbers, unary

_FAR = Numbers((-30.0, -8.0, -4.5, 4.5, 8.0, 30.0), (6,))

for _name in ("gelu", "silu", "mish", "sigmoid", "log_sigmoid", "softplus", "squareplus", "tanh_shrink"):
    unary(_name)
    case(_name, x=_FAR, label="far")
for _name in ("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "softsign", "hard_sigmoid", "hard_silu"):
    unary(_name, 0.1, 2.0)
    unary(_name, -2.0, -0.1)
    case(_name, x=_FAR, label="far")
for _name in ("hard_tanh", "hard_shrink", "soft_shrink"):
    unary(_name, 0.1, 0.4)
    unary(_name, -0.9, -0.6)
    case(_name, x=_FAR, label="far")
case("gelu", x=numbers(3, 4), approximate=False, label="exact")
case("gelu", x=_FAR, approximate=False, label="exact, far")
case("elu", x=numbers(6, low=-2.0, high=-0.1), alpha=0.7)
case("celu", x=numbers(6, low=-2.0, high=-0.1), alpha=0.7)
case("threshold", x=numbers(6, apart=True), threshold=0.1, default_value=3.0)
case("prelu", ("x", "weight"), x=numbers(3, 4, apart=True), weight=numbers(4, seed=1))
case("prelu", ("x", "weight"), x=numbers(3, 4, apart=True), weight=numbers(seed=1), label="one weight")
for _name in ("softmax", "log_softmax", "sparsemax", "glu"):
    case(_name, x=numbers(2, 4, apart=True, seed=3))
    case(_name, x=numbers(4, 2, apart=True, seed=3), axis=0, label="axis")
for _name in ("softmax", "log_softmax"):
    case(_name, x=numbers(2, 3, 2, seed=3), axis=(0, 2), label="axes")
    case(_name, x=numbers(2, 3, seed=3), axis=None, label="all")
# what is linear in the wide, at the places where the absolute value would have no slope
for _name in ("sigmoid", "silu", "softplus", "squareplus", "gelu", "mish", "log_sigmoid", "tanh_shrink"):
    case(_name, x=Numbers((0.0,), (1,)), label="zero")

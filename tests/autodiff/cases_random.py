"""Gradient cases of random numbers, which are smooth functions of where they lie and how far they spread."""

from __future__ import annotations

from typing import Any

from tests.autodiff.case import case, numbers

# MLX computes the cases in float32, which has other random numbers than the float64 of the differences; its gradients
# are tested with the random numbers themselves
OTHER: dict[str, Any] = {"seed": 1, "missing": ("mlx",)}
for name in ("random_normal", "random_truncated_normal"):
    case(name, ("mean", "stddev"), shape=(3, 4), mean=numbers(4), stddev=numbers(3, 1, low=0.5), **OTHER)
for name in ("random_laplace", "random_gumbel"):
    case(name, ("loc", "scale"), shape=(3, 4), loc=numbers(), scale=numbers(3, 4, low=0.5), **OTHER)
bounds = {"minval": numbers(4, high=0.0), "maxval": numbers(4, low=1.0)}
case("random_uniform", ("minval", "maxval"), shape=(3, 4), **bounds, **OTHER)
case("random_exponential", "scale", shape=(5,), scale=numbers(5, low=0.5), **OTHER)
case("random_gamma", "scale", shape=(5,), alpha=2.0, scale=numbers(5, low=0.5), seed=1)

case("dropout", x=numbers(4, 5), rate=0.4, seed=1)
case("dropout", x=numbers(4, 5, kind="complex"), rate=0.4, seed=1, label="complex")
case("dropout", x=numbers(3), rate=0.0, label="nothing dropped")
case("dropout", x=numbers(3), rate=1.0, label="everything dropped")
case("shuffle", x=numbers(4, 3), axis=1, seed=1)
case("random_permutation", x=numbers(4, 3), seed=1)
case("random_choice", x=numbers(4, 3), shape=(2, 3), seed=1, label="with repetition")
case("random_choice", x=numbers(4, 3), shape=2, replace=False, p=[0.1, 0.2, 0.3, 0.4], seed=1, label="by probability")

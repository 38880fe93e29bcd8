"""Gradient cases of convolutions, pooling, attention and rotation by position."""

from __future__ import annotations

from tests.autodiff.case import case, numbers

_WINDOWS = {1: (3,), 2: (2, 3), 3: (2, 1, 2)}
_SIZES = {1: (6,), 2: (4, 5), 3: (3, 2, 3)}
for dimensions, window in _WINDOWS.items():
    sizes, several = _SIZES[dimensions], (2,) * dimensions
    pair = {"x": numbers(2, *sizes, 2), "kernel": numbers(*window, 2, 3, seed=1)}
    how = {"strides": several, "padding": "same"}
    case("conv", ("x", "kernel"), label=f"{dimensions}-d", **pair)
    case("conv", ("x", "kernel"), label=f"{dimensions}-d strides", **pair, **how)
    case("conv", ("x", "kernel"), label=f"{dimensions}-d dilated", **pair, dilation_rate=2, padding=2)
    back = {"x": pair["x"], "kernel": numbers(*window, 3, 2, seed=2)}
    case("conv_transpose", ("x", "kernel"), label=f"{dimensions}-d", **back)
    case("conv_transpose", ("x", "kernel"), label=f"{dimensions}-d strides", **back, **how)
    case("conv_transpose", ("x", "kernel"), label=f"{dimensions}-d more", **back, strides=2, output_padding=1)
    case("max_pool", x=numbers(1, *sizes, 2, apart=True), pool_size=2, strides=1, label=f"{dimensions}-d")
    case("max_pool", x=numbers(1, *sizes, 2, apart=True), pool_size=2, padding="same", label=f"{dimensions}-d same")
    case("average_pool", x=pair["x"], pool_size=2, label=f"{dimensions}-d")
    case("average_pool", x=pair["x"], pool_size=2, strides=1, padding="same", label=f"{dimensions}-d same")
    case("adaptive_max_pool", x=numbers(1, *sizes, 2, apart=True), output_size=2, label=f"{dimensions}-d")
    case("adaptive_average_pool", x=pair["x"], output_size=2, label=f"{dimensions}-d")

first = {"data_format": "channels_first"}
case("conv", ("x", "kernel"), label="first", x=numbers(2, 4, 5), kernel=numbers(2, 2, 4, seed=1), **first, strides=2)
case("conv", ("x", "kernel"), label="groups", x=numbers(1, 3, 4, 4), kernel=numbers(2, 2, 2, 6, seed=1), strides=(2, 1))
case("conv", ("x", "kernel"), label="causal", x=numbers(1, 4, 2), kernel=numbers(3, 2, 1, seed=1), padding="causal")
case("conv_transpose", ("x", "kernel"), label="first", x=numbers(1, 2, 4), kernel=numbers(3, 1, 2, seed=1), **first)
case(
    "conv_transpose",
    ("x", "kernel"),
    label="numbers",
    x=numbers(1, 4, 2),
    kernel=numbers(3, 1, 2, seed=1),
    padding=[(2, 1)],
    strides=3,
    dilation_rate=2,
)
case("conv", ("x", "kernel"), label="empty", x=numbers(0, 4, 2), kernel=numbers(2, 2, 1, seed=1))
case("depthwise_conv", ("x", "kernel"), x=numbers(2, 4, 4, 3), kernel=numbers(2, 2, 3, 2, seed=1), padding="same")
case(
    "depthwise_conv", ("x", "kernel"), label="one each", x=numbers(2, 6, 3), kernel=numbers(3, 3, 1, seed=1), strides=2
)
case(
    "separable_conv",
    ("x", "depthwise_kernel", "pointwise_kernel"),
    x=numbers(1, 4, 2),
    depthwise_kernel=numbers(2, 2, 2, seed=1),
    pointwise_kernel=numbers(1, 4, 3, seed=2),
)

_QKV = {"query": numbers(2, 3, 4, 2), "key": numbers(2, 5, 2, 2, seed=1), "value": numbers(2, 5, 2, 3, seed=2)}
_SEEN = [[(i + j) % 3 != 1 and i != 1 for j in range(5)] for i in range(3)]
names = ("query", "key", "value")
case("dot_product_attention", names, **_QKV)
case("dot_product_attention", names, label="causal", **_QKV, is_causal=True, scale=0.3)
case("dot_product_attention", (*names, "bias"), label="bias", **_QKV, bias=numbers(4, 1, 5, seed=3))
case("dot_product_attention", (*names, "bias"), label="mask", **_QKV, bias=numbers(3, 5, seed=3), mask=_SEEN)
case(
    "dot_product_attention",
    names,
    label="more queries than keys",
    query=numbers(2, 4, 2, 3),
    key=numbers(2, 2, 1, 3, seed=1),
    value=numbers(2, 2, 1, 4, seed=2),
    is_causal=True,
)
_EVEN = {name: numbers(2, 4, 2, 4, seed=place) for place, name in enumerate(names)}
case("dot_product_attention", names, label="self", **_EVEN, is_causal=True)
_WORDS = numbers(2, 4, kind="uint32", low=0, high=2**32 - 1)
_PACKED = {"scales": numbers(2, 1, seed=1), "biases": numbers(2, 1, seed=2), "bits": 4, "group_size": 32}
case("dequantize", ("scales", "biases"), weight=_WORDS, **_PACKED)
case("quantized_linear", ("x", "scales", "biases"), x=numbers(3, 32), weight=_WORDS, **_PACKED)
case("rotary_embedding", x=numbers(2, 3, 2, 4))
case("rotary_embedding", x=numbers(2, 3, 4), interleaved=True, offset=5, label="interleaved")

"""Convolutions: what the contract's generic tests cannot see."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn import tensor
from tests.reference import EPS, close, largest_error
from tests.reference import convolutions as reference
from tests.reference.matrices import numpy, random

KERNELS = {1: (5,), 2: (3, 4), 3: (2, 3, 2)}
SIZES = {1: (40,), 2: (12, 15), 3: (6, 7, 5)}


def _case(dimensions: int, channels: int, results: int, dtype: str = "float32") -> tuple[Any, Any]:
    x = random((2, *SIZES[dimensions], channels), dtype)
    return x, random((*KERNELS[dimensions], channels, results), dtype, 1)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("positive", [False, True], ids=["signs", "positive"])
def test_single_precision_is_within_a_millionth_of_the_sum_of_absolute_terms(
    backend: str, dimensions: int, positive: bool
) -> None:
    x, kernel = _case(dimensions, 16, 8)
    if positive:
        x, kernel = abs(x), abs(kernel)
    size = reference.conv(abs(x), abs(kernel), 1, "same")
    got = ops.to_numpy(ops.conv(ops.asarray(x), ops.asarray(kernel), padding="same"))
    assert largest_error(got, reference.conv(x, kernel, 1, "same"), size) < 1e-6
    x = x[..., :8]
    size = reference.conv_transpose(abs(x), abs(kernel), 2, "same")
    got = ops.to_numpy(ops.conv_transpose(ops.asarray(x), ops.asarray(kernel), 2, "same"))
    assert largest_error(got, reference.conv_transpose(x, kernel, 2, "same"), size) < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["conv", "conv_transpose", "depthwise_conv"])
def test_half_precision_is_rounded_once(backend: str, dtype: str, name: str) -> None:
    x, kernel = abs(random((1, 9, 8, 24), dtype)), abs(random((3, 3, 24, 24), dtype, 1))
    want = getattr(reference, name)(x, kernel)
    got = ops.to_numpy(getattr(ops, name)(ops.asarray(x), ops.asarray(kernel)))
    # half a unit for the rounding at the end, and a little for the sum in float32
    assert largest_error(got, want, want) < EPS[dtype] * 0.5 + 1e-5


def test_large_numbers_infinities_and_nan_reach_only_what_they_meet(backend: str) -> None:
    x = [[[1.0], [math.inf], [2.0], [3.0], [math.nan], [4.0], [1e38], [1e38], [5.0]]]
    got = ops.to_numpy(ops.conv(ops.array(x), ops.ones((2, 1, 1)))).ravel().tolist()
    assert got[0] == got[1] == math.inf
    assert got[2] == 5.0
    assert math.isnan(got[3])
    assert math.isnan(got[4])
    assert got[5] == pytest.approx(1e38)
    assert got[6] == pytest.approx(2e38)
    assert ops.to_numpy(ops.conv(ops.array(x)[:, 6:8], ops.full((2, 1, 1), 2.0))).ravel().tolist() == [math.inf]


def test_integers_are_computed_in_float32(backend: str) -> None:
    got = ops.conv(ops.array([[[1], [2], [3]]]), ops.array([[[10]], [[1]]]))
    assert ops.dtype(got) == "float32"
    assert ops.to_numpy(got).ravel().tolist() == [12.0, 23.0]


def test_half_precision_does_not_mix_with_wider_floats(backend: str) -> None:
    x, kernel = ops.ones((1, 4, 1), dtype="float16"), ops.ones((2, 1, 1), dtype="float32")
    for name in ("conv", "conv_transpose", "depthwise_conv"):
        with pytest.raises(TypeError, match="half precision"):
            getattr(ops, name)(x, kernel)
    assert ops.dtype(ops.conv(ops.ones((1, 4, 1), dtype="float64"), kernel)) == "float64"


def test_portable_tensors_give_portable_ones(backend: str) -> None:
    got = ops.conv(tensor.EmberTensor([[[1.0], [2.0]]]), [[[3.0]]])
    assert type(got) is tensor.EmberTensor
    assert got.tolist() == [[[3.0], [6.0]]]


def test_arguments_are_not_changed(backend: str) -> None:
    x, kernel = ops.asarray(random((2, 6, 4), "float32")), ops.asarray(random((3, 2, 4), "float32", 1))
    before = ops.to_numpy(x).tolist(), ops.to_numpy(kernel).tolist()
    ops.conv(x, kernel, 2, "same", "channels_last", 2)
    ops.conv_transpose(x, ops.ones((3, 2, 4)), 2, "same")
    assert (ops.to_numpy(x).tolist(), ops.to_numpy(kernel).tolist()) == before


@pytest.mark.parametrize("size", [(1, 5, 1), (2, 4, 1), (3, 3, 1)])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_single_channels_of_any_memory_layout(backend: str, size: tuple[int, ...], stride: int) -> None:
    """The strides of a dimension of size 1 mean nothing; a library that reads them finds a layout that is not there."""
    moved = numpy.moveaxis
    for dimensions in (1, 2, 3):
        x = random((2, *size[:1] * (dimensions - 1), 5, 1), "float32")
        kernel = random((*(1,) * (dimensions - 1), 3, 1, 2), "float32", 1)
        for layout in (
            x,
            numpy.asfortranarray(x),
            moved(moved(x, -1, 1).copy(), 1, -1),
        ):
            got = ops.to_numpy(ops.conv(ops.asarray(layout), ops.asarray(kernel), stride))
            assert close(got, reference.conv(x, kernel, stride), 8, 10.0) is None


def test_compiled_gradients_of_one_sequence_in_groups(backend: str) -> None:
    x, kernel, direction = (random(shape, "float64", i) for i, shape in enumerate([(1, 3, 4), (2, 2, 4), (2, 2, 4)]))

    def loss(x: Any, kernel: Any) -> Any:
        return ops.sum(ops.square(ops.conv(x, kernel, 1, 1)))

    slopes = ops.to_numpy(ops.compile(ops.grad(loss, 1))(ops.asarray(x), ops.asarray(kernel)))
    # a convolution is linear in its kernel
    along = 2 * (reference.conv(x, kernel, 1, 1) * reference.conv(x, direction, 1, 1)).sum()
    assert (slopes * direction).sum() == pytest.approx(along, rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((2, 4), (2, 4)), "3, 4 or 5"),
        (((2, 4, 3), (2, 2, 3, 1)), "equally many"),
        (((2, 4, 3), (2, 2, 1)), "do not divide"),
        (((2, 4, 0), (2, 2, 1)), "do not divide"),
        (((2, 4, 4), (2, 2, 3)), "shared out"),
        (((2, 4, 3), (5, 3, 1)), "does not fit"),
        (((2, 4, 3), (0, 3, 1)), "no elements"),
        (((2, 4, 3), (2, 3, 1), 0), "at least 1"),
        (((2, 4, 3), (2, 3, 1), (1, 1)), "one for each"),
        (((2, 4, 3), (2, 3, 1), 1, "full"), "'same'"),
        (((2, 4, 4, 3), (2, 2, 3, 1), 1, "causal"), "one dimension only"),
        (((2, 4, 3), (2, 3, 1), 1, -1), "at least 0"),
        (((2, 4, 3), (2, 3, 1), 1, [1, 1]), "entries"),
        (((2, 4, 3), (2, 3, 1), 1, "valid", "NCL"), "data_format"),
    ],
)
def test_shapes_that_do_not_fit_are_value_errors(backend: str, arguments: tuple[Any, ...], message: str) -> None:
    x, kernel, *how = arguments
    with pytest.raises(ValueError, match=message):
        ops.conv(ops.ones(x), ops.ones(kernel), *how)


def test_other_kernels_that_do_not_fit_are_value_errors(backend: str) -> None:
    x = ops.ones((2, 4, 3))
    with pytest.raises(ValueError, match="windows per channel"):
        ops.depthwise_conv(x, ops.ones((2, 2, 1)))
    with pytest.raises(ValueError, match="one element"):
        ops.separable_conv(x, ops.ones((2, 3, 1)), ops.ones((2, 3, 1)))
    with pytest.raises(ValueError, match="last dimension"):
        ops.conv_transpose(x, ops.ones((2, 3, 1)))
    with pytest.raises(ValueError, match="nothing is left"):
        ops.conv_transpose(x, ops.ones((2, 1, 3)), padding=3)
    with pytest.raises(TypeError, match="strides"):
        ops.conv(x, ops.ones((2, 3, 1)), 1.5)  # pyright: ignore[reportArgumentType]


@st.composite
def geometries(draw: st.DrawFn) -> dict[str, Any]:
    dimensions = draw(st.integers(1, 2))
    several = st.lists(st.integers(1, 3), min_size=dimensions, max_size=dimensions)
    window, strides, dilations = draw(several), draw(several), draw(several)
    spans = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    pairs = [(draw(st.integers(0, span - 1)), draw(st.integers(0, span - 1))) for span in spans]
    sizes = [draw(st.integers(span, span + 4)) for span in spans]
    return {"sizes": sizes, "window": window, "strides": strides, "padding": pairs, "dilation_rate": dilations}


@pytest.mark.parametrize("backend_name", installed_backends())
@given(how=geometries(), seed=st.integers(0, 1000))
def test_transposed_convolution_is_the_adjoint_of_convolution(
    backend_name: str, how: dict[str, Any], seed: int
) -> None:
    """<conv(x, k), g> = <x, conv_transpose(g, k)>, with the same padding, and output_padding for what no window met."""
    ember_ml.set_backend(backend_name)
    sizes, window = how.pop("sizes"), how.pop("window")
    x, kernel = random((1, *sizes, 2), "float64", seed), random((*window, 2, 3), "float64", seed + 1)
    forward = ops.conv(ops.asarray(x), ops.asarray(kernel), **how)
    g = random(tuple(forward.shape), "float64", seed + 2)
    spans = [(k - 1) * d + 1 for k, d in zip(window, how["dilation_rate"], strict=True)]
    missed = [(n + sum(p) - s) % t for n, p, s, t in zip(sizes, how["padding"], spans, how["strides"], strict=True)]
    back = ops.conv_transpose(ops.asarray(g), ops.asarray(kernel), output_padding=missed, **how)
    assert tuple(back.shape) == x.shape
    left, right = (ops.to_numpy(forward) * g).sum(), (ops.to_numpy(back) * x).sum()
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("backend_name", installed_backends())
@given(size=st.integers(1, 9), window=st.integers(1, 4), stride=st.integers(1, 4), dilation=st.integers(1, 2))
def test_same_padding_gives_one_result_per_stride(
    backend_name: str, size: int, window: int, stride: int, dilation: int
) -> None:
    ember_ml.set_backend(backend_name)
    x, kernel = ops.ones((1, size, 1)), ops.ones((window, 1, 1))
    assert ops.conv(x, kernel, stride, "same", "channels_last", dilation).shape[1] == -(-size // stride)
    assert ops.conv_transpose(x, kernel, stride, "same", None, "channels_last", dilation).shape[1] == size * stride


@pytest.mark.parametrize("backend_name", installed_backends())
@given(shift=st.integers(0, 5), seed=st.integers(0, 1000))
def test_a_shifted_input_gives_a_shifted_result(backend_name: str, shift: int, seed: int) -> None:
    ember_ml.set_backend(backend_name)
    x, kernel = random((1, 12, 2), "float32", seed), random((3, 2, 2), "float32", seed + 1)
    whole = ops.to_numpy(ops.conv(ops.asarray(x), ops.asarray(kernel)))
    part = ops.to_numpy(ops.conv(ops.asarray(x[:, shift:]), ops.asarray(kernel)))
    assert close(part, whole[:, shift:], 4, 50.0) is None


def test_causal_results_do_not_depend_on_what_comes_later(backend: str) -> None:
    x, kernel = random((1, 8, 2), "float32"), ops.asarray(random((3, 2, 2), "float32", 1))
    how: dict[str, Any] = {"padding": "causal", "dilation_rate": 2}
    whole = ops.to_numpy(ops.conv(ops.asarray(x), kernel, **how))
    start = ops.to_numpy(ops.conv(ops.asarray(x[:, :5]), kernel, **how))
    assert whole.shape == (1, 8, 2)
    assert close(start, whole[:, :5], 4, 50.0) is None

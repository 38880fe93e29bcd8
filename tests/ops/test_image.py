"""Images: formats, rounding, aspect ratios, batches, places outside; what the contract's generic tests cannot see."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.dispatch.declare import OPS
from ember_ml.nn.tensor import EmberTensor
from tests.contract.test_against_reference import check_call
from tests.reference.images import OPS_OF_IMAGES, affine, distance, resized, similarity
from tests.reference.matrices import numpy, random


def _picture(*shape: int) -> Any:
    return random(shape or (2, 5, 4, 3), "float32")


CALLS: dict[str, Callable[..., Any]] = {
    "resize": lambda x, **f: ops.resize(x, (3, 6), **f),
    "nearest": lambda x, **f: ops.resize(x, (3, 6), "nearest", **f),
    "fitted": lambda x, **f: ops.resize(x, (3, 6), pad_to_aspect_ratio=True, fill_value=2.0, **f),
    "affine": lambda x, **f: ops.affine_transform(x, [0.9, 0.1, 0.2, -0.2, 1.1, 0.3, 0.01, 0.02], **f),
    "rotate": lambda x, **f: ops.rotate(x, 30.0, fill_mode="mirror", **f),
    "perspective": lambda x, **f: ops.perspective_transform(
        x, [[0.0, 0.0], [3.0, 0.0], [0.0, 4.0], [3.0, 4.0]], [[0.5, 0.0], [2.0, 0.5], [0.0, 3.0], [3.0, 4.0]], **f
    ),
    "crop": lambda x, **f: ops.crop_images(x, 1, 0, 1, 2, **f),
    "center": lambda x, **f: ops.center_crop(x, (2, 3), **f),
    "pad": lambda x, **f: ops.pad_images(x, 1, 0, 1, 2, fill_value=3.0, **f),
    "patches": lambda x, **f: ops.extract_patches(x, (2, 3), 1, padding="same", **f),
    "blur": lambda x, **f: ops.gaussian_blur(x, (3, 5), (0.7, 1.2), **f),
    "gray": lambda x, **f: ops.rgb_to_grayscale(x, **f),
    "hsv": lambda x, **f: ops.rgb_to_hsv(x, **f),
    "rgb": lambda x, **f: ops.hsv_to_rgb(x, **f),
    "yuv": lambda x, **f: ops.yuv_to_rgb(ops.rgb_to_yuv(x, **f), **f),
}


@pytest.mark.parametrize("name", CALLS)
def test_both_formats_and_single_images_agree(backend: str, name: str) -> None:
    x = _picture()
    want = ops.to_numpy(CALLS[name](ops.asarray(x)))
    first = ops.to_numpy(CALLS[name](ops.asarray(x.transpose(0, 3, 1, 2)), data_format="channels_first"))
    assert distance(first.transpose(0, 2, 3, 1), want) < 1e-5
    alone = ops.to_numpy(CALLS[name](ops.asarray(x[1])))
    assert distance(alone, want[1]) < 1e-5
    portable = CALLS[name](EmberTensor(x))
    assert type(portable) is EmberTensor
    assert distance(portable.numpy(), want) < 1e-6


@pytest.mark.long_with("jax")  # which compiles each example
@pytest.mark.parametrize("name", OPS_OF_IMAGES)
def test_a_few_examples_agree_with_their_references(backend: str, name: str) -> None:
    """The contract's test, which is long, in two dtypes."""

    @settings(max_examples=3)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        for dtype in ("float32", "uint8"):
            if dtype in {d.name for d in OPS[name].rule.domain}:
                check_call(backend, name, dtype, data)

    check()


def test_similarity_of_both_formats(backend: str) -> None:
    x, y = _picture(2, 12, 13, 3), abs(_picture(2, 12, 13, 3)) ** 0.5
    want = [similarity(a, b, 2.0, 11, 1.5, 0.01, 0.03) for a, b in zip(x, y, strict=True)]
    found = ops.to_numpy(ops.ssim(ops.asarray(x), ops.asarray(y), 2.0))
    assert found.shape == (2,)
    assert distance(found, want) < 1e-4
    first, second = (ops.asarray(images.transpose(0, 3, 1, 2)) for images in (x, y))
    assert distance(ops.to_numpy(ops.ssim(first, second, 2.0, data_format="channels_first")), want) < 1e-4
    with pytest.raises(ValueError, match="no neighbourhood of 11"):
        ops.ssim(ops.ones((4, 4, 1)), ops.ones((4, 4, 1)))
    with pytest.raises(ValueError, match="one shape"):
        ops.psnr(ops.ones((4, 4, 1)), ops.ones((4, 4, 2)), 1.0)


def test_integers_are_rounded_to_even_and_cut_off(backend: str) -> None:
    x = ops.reshape(ops.array([0, 1, 2, 255], dtype="uint8"), (1, 4, 1))
    halves = ops.resize(x, (1, 2))  # 0.5, 128.5
    assert ops.to_numpy(halves).ravel().tolist() == [0, 128]
    assert ops.dtype(halves) == ops.uint8
    # the cubic overshoots beside a step: what is below 0 or above 255 stays there
    step = ops.reshape(ops.array([0, 0, 255, 255], dtype="uint8"), (1, 4, 1))
    wide = ops.to_numpy(ops.resize(step, (1, 8), "bicubic")).ravel().tolist()
    assert wide[2:4] == [0, 52]
    assert wide[4:6] == [203, 255]
    half = ops.map_coordinates(ops.array([1, 2, 5], dtype="int32"), [[0.5, 1.5]], order=1)
    assert ops.to_numpy(half).tolist() == [2, 4]
    assert ops.dtype(half) == ops.int32
    assert ops.to_numpy(ops.rgb_to_grayscale(ops.array([[[255, 255, 255]]], dtype="uint8"))).item() == 255


def test_half_precision_is_computed_in_float32(backend: str) -> None:
    x = ops.cast(ops.asarray(_picture(4, 5, 1)), "float16")
    want = resized(ops.to_numpy(x), (3, 2), "bicubic", True)
    got = ops.resize(x, (3, 2), "bicubic", antialias=True)
    assert ops.dtype(got) == ops.float16
    assert distance(ops.to_numpy(got), want) <= 2.0**-11 * abs(want).max() + 1e-6


def test_aspect_ratios(backend: str) -> None:
    x = ops.reshape(ops.arange(8.0), (2, 4, 1))
    cut = ops.resize(x, 2, crop_to_aspect_ratio=True)
    assert ops.to_numpy(cut)[..., 0].tolist() == [[1.0, 2.0], [5.0, 6.0]]
    filled = ops.resize(x, 4, "nearest", pad_to_aspect_ratio=True, fill_value=-1.0)
    assert ops.to_numpy(filled)[..., 0].tolist() == [[-1.0] * 4, [0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [-1.0] * 4]
    odd = ops.resize(ops.ones((3, 4, 1)), 4, pad_to_aspect_ratio=True)  # one more row after than before
    assert ops.to_numpy(odd)[:, 0, 0].tolist() == [1.0, 1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="exclude each other"):
        ops.resize(x, 2, crop_to_aspect_ratio=True, pad_to_aspect_ratio=True)


def test_sizes_that_stay_change_nothing(backend: str) -> None:
    x = _picture(3, 4, 2)
    for method in ("nearest", "bilinear", "bicubic", "lanczos5"):
        assert ops.to_numpy(ops.resize(ops.asarray(x), (3, 4), method)).tolist() == x.tolist()


def test_each_image_has_its_own_transform(backend: str) -> None:
    x = _picture()
    transforms = [[1.1, 0.2, -0.5, 0.1, 0.8, 0.4, 0.0, 0.01], [0.7, -0.3, 1.0, 0.2, 1.2, -0.6, 0.02, 0.0]]
    got = ops.to_numpy(ops.affine_transform(ops.asarray(x), transforms, fill_mode="wrap"))
    for image, transform, found in zip(x, transforms, got, strict=True):
        assert distance(found, affine(image, numpy.array(transform), 1, "wrap", 0.0)) < 1e-4
    turned = ops.to_numpy(ops.rotate(ops.asarray(x), [10.0, -70.0]))
    assert distance(turned[1], ops.to_numpy(ops.rotate(ops.asarray(x[1]), -70.0))) < 1e-5
    scale, move = [[1.5, 1.0], [0.5, 2.0]], [[0.0, 1.0], [0.25, -1.0]]
    many = ops.to_numpy(ops.scale_and_translate(ops.asarray(x), (2, 3, 6, 3), scale, move, (1, 2), "cubic"))
    for number in range(2):
        one = ops.scale_and_translate(ops.asarray(x[number]), (3, 6, 3), scale[number], move[number], (0, 1), "cubic")
        assert distance(many[number], ops.to_numpy(one)) < 1e-5


def test_quarter_turns_are_exact(backend: str) -> None:
    x = _picture(5, 5, 2)
    for quarters in (-1, 1, 2, 3):
        got = ops.rotate(ops.asarray(x), 90.0 * quarters, "nearest")
        assert ops.to_numpy(got).tolist() == numpy.rot90(x, quarters).tolist()


def test_places_outside(backend: str) -> None:
    x = ops.array([1.0, 2.0, 4.0])
    far = [[-math.inf, -1e30, -0.25, 2.25, 1e30, math.inf]]
    assert ops.to_numpy(ops.map_coordinates(x, far, 1, fill_value=8.0)).tolist() == [8.0, 8.0, 2.75, 5.0, 8.0, 8.0]
    assert ops.to_numpy(ops.map_coordinates(x, far, 0, "nearest")).tolist() == [1.0, 1.0, 1.0, 4.0, 4.0, 4.0]
    assert math.isnan(ops.item(ops.map_coordinates(x, [[math.nan]], 1)))
    one = ops.array([3.0])
    for mode in ("nearest", "wrap", "mirror", "reflect"):
        assert ops.to_numpy(ops.map_coordinates(one, [[-2.0, 0.0, 5.0]], 0, mode)).tolist() == [3.0, 3.0, 3.0]


def test_volumes_have_patches_too(backend: str) -> None:
    x = ops.reshape(ops.arange(24), (2, 3, 4, 1))
    patches = ops.extract_patches(x, (2, 3, 2))
    assert ops.shape(patches) == (1, 1, 2, 12)
    assert ops.to_numpy(patches)[0, 0, 1].tolist() == [2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23]


@pytest.mark.parametrize("name", CALLS)
def test_batches_of_no_image(backend: str, name: str) -> None:
    some, none = (CALLS[name](ops.asarray(_picture()[:count])) for count in (2, 0))
    assert ops.shape(none) == (0, *ops.shape(some)[1:])
    assert ops.dtype(none) == ops.dtype(some)


def test_numbers_of_numpy_blur(backend: str) -> None:
    x = _picture()
    want = ops.to_numpy(ops.gaussian_blur(x, 3, 0.5))
    for sigma in (numpy.asarray(0.5), numpy.asarray(0.5)[()], numpy.asarray([0.5, 0.5]), ops.asarray(0.5)):
        assert distance(ops.to_numpy(ops.gaussian_blur(x, 3, sigma)), want) < 1e-6


def test_scaled_down_signals_keep_their_tone(backend: str) -> None:
    rate, hertz = 400, 5.0
    x = ops.sin(ops.multiply(ops.arange(float(rate)), 2 * math.pi * hertz / rate))
    y = ops.to_numpy(ops.resample_poly(x, 1, 4))
    want = [math.sin(2 * math.pi * hertz * i / 100) for i in range(100)]
    assert max(abs(a - b) for a, b in list(zip(y.tolist(), want, strict=True))[15:85]) < 2e-3
    assert ops.shape(ops.resample_poly(ops.zeros((3, 7)), 4, 2, axis=0)) == (6, 7)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: ops.resize(x[0], 2), "images are"),
        (lambda x: ops.resize(x, (2, 0)), "size is a pair"),
        (lambda x: ops.resize(x, "2"), "integer or a pair"),
        (lambda x: ops.resize(x, 2, "cubic"), "interpolation must be one of"),
        (lambda x: ops.resize(x, 2, data_format="last"), "data_format must be one of"),
        (lambda x: ops.resize(ops.ones((0, 2, 1)), 2), "no elements"),
        (lambda x: ops.resize(ops.equal(x, 1.0), 2), "does not compute bool"),
        (lambda x: ops.affine_transform(ops.equal(x, 1.0), [0.0] * 8), "real numbers"),
        (lambda x: ops.affine_transform(x, [1.0, 2.0]), "8 numbers"),
        (lambda x: ops.affine_transform(x, [0.0] * 8, "cubic"), "interpolation must be one of"),
        (lambda x: ops.map_coordinates(x, [[0.5]], 1), "each of the 3 dimensions"),
        (lambda x: ops.map_coordinates(x, [[0.5]] * 3, 2), "order must be"),
        (lambda x: ops.map_coordinates(x, [[0.5]] * 3, 1, "edge"), "fill_mode must be one of"),
        (lambda x: ops.perspective_transform(x, [[0.0, 0.0]], [[0.0, 0.0]]), "four points"),
        (lambda x: ops.rotate(x, [[1.0]]), "angle is a number"),
        (lambda x: ops.crop_images(x, 1, 1, 1), "two of left_cropping"),
        (lambda x: ops.crop_images(x, 3, 1, 1, 1), "negative"),
        (lambda x: ops.pad_images(x, 1, 1, 1), "two of left_padding"),
        (lambda x: ops.pad_images(x, 1, 1, target_height=2, target_width=9), "negative"),
        (lambda x: ops.center_crop(x, 9), "larger than images"),
        (lambda x: ops.extract_patches(x, 9), "does not fit"),
        (lambda x: ops.extract_patches(x, (1, 1, 1, 1)), "spatial dimensions"),
        (lambda x: ops.gaussian_blur(x, 3, 0.0), "sigma must be positive"),
        (lambda x: ops.rgb_to_hsv(x), "3 channels"),
        (lambda x: ops.rgb_to_hsv(ops.ones((2, 2, 3), dtype="uint8")), "does not compute uint8"),
        (lambda x: ops.scale_and_translate(x, (2, 2, 1), [1.0], [1.0, 2.0], (0,), "linear"), "a number for each"),
        (lambda x: ops.scale_and_translate(x, (2, 2, 2), [1.0], [1.0], (0,), "linear"), "differs from"),
        (lambda x: ops.scale_and_translate(x, (2, 4, 1), [1.0], [1.0], (0,), "nearest"), "method must be one of"),
        (lambda x: ops.psnr(x, x, 0.0), "max_val must be positive"),
        (lambda x: ops.resample_poly(x, 0, 1), "up must be 1 or more"),
    ],
)
def test_wrong_arguments_are_refused(backend: str, call: Callable[[Any], Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        call(ops.ones((3, 4, 1)))


@pytest.mark.long_with("torch", "mlx")
def test_compiled_functions_agree(backend: str) -> None:
    def augment(x: Any) -> Any:
        x = ops.resize(x, (6, 5), "bicubic", antialias=True)
        x = ops.gaussian_blur(ops.rotate(x, 20.0, fill_mode="reflect"), 3)
        return ops.extract_patches(ops.hsv_to_rgb(ops.rgb_to_hsv(x)), 2)

    x = ops.asarray(abs(_picture(9, 8, 3)))
    assert distance(ops.to_numpy(ember_ml.compile(augment)(x)), ops.to_numpy(augment(x))) < 1e-4

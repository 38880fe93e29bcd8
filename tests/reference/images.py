"""Images: resizing, warping, cutting, colours and comparisons, from their definitions, SciPy and Pillow."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.signal
import scipy.signal.windows
from hypothesis import strategies as st

from tests.reference import EPS, arrays
from tests.reference.spec import SPECS, Spec, spec

__all__ = ["OPS_OF_IMAGES", "affine", "blurred", "distance", "looked_up", "resized", "similarity"]

MODES = {
    "constant": "grid-constant",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
}


def distance(x: Any, y: Any) -> float:
    """The largest difference of two arrays of one shape; infinite where the shapes differ."""
    x, y = np.asarray(x).astype(np.float64), np.asarray(y).astype(np.float64)
    return float(np.abs(x - y).max(initial=0.0)) if x.shape == y.shape else math.inf


def _kernel(method: str, t: float) -> float:
    t = abs(t)
    if method in ("bilinear", "linear"):
        return max(0.0, 1.0 - t)
    if method in ("bicubic", "cubic"):  # Keys: the cubic of each interval, with a slope of -1/2 at 1
        a = -0.5
        if t <= 1:
            return (a + 2) * t**3 - (a + 3) * t**2 + 1
        return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0
    radius = int(method[-1])
    return float(np.sinc(t) * np.sinc(t / radius)) if t < radius else 0.0


def _row_weights(inputs: int, outputs: int, scale: float, move: float, method: str, antialias: bool) -> np.ndarray:
    """The weights of the elements of a row, place by place."""
    found = np.zeros((outputs, inputs))
    for place in range(outputs):
        centre = (place + 0.5 - move) / scale
        if not 0 <= centre <= inputs:
            continue
        if method == "nearest":
            found[place, min(int(centre), inputs - 1)] = 1.0
            continue
        stretch = max(1.0, 1 / scale) if antialias else 1.0
        row = [_kernel(method, (centre - (element + 0.5)) / stretch) for element in range(inputs)]
        found[place] = np.array(row) / math.fsum(row)
    return found


def resized(images: np.ndarray, size: tuple[int, int], interpolation: str, antialias: bool) -> np.ndarray:
    """Images of (..., height, width, channels) in another size, in float64."""
    rows, columns = (
        _row_weights(n, m, m / n, 0.0, interpolation, antialias) for n, m in zip(images.shape[-3:-1], size, strict=True)
    )
    return np.einsum("ih,jw,...hwc->...ijc", rows, columns, images.astype(np.float64))


def looked_up(x: np.ndarray, coordinates: Any, order: int, mode: str, fill: float) -> np.ndarray:
    """SciPy's elements at coordinates, in float64."""
    return scipy.ndimage.map_coordinates(
        x.astype(np.float64), np.asarray(coordinates, np.float64), order=order, mode=MODES[mode], cval=fill
    )


def affine(images: np.ndarray, transform: np.ndarray, order: int, mode: str, fill: float) -> np.ndarray:
    """Images of (height, width, channels) as a projective transform shows them."""
    a0, a1, a2, b0, b1, b2, c0, c1 = np.asarray(transform, np.float64)
    y, x = np.mgrid[: images.shape[0], : images.shape[1]]
    k = c0 * x + c1 * y + 1
    places = (b0 * x + b1 * y + b2) / k, (a0 * x + a1 * y + a2) / k
    channels = [looked_up(images[..., i], places, order, mode, fill) for i in range(images.shape[2])]
    return np.stack(channels, -1)


def blurred(images: np.ndarray, size: tuple[int, int], sigma: tuple[float, float]) -> np.ndarray:
    """Images of (height, width, channels) convolved with a Gaussian, (width, height) first."""
    x = images.astype(np.float64)
    for axis, length, spread in zip((1, 0), size, sigma, strict=True):
        weights = scipy.signal.windows.gaussian(length, spread)
        # an even number of weights reaches one element further after than before
        origin = -1 if length % 2 == 0 else 0
        x = scipy.ndimage.correlate1d(x, weights / weights.sum(), axis, mode="constant", origin=origin)
    return x


def similarity(x: np.ndarray, y: np.ndarray, most: float, length: int, spread: float, k1: float, k2: float) -> float:
    """The structural similarity of images of (height, width, channels)."""
    weights = scipy.signal.windows.gaussian(length, spread)
    window = np.outer(weights, weights) / weights.sum() ** 2
    x, y = x.astype(np.float64), y.astype(np.float64)
    found = []
    for place in np.ndindex(x.shape[0] - length + 1, x.shape[1] - length + 1):
        for channel in range(x.shape[2]):
            part = (slice(place[0], place[0] + length), slice(place[1], place[1] + length), channel)
            p, q = x[part], y[part]
            m, n = (window * p).sum(), (window * q).sum()
            v, w, c = (window * (p - m) ** 2).sum(), (window * (q - n) ** 2).sum(), (window * (p - m) * (q - n)).sum()
            first, second = (k1 * most) ** 2, (k2 * most) ** 2
            found.append((2 * m * n + first) * (2 * c + second) / ((m * m + n * n + first) * (v + w + second)))
    return float(np.mean(found))


# ---------------------------------------------------------------------------------------------------- the contract


def _near(name: str, draw: Callable[..., dict[str, Any]], want: Callable[..., Any], slack: float = 64.0) -> None:
    """An op whose result is near a number, to ``slack`` units of float32 or of its own precision.

    Integers are rounded to the nearest, so they are half of one away at most.
    """

    def fault(results: list[np.ndarray], **arguments: Any) -> str | None:
        got, exact = results[0], np.asarray(want(**arguments), np.float64)
        if got.shape != exact.shape:
            return f"shape {got.shape}, not {exact.shape}"
        if got.dtype != next(iter(arguments.values())).dtype:
            return f"dtype {got.dtype}"
        own = EPS.get(str(got.dtype), 0.0)
        size = max(100.0, float(np.abs(exact).max(initial=0.0)))
        computed = own if got.dtype == np.float64 else EPS["float32"]
        allowed = slack * size * computed + own * np.abs(exact)
        if got.dtype.kind in "iu":
            info = np.iinfo(got.dtype)
            exact, allowed = np.clip(exact, info.min, info.max), allowed + 0.5
        far = ~(np.abs(got.astype(np.float64) - exact) <= allowed)
        return f"{got[far].tolist()}, not {exact[far].tolist()}" if far.any() else None

    SPECS[name] = Spec(draw, None, fault=fault, widens=False)


def _float_dtype(dtype: str) -> str:
    return dtype if "float" in dtype else "float32"


def _images(draw: st.DrawFn, dtype: str, channels: int | None = None, low: float = 0.0, high: float = 100.0) -> Any:
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 3)), channels or draw(st.integers(1, 2)))
    batch = draw(st.sampled_from(((), (), (2,))))
    return draw(arrays(dtype, (*batch, *shape), finite=True, low=low, high=high))


def _sizes(draw: st.DrawFn) -> tuple[int, int]:
    return draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))


_METHODS = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")


def _resizing(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    options = {"interpolation": draw(st.sampled_from(_METHODS)), "antialias": draw(st.booleans())}
    return {"images": _images(draw, dtype), "size": _sizes(draw), **options}


_near("resize", _resizing, resized)


def _scaling(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    images, size = _images(draw, dtype), _sizes(draw)
    first = images.ndim - 3
    number = arrays(_float_dtype(dtype), (2,), finite=True, low=0.5, high=1.5)
    return {
        "images": images,
        "output_shape": (*images.shape[:first], *size, images.shape[-1]),
        "scale": draw(number),
        "translation": draw(number),
        "spatial_dims": (first, first + 1),
        "method": draw(st.sampled_from(("linear", "cubic", "lanczos3"))),
        "antialias": draw(st.booleans()),
    }


def _scaled(images: Any, output_shape: Any, scale: Any, translation: Any, spatial_dims: Any, **options: Any) -> Any:
    found = images.astype(np.float64)
    for number, axis in enumerate(spatial_dims):
        factor, move = float(scale[number]), float(translation[number])
        weights = _row_weights(images.shape[axis], output_shape[axis], factor, move, *options.values())
        found = np.moveaxis(np.tensordot(weights, found, (1, axis)), 0, axis)
    return found


_near("scale_and_translate", _scaling, _scaled, 4096)  # the weights are computed in the images' precision


def _looking(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    inputs = draw(arrays(dtype, st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), True, 0, 100))
    order, eighths = draw(st.sampled_from((0, 1))), draw(arrays("int64", (inputs.ndim, 2, 2), low=-60, high=60))
    places = eighths / 8 if order else eighths / 8 + 1 / 16  # exact in every dtype; none halfway for the nearest
    return {
        "inputs": inputs,
        "coordinates": places.astype(_float_dtype(dtype)),
        "order": order,
        "fill_mode": draw(st.sampled_from(tuple(MODES))),
        "fill_value": draw(st.sampled_from((0.0, 7.0))),
    }


_near(
    "map_coordinates",
    _looking,
    lambda inputs, coordinates, order, fill_mode, fill_value: looked_up(
        inputs, coordinates, order, fill_mode, fill_value
    ),
)


def _each(images: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return np.stack([function(image) for image in images]) if images.ndim == 4 else function(images)


def _transforming(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    numbers = draw(arrays("int64", (8,), low=-16, high=16)) / np.array([8, 8, 8, 8, 8, 8, 256, 256])
    options = {"fill_mode": draw(st.sampled_from(tuple(MODES))), "fill_value": 5.0}
    transform = numbers.astype(_float_dtype(dtype))
    return {"images": _images(draw, dtype), "transform": transform, "interpolation": "bilinear", **options}


def _transformed(images: Any, transform: Any, interpolation: str, fill_mode: str, fill_value: float) -> Any:
    return _each(images, lambda image: affine(image, transform, 1, fill_mode, fill_value))


_near("affine_transform", _transforming, _transformed)


def _turning(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    angle = draw(arrays(_float_dtype(dtype), (), finite=True, low=-180, high=180))
    return {"images": _images(draw, dtype), "angle": angle, "fill_mode": draw(st.sampled_from(("nearest", "reflect")))}


def _turned(images: Any, angle: Any, fill_mode: str) -> Any:
    y, x = (images.shape[-3] - 1) / 2, (images.shape[-2] - 1) / 2
    turn = math.radians(float(angle))
    back = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    right, down = np.array([x, y]) - back @ [x, y]
    transform = [back[0, 0], back[0, 1], right, back[1, 0], back[1, 1], down, 0, 0]
    return _each(images, lambda image: affine(image, np.array(transform), 1, fill_mode, 0.0))


_near("rotate", _turning, _turned, 256)


def _viewing(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    images = _images(draw, dtype)
    corners = np.array([[0, 0], [3, 0], [0, 3], [3, 3]])
    points = [
        (corners + draw(arrays("int64", (4, 2), low=-3, high=3)) / 8).astype(_float_dtype(dtype)) for _ in range(2)
    ]
    return {"images": images, "start_points": points[0], "end_points": points[1], "fill_value": 3.0}


def _viewed(images: Any, start_points: Any, end_points: Any, fill_value: float) -> Any:
    rows, wanted = [], []
    start, end = start_points.astype(np.float64), end_points.astype(np.float64)
    for (u, v), (x, y) in zip(start, end, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -x * u, -y * u], [0, 0, 0, x, y, 1, -x * v, -y * v]]
        wanted += [u, v]
    transform = np.linalg.solve(np.array(rows), np.array(wanted))
    return _each(images, lambda image: affine(image, transform, 1, "constant", fill_value))


_near("perspective_transform", _viewing, _viewed, 4096)


def _cropping(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    images = draw(arrays(dtype, (3, 4, 2)))
    top, left = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    return {
        "images": images,
        "top_cropping": top,
        "left_cropping": left,
        "bottom_cropping": draw(st.integers(0, 2 - top)),
        "target_width": draw(st.integers(1, 4 - left)),
    }


spec(
    "crop_images",
    _cropping,
    lambda images, top_cropping, left_cropping, bottom_cropping, target_width: images[
        top_cropping : 3 - bottom_cropping, left_cropping : left_cropping + target_width
    ],
    0,
)
spec(
    "center_crop",
    lambda draw, dtype: {"images": draw(arrays(dtype, (2, 4, 5, 1))), "size": (draw(st.integers(1, 4)), 2)},
    lambda images, size: images[:, (4 - size[0]) // 2 : (4 - size[0]) // 2 + size[0], 1:3],
    0,
)
spec(
    "pad_images",
    lambda draw, dtype: {
        "images": draw(arrays(dtype, (2, 3, 2))),
        "top_padding": draw(st.integers(0, 2)),
        "right_padding": draw(st.integers(0, 2)),
        "target_height": 4,
        "target_width": 5,
    },
    lambda images, top_padding, right_padding, **_: np.pad(
        images, ((top_padding, 2 - top_padding), (2 - right_padding, right_padding), (0, 0))
    ),
    0,
)


def _cutting(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {
        "images": draw(arrays(dtype, (4, 5, 2))),
        "size": draw(st.tuples(st.integers(1, 2), st.integers(1, 2))),
        "strides": draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        "dilation_rate": draw(st.integers(1, 2)),
        "padding": draw(st.sampled_from(("valid", "same"))),
    }


def _cut(images: Any, size: Any, strides: Any, dilation_rate: int, padding: str) -> Any:
    reach = [(n - 1) * dilation_rate + 1 for n in size]
    if padding == "same":
        missing = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(images.shape, strides, reach, strict=False)]
        images = np.pad(images, [(m // 2, m - m // 2) for m in missing] + [(0, 0)])
    rows = [
        [
            images[y : y + reach[0] : dilation_rate, x : x + reach[1] : dilation_rate].ravel()
            for x in range(0, images.shape[1] - reach[1] + 1, strides[1])
        ]
        for y in range(0, images.shape[0] - reach[0] + 1, strides[0])
    ]
    return np.array(rows)


spec("extract_patches", _cutting, _cut, 0)


def _blurring(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    sigma = draw(st.tuples(st.sampled_from((0.5, 1.0, 3.0)), st.sampled_from((0.75, 2.0))))
    return {"images": _images(draw, dtype), "kernel_size": _sizes(draw), "sigma": sigma}


_near(
    "gaussian_blur",
    _blurring,
    lambda images, kernel_size, sigma: _each(images, lambda image: blurred(image, kernel_size, sigma)),
)


def _two(draw: st.DrawFn, dtype: str, *shape: int) -> dict[str, Any]:
    return {name: draw(arrays(dtype, shape, finite=True, low=0, high=100)) for name in ("x", "y")}


def _noise(x: Any, y: Any, max_val: float) -> Any:
    error = np.square(x.astype(np.longdouble) - y.astype(np.longdouble)).mean()
    with np.errstate(divide="ignore"):
        return 10 * np.log10(np.longdouble(max_val) ** 2 / error)


spec("psnr", lambda draw, dtype: {**_two(draw, dtype, 3, 4), "max_val": 255.0}, _noise, 16, lambda **_: 50.0)
spec(
    "ssim",
    lambda draw, dtype: {**_two(draw, dtype, 4, 3, 2), "max_val": 100.0, "filter_size": 3},
    lambda x, y, max_val, filter_size: similarity(x, y, max_val, filter_size, 1.5, 0.01, 0.03),
    # differences of squares of numbers up to 100, divided by a constant of 9
    65536,
    lambda **_: 1.0,
)


def _colours(function: Callable[[float, float, float], tuple[float, float, float]]) -> Callable[[Any], np.ndarray]:
    def convert(images: Any) -> np.ndarray:
        flat = [function(*map(float, pixel)) for pixel in images.reshape(-1, 3)]
        return np.array(flat).reshape(images.shape)

    return convert


def _pixels(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    return {"images": _images(draw, dtype, 3, 0.0, 1.0 if "float" in dtype else 255.0)}


def _yuv(r: float, g: float, b: float) -> tuple[float, float, float]:
    y = 0.299 * r + 0.587 * g + 0.114 * b
    return y, 0.436 / 0.886 * (b - y), 0.615 / 0.701 * (r - y)


def _rgb(y: float, u: float, v: float) -> tuple[float, float, float]:
    matrix = np.array([_yuv(1, 0, 0), _yuv(0, 1, 0), _yuv(0, 0, 1)]).T
    r, g, b = np.linalg.solve(matrix, [y, u, v])
    return float(r), float(g), float(b)


_near("rgb_to_grayscale", _pixels, lambda images: images.astype(np.float64) @ [[0.2989], [0.587], [0.114]])
_near("rgb_to_hsv", _pixels, _colours(colorsys.rgb_to_hsv), 1.0)
_near("hsv_to_rgb", _pixels, _colours(colorsys.hsv_to_rgb), 1.0)
_near("rgb_to_yuv", _pixels, _colours(_yuv), 1.0)
_near("yuv_to_rgb", _pixels, _colours(_rgb), 1.0)


def _poly(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    x = draw(arrays(dtype, (draw(st.integers(1, 2)), draw(st.integers(1, 9))), finite=True, low=-100, high=100))
    return {"x": x, "up": draw(st.integers(1, 4)), "down": draw(st.integers(1, 4))}


spec(
    "resample_poly",
    _poly,
    lambda x, up, down: scipy.signal.resample_poly(x.astype(np.float64), up, down, axis=-1),
    64,
    lambda **_: 100.0,
)

OPS_OF_IMAGES = (
    *("affine_transform", "center_crop", "crop_images", "extract_patches", "gaussian_blur", "hsv_to_rgb"),
    *("map_coordinates", "pad_images", "perspective_transform", "psnr", "resample_poly", "resize", "rgb_to_grayscale"),
    *("rgb_to_hsv", "rgb_to_yuv", "rotate", "scale_and_translate", "ssim", "yuv_to_rgb"),
)
"""The ops whose contract takes minutes in all dtypes: by default tests/ops/test_image.py tries a few examples."""

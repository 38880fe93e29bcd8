"""Draw the digits that ship with the project: ``python utils/make_digits.py``.

Each digit is a few strokes on a unit square, most in two styles. A sample bends, slants, turns and moves one of them by
chance, and draws it with a pen of its own width. All chance comes from the library's random numbers, so that every
backend draws the same, but for a pixel in thousands that rounding moves by one shade.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from ember_ml import datasets, ops
from ember_ml.nn.tensor import EmberTensor

Point = tuple[float, float]
SIDE, SHADES, SEGMENTS = 16, 16, 24
SIZES = {"training": 1500, "test": 500}


def arc(x: float, y: float, width: float, height: float, start: float, stop: float, parts: int = 8) -> list[Point]:
    """Points on an ellipse around (x, y); angles in turns from the right, clockwise."""
    angles = [2 * math.pi * (start + (stop - start) * part / parts) for part in range(parts + 1)]
    return [(x + width * math.cos(angle), y + height * math.sin(angle)) for angle in angles]


# x goes to the right, y down; a style is a list of strokes, a stroke a list of points
_SEVEN = [(0.2, 0.08), (0.8, 0.08), (0.42, 0.95)]
STYLES: list[list[list[list[Point]]]] = [
    [[arc(0.5, 0.5, 0.3, 0.45, -0.25, 0.75, 16)], [arc(0.5, 0.5, 0.24, 0.43, -0.2, 0.85, 16)]],
    [[[(0.32, 0.25), (0.52, 0.06), (0.52, 0.95)]], [[(0.5, 0.05), (0.5, 0.95)], [(0.3, 0.95), (0.7, 0.95)]]],
    [
        [[*arc(0.48, 0.28, 0.27, 0.22, -0.5, 0.12), (0.2, 0.93), (0.8, 0.93)]],
        [[*arc(0.48, 0.28, 0.25, 0.22, -0.45, 0.2), (0.25, 0.82), (0.2, 0.93), (0.5, 0.85), (0.8, 0.92)]],
    ],
    [
        [[*arc(0.46, 0.27, 0.25, 0.21, -0.45, 0.25), *arc(0.46, 0.71, 0.29, 0.23, -0.25, 0.43)]],
        [[(0.22, 0.07), (0.74, 0.07), (0.46, 0.42), *arc(0.46, 0.67, 0.29, 0.26, -0.22, 0.43)]],
    ],
    [
        [[(0.62, 0.95), (0.62, 0.06), (0.18, 0.65), (0.85, 0.65)]],
        [[(0.28, 0.06), (0.22, 0.5), (0.78, 0.5)], [(0.72, 0.1), (0.66, 0.95)]],
    ],
    [
        [[(0.76, 0.07), (0.3, 0.07), (0.26, 0.45), *arc(0.47, 0.66, 0.29, 0.27, -0.36, 0.42)]],
        [[(0.3, 0.1), (0.27, 0.45), *arc(0.47, 0.66, 0.27, 0.27, -0.36, 0.4)], [(0.3, 0.1), (0.78, 0.06)]],
    ],
    [
        [[(0.66, 0.06), (0.4, 0.28), (0.25, 0.55), *arc(0.5, 0.7, 0.25, 0.23, -0.5, 0.5, 12)]],
        [[(0.55, 0.05), (0.34, 0.35), (0.27, 0.7), *arc(0.48, 0.75, 0.21, 0.19, -0.5, 0.5, 12)]],
    ],
    [[_SEVEN], [_SEVEN, [(0.34, 0.5), (0.74, 0.5)]]],
    [
        [arc(0.5, 0.28, 0.23, 0.21, 0.25, 1.25, 11), arc(0.5, 0.72, 0.28, 0.23, -0.25, 0.75, 11)],
        [arc(0.54, 0.28, 0.2, 0.2, 0.3, 1.3, 11), arc(0.46, 0.71, 0.24, 0.23, -0.2, 0.8, 11)],
    ],
    [
        [[*arc(0.5, 0.3, 0.25, 0.23, 0.0, 1.0, 12), (0.74, 0.5), (0.6, 0.95)]],
        [[*arc(0.48, 0.3, 0.25, 0.23, 0.0, 1.0, 12), (0.72, 0.75), *arc(0.48, 0.75, 0.24, 0.2, 0.05, 0.4, 5)]],
    ],
]


def segments(strokes: list[list[Point]]) -> list[tuple[Point, Point]]:
    """Return the lines between the points of strokes; the last one again until there are ``SEGMENTS``."""
    lines = [line for stroke in strokes for line in pairwise(stroke)]
    return lines + [lines[-1]] * (SEGMENTS - len(lines))


def distorted(points: Any, seed: Any) -> Any:
    """Points (samples, segments, ends, 2) around 0, bent by slow waves, then turned, slanted, scaled and moved."""
    count = points.shape[0]

    def chance(scale: float, *shape: int) -> Any:
        return EmberTensor(ops.random_normal((count, 1, 1, *shape), stddev=scale, seed=seed))

    for _ in range(2):
        phases = EmberTensor(ops.random_uniform((count, 1, 1, 2), 0.0, 2 * math.pi, seed=seed))
        waves = (points[..., 0:1] * chance(3.0, 2)) + (points[..., 1:2] * chance(3.0, 2)) + phases
        points = points + ops.sin(waves) * chance(0.045, 2)
    angle, slant, size = chance(0.16), chance(0.2), 1.0 + chance(0.1)
    x, y = points[..., 0], points[..., 1]
    x, y = (x - y * slant) * (size + chance(0.1)), y * size
    cosine, sine = ops.cos(angle), ops.sin(angle)
    turned = ops.stack([x * cosine - y * sine, x * sine + y * cosine], -1)
    return turned + chance(0.06, 2)


def draw(count: int, seed: int) -> tuple[Any, Any]:
    """Return the shades of ``count`` images (samples, 16, 16) and their labels, the digits in turn."""
    stream = ops.Generator(seed)
    table = EmberTensor([segments(style) for styles in STYLES for style in styles], dtype="float32") - 0.5
    labels = ops.remainder(ops.arange(count), 10)
    style = ops.cast(ops.greater(ops.random_uniform((count,), seed=stream), 0.6), "int64")
    lines = distorted(ops.take(table, ops.add(ops.multiply(labels, 2), style), 0), stream)
    width = EmberTensor(ops.random_uniform((count, 1), 0.035, 0.085, seed=stream))
    darkness = EmberTensor(ops.random_uniform((count, 1), 0.65, 1.0, seed=stream))

    centers = (ops.arange(SIDE, dtype="float32") + 0.5) / SIDE - 0.5
    pixels = EmberTensor(ops.stack(ops.meshgrid(centers, centers), -1)).reshape((1, SIDE * SIDE, 1, 2)) * 1.3
    start, along = lines[:, None, :, 0], lines[:, None, :, 1] - lines[:, None, :, 0]
    way = ops.sum((pixels - start) * along, -1) / (ops.sum(ops.square(along), -1) + 1e-9)
    nearest = start + along * ops.clip(way, 0.0, 1.0)[..., None]
    distance = ops.sqrt(ops.min(ops.sum(ops.square(pixels - nearest), -1), -1))
    ink = ops.clip((width - distance) / 0.06 + 0.5, 0.0, 1.0) * darkness
    noise = EmberTensor(ops.random_normal((count, SIDE * SIDE), stddev=0.06, seed=stream))
    shades = ops.round(ops.clip(ink + noise * (ink + 0.3), 0.0, 1.0) * (SHADES - 1))
    return ops.reshape(ops.cast(shades, "uint8"), (count, SIDE, SIDE)), labels


def main() -> None:
    """Draw both parts and write the file."""
    tensors = {}
    for seed, (part, count) in enumerate(SIZES.items(), 1):
        shades, labels = draw(count, seed)
        pairs = ops.bitwise_or(ops.bitwise_left_shift(shades[..., 0::2], 4), shades[..., 1::2])
        tensors |= {f"{part}_images": pairs, f"{part}_labels": ops.cast(labels, "uint8")}
    ops.save(datasets.DIGITS, tensors)


if __name__ == "__main__":
    main()

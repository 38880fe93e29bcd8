"""Rotary positions: the angles by which queries and keys are turned, and the scalings that make contexts longer.

Pair i of a head of n elements turns by ``position * base ** (-2 * i / n)`` (Su et al., 2021). A model that is used for
longer texts than it was first trained on changes these frequencies; the kinds of scaling are named as in the files that
models come in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.typing import DTypeLike, IndexLike, Tensor

__all__ = ["RotaryPositions", "Rotation", "rotate"]


class Rotation(NamedTuple):
    """Factors of the elements of each position, (batch or 1, length, 1, 2 * pairs): ``x * cos + partners * sin``."""

    cos: Tensor
    """Those of an element itself: the cosines of the pairs, twice."""
    sin: Tensor
    """Those of its partner in the pair: minus the sines, then the sines."""


def rotate(x: Tensor, rotation: Rotation) -> Tensor:
    """Turn the vectors of ``x``, (batch, length, heads, dim): pair i is elements i and i + pairs.

    Elements beyond the pairs stay as they are.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.layers.sequence_mixing.rotary import RotaryPositions, rotate
    >>> x = ops.reshape(ops.array([1.0, 0.0, 5.0]), (1, 1, 1, 3))
    >>> turned = rotate(x, RotaryPositions(2)(ops.array([[1]])))
    >>> [f"{v:.3f}" for v in ops.to_numpy(turned).ravel().tolist()]
    ['0.540', '0.841', '5.000']
    """
    cos, sin = rotation
    turned, rest = cos.shape[-1], None
    if x.shape[-1] > turned:
        x, rest = ops.split(x, (turned,), axis=-1)
    x = ops.add(ops.multiply(x, cos), ops.multiply(ops.roll(x, turned // 2, -1), sin))
    return x if rest is None else ops.concatenate([x, rest], axis=-1)


class RotaryPositions:
    """Angles of positions, for heads of which the first ``width`` elements are turned.

    Args:
        width: The number of elements that are turned, two for each pair.
        base: The base of the wavelengths.
        scaling: What changes the frequencies: ``{"rope_type": "llama3", "factor": 8.0, ...}``; None: nothing does.
            The types are "default", "linear", "dynamic", "yarn", "longrope" and "llama3", with the keys that
            ``config.json`` has for them.
        longest: The number of positions that the model was trained for.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.layers.sequence_mixing.rotary import RotaryPositions
    >>> cos, sin = RotaryPositions(8, scaling={"rope_type": "linear", "factor": 2.0})(ops.array([[0, 1, 2]]))
    >>> ops.shape(cos), f"{ops.item(cos[0, 2, 0, 0]):.4f}"
    ((1, 3, 1, 8), '0.5403')
    """

    def __init__(
        self,
        width: int,
        base: float = 10000.0,
        scaling: Mapping[str, Any] | None = None,
        longest: int = 2048,
    ) -> None:
        if width < 2 or width % 2:
            raise ValueError(f"rotary positions turn pairs of elements: {width} is not an even number from 2 up")
        if not 0 < base < math.inf:
            raise ValueError(f"the base of rotary positions is a number above 0, not {base!r}")
        self._width, self._base, self._longest = width, float(base), longest
        self._scaling = dict(scaling or {})
        kind = self._scaling.get("rope_type", self._scaling.get("type", "default"))
        if kind not in _SCALINGS:
            raise ValueError(f"there is no scaling of rotary positions {kind!r}; there are {', '.join(_SCALINGS)}")
        self._scale: _Scaling = _SCALINGS[kind]
        self._known: dict[Any, tuple[list[float], float]] = {}
        self.frequencies(1)  # so that a wrong scaling is told here

    def frequencies(self, length: int) -> tuple[list[float], float]:
        """Return the frequency of each pair in a text of ``length`` positions, and the factor of cosines and sines."""
        # only two kinds depend on the length, and those only beyond the length of the training
        length = max(length, 1) if self._scale in (_scale_dynamically, _scale_long) else 1
        if length not in self._known:
            self._known[length] = self._scale(self._width, self._base, self._longest, length, self._scaling)
        return self._known[length]

    def __call__(self, positions: IndexLike, length: int = 1, dtype: DTypeLike = "float32") -> Rotation:
        """Return the rotation of integer positions (batch or 1, count) in a text of ``length`` positions."""
        rates, factor = self.frequencies(length)
        rows, count = ops.shape(positions)
        device = ops.get_device(positions)
        # turning (1, 0) by an angle gives its cosine and sine, with an angle that is accurate at any position
        ones = ops.full((rows, count, self._width // 2), factor, dtype="float32", device=device)
        turned = ops.rotary_embedding(ops.concatenate([ones, ops.zeros_like(ones)], -1), positions, frequencies=rates)
        cos, sin = ops.split(ops.cast(ops.expand_dims(turned, 2), dtype), 2, axis=-1)
        return Rotation(ops.concatenate([cos, cos], -1), ops.concatenate([ops.negative(sin), sin], -1))


_Scaling = Callable[[int, float, int, int, Mapping[str, Any]], tuple[list[float], float]]
"""From the width, the base, the length of the training, that of the text and the settings."""


def _rates(width: int, base: float) -> list[float]:
    return [base ** (-2 * i / width) for i in range(width // 2)]


def _read(settings: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """Return a number of the settings."""
    value: Any = settings.get(key)
    value = default if value is None else value
    if type(value) not in (int, float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"the scaling of rotary positions has {key} = {value!r}, which is not a positive number")
    return float(value)


def _leave(
    width: int, base: float, longest: int, length: int, settings: Mapping[str, Any]
) -> tuple[list[float], float]:
    return _rates(width, base), 1.0


def _scale_linearly(
    width: int, base: float, longest: int, length: int, settings: Mapping[str, Any]
) -> tuple[list[float], float]:
    """Divide every position by the factor."""
    factor = _read(settings, "factor")
    return [rate / factor for rate in _rates(width, base)], 1.0


def _scale_dynamically(
    width: int, base: float, longest: int, length: int, settings: Mapping[str, Any]
) -> tuple[list[float], float]:
    """Enlarge the base with the length of the text, beyond that of the training."""
    factor, length = _read(settings, "factor"), max(length, longest)
    growth = factor * length / longest - (factor - 1)
    return _rates(width, base * growth ** (width / (width - 2))), 1.0


def _scale_by_wavelength(
    width: int, base: float, longest: int, length: int, settings: Mapping[str, Any]
) -> tuple[list[float], float]:
    """Divide the slow frequencies, leave the fast ones, and blend those between them (Llama 3.1)."""
    factor, trained = _read(settings, "factor"), _read(settings, "original_max_position_embeddings", longest)
    low, high = _read(settings, "low_freq_factor", 1.0), _read(settings, "high_freq_factor", 4.0)
    if low >= high:
        raise ValueError(
            f"the scaling of rotary positions has low_freq_factor {low}, not below high_freq_factor {high}"
        )

    def scale(rate: float) -> float:
        turns = trained * rate / math.tau
        kept = min(max((turns - low) / (high - low), 0.0), 1.0)
        return (1 - kept) * rate / factor + kept * rate

    return [scale(rate) for rate in _rates(width, base)], 1.0


def _scale_by_parts(
    width: int, base: float, longest: int, length: int, settings: Mapping[str, Any]
) -> tuple[list[float], float]:
    """Interpolate the slow pairs and leave the fast ones, with a ramp between them (YaRN, Peng et al., 2023)."""
    trained = _read(settings, "original_max_position_embeddings", longest)
    factor = _read(settings, "factor", longest / trained)

    def pair_that_turns(times: float) -> float:
        return width * math.log(trained / (times * math.tau)) / (2 * math.log(base))

    first, last = (
        pair_that_turns(_read(settings, "beta_fast", 32.0)),
        pair_that_turns(_read(settings, "beta_slow", 1.0)),
    )
    if settings.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, width - 1)
    last = last + 0.001 if first == last else last
    ramp = [min(max((i - first) / (last - first), 0.0), 1.0) for i in range(width // 2)]
    rates = [rate * (1 - share) + rate / factor * share for rate, share in zip(_rates(width, base), ramp, strict=True)]
    if settings.get("attention_factor") is not None:
        return rates, _read(settings, "attention_factor")
    if settings.get("mscale") and settings.get("mscale_all_dim"):
        return rates, _grow(factor, _read(settings, "mscale")) / _grow(factor, _read(settings, "mscale_all_dim"))
    return rates, _grow(factor, 1.0)


def _grow(factor: float, weight: float) -> float:
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def _scale_long(
    width: int, base: float, longest: int, length: int, settings: Mapping[str, Any]
) -> tuple[list[float], float]:
    """Divide each frequency by its own factor, one list of them for short texts and one for long (LongRoPE)."""
    trained = _read(settings, "original_max_position_embeddings", longest)
    key = "long_factor" if length > trained else "short_factor"
    factors = settings.get(key)
    if not isinstance(factors, Sequence) or len(factors) != width // 2:
        raise ValueError(f"the scaling of rotary positions needs a {key} for each of {width // 2} pairs")
    divided = [rate / _read({key: f}, key) for rate, f in zip(_rates(width, base), factors, strict=True)]
    if settings.get("attention_factor") is not None:
        return divided, _read(settings, "attention_factor")
    factor = longest / trained if longest != trained else _read(settings, "factor", 1.0)
    return divided, math.sqrt(1 + math.log(factor) / math.log(trained)) if factor > 1 else 1.0


_SCALINGS: dict[str, _Scaling] = {
    "default": _leave,
    "linear": _scale_linearly,
    "dynamic": _scale_dynamically,
    "yarn": _scale_by_parts,
    "longrope": _scale_long,
    "su": _scale_long,
    "llama3": _scale_by_wavelength,
}

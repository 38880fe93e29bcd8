"""References of the losses: their definitions in long double; CTC by adding up every path, one after the other."""

from __future__ import annotations

from itertools import groupby, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.reference import array_of, arrays, numpy_dtype, shapes
from tests.reference.spec import spec

Array = np.ndarray[Any, Any]

_LEAST = np.longdouble(1e-7)


def _wide(*tensors: Array) -> list[Array]:
    return [x.astype(np.longdouble) for x in tensors]


def _log(x: Array) -> Array:
    """The logarithm in which probabilities below the least count as that."""
    return np.log(np.maximum(x, _LEAST))


def _axis_of(draw: st.DrawFn, ndim: int) -> Any:
    several = st.lists(st.integers(0, ndim - 1), unique=True).map(tuple)
    return draw(st.one_of(st.just(-1), st.integers(-ndim, ndim - 1), several, st.none()))


def _regression(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shape = draw(shapes(min_dims=1, min_side=1))
    high = 100.0 if dtype == "float16" else 1e6  # squares of the larger ones would overflow in float16
    target, output = (draw(arrays(dtype, shape, finite=True, low=-high, high=high)) for _ in range(2))
    return {"target": target, "output": output, "axis": _axis_of(draw, len(shape))}


def _huber(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    drawn = _regression(draw, dtype)
    return {**drawn, "delta": draw(st.sampled_from((0.5, 1.0, 3.0)))}


def _of_differences(function: Any) -> Any:
    def reference(target: Array, output: Array, axis: Any, **settings: Any) -> Array:
        target, output = _wide(target, output)
        return np.mean(function(output - target, **settings), axis=axis)

    return reference


def _of_sizes(function: Any) -> Any:
    """The terms of a difference are as large as the two numbers."""

    def scale(target: Array, output: Array, axis: Any, **settings: Any) -> Array:
        target, output = _wide(target, output)
        return np.mean(function(np.abs(output) + np.abs(target), **settings), axis=axis)

    return scale


def _huber_of(e: Array, delta: float) -> Array:
    return np.where(np.abs(e) <= delta, e**2 / 2, delta * np.abs(e) - np.longdouble(delta) ** 2 / 2)


def log_cosh(e: Array) -> Array:
    """In long double the cosine itself reaches to 11356; beyond, its other half is nothing."""
    return np.where(np.abs(e) < 11000, np.log(np.cosh(np.clip(e, -11000, 11000))), np.abs(e) - np.log(np.longdouble(2)))


spec("mean_squared_error", _regression, _of_differences(np.square), ulps=8, scale=_of_sizes(np.square))
spec("mean_absolute_error", _regression, _of_differences(np.abs), ulps=8, scale=_of_sizes(np.abs))
spec(
    "huber_loss", _huber, _of_differences(_huber_of), ulps=8, scale=_of_sizes(lambda size, delta: size * max(delta, 1))
)
spec("log_cosh_loss", _regression, _of_differences(log_cosh), ulps=8, scale=_of_sizes(np.abs))


def _probabilities(draw: st.DrawFn, dtype: str, shape: tuple[int, ...], rows: int | None = None) -> Array:
    """Probabilities, often 0, 1 or very small; of integers and bools only 0 and 1."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    special = rng.choice([0.0, 1.0, 1e-9, 1e-5, 0.5, 1 - 1e-6], shape)
    found = np.where(rng.random(shape) < 0.5, rng.random(shape), special)
    if rows is not None and found.size:
        found /= np.maximum(found.sum(axis=rows, keepdims=True), 1e-3)
    if dtype.startswith(("int", "uint", "bool")):
        found = np.round(found)
    return found.astype(numpy_dtype(dtype))


def _binary(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shape = draw(shapes(min_dims=1, min_side=1))
    from_logits = draw(st.booleans())
    logits = draw(arrays(dtype, shape, finite=True, low=-1e4, high=1e4))
    output = logits if from_logits else _probabilities(draw, dtype, shape)
    target = _probabilities(draw, dtype, shape)
    return {"target": target, "output": output, "from_logits": from_logits, "axis": _axis_of(draw, len(shape))}


def _binary_crossentropy(target: Array, output: Array, from_logits: bool, axis: Any) -> Array:
    target, output = _wide(target, output)
    with np.errstate(all="ignore"):
        if from_logits:
            terms = target * np.logaddexp(0, -output) + (1 - target) * np.logaddexp(0, output)
        else:
            terms = -target * _log(output) - (1 - target) * np.where(
                output > 0.5, _log(1 - output), np.log1p(-np.minimum(output, 0.5))
            )
    return np.mean(terms, axis=axis)


spec("binary_crossentropy", _binary, _binary_crossentropy, ulps=8)


def _distributions(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    shape = draw(shapes(min_dims=1, min_side=1))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    target, output = (_probabilities(draw, dtype, shape, axis) for _ in range(2))
    return {"target": target, "output": output, "axis": axis}


def _kl(target: Array, output: Array, axis: int) -> Array:
    target, output = _wide(target, output)
    return np.sum(target * (_log(target) - _log(output)), axis=axis)


def _kl_scale(target: Array, output: Array, axis: int) -> Array:
    target, output = _wide(target, output)
    return np.sum(target * (1 - _log(target) - _log(output)), axis=axis)


spec("kl_divergence", _distributions, _kl, ulps=8, scale=_kl_scale)


def _classes(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    drawn = _distributions(draw, dtype)
    from_logits = draw(st.booleans())
    if from_logits:
        drawn["output"] = draw(arrays(dtype, drawn["output"].shape, finite=True, low=-1e4, high=1e4))
    return {**drawn, "from_logits": from_logits}


def _logs(output: Array, from_logits: bool, axis: int) -> Array:
    with np.errstate(all="ignore"):
        if from_logits:
            below = output - output.max(axis=axis, keepdims=True)
            return below - np.log(np.exp(below).sum(axis=axis, keepdims=True))
        return _log(output / output.sum(axis=axis, keepdims=True))


def _magnitude(output: Array, from_logits: bool, axis: int) -> Array:
    """The terms whose difference is the logarithm: the logit and the logarithm of the sum, or 1 for the quotient."""
    extent = np.abs(output).max(axis=axis, keepdims=True) if from_logits else 1
    return extent + np.abs(_logs(output, from_logits, axis))


def _categorical(target: Array, output: Array, axis: int, from_logits: bool) -> Array:
    target, output = _wide(target, output)
    return -np.sum(target * _logs(output, from_logits, axis), axis=axis)


def _categorical_scale(target: Array, output: Array, axis: int, from_logits: bool) -> Array:
    target, output = _wide(target, output)
    return np.sum(target * _magnitude(output, from_logits, axis), axis=axis)


spec("categorical_crossentropy", _classes, _categorical, ulps=8, scale=_categorical_scale)


def _labels(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    drawn = _classes(draw, dtype)
    output, axis = drawn["output"], drawn["axis"]
    rows = np.delete(output.shape, axis)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(("int32", "int64", "uint8")))
    return {**drawn, "target": rng.integers(0, output.shape[axis], rows).astype(kind)}


def _picked(values: Array, target: Array, axis: int) -> Array:
    return np.take_along_axis(values, np.expand_dims(target, axis).astype(np.int64), axis).squeeze(axis)


def _sparse(target: Array, output: Array, axis: int, from_logits: bool) -> Array:
    return -_picked(_logs(*_wide(output), from_logits, axis), target, axis)


def _sparse_scale(target: Array, output: Array, axis: int, from_logits: bool) -> Array:
    return _picked(_magnitude(*_wide(output), from_logits, axis), target, axis)


spec("sparse_categorical_crossentropy", _labels, _sparse, ulps=8, scale=_sparse_scale)


def _sequences(draw: st.DrawFn, dtype: str) -> dict[str, Any]:
    batch, frames, labels = draw(st.integers(1, 2)), draw(st.integers(0, 4)), draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blank = draw(st.integers(0, 2))
    others = [label for label in range(3) if label != blank]
    return {
        "target": rng.choice(others, (batch, labels)),
        "output": draw(arrays(dtype, (batch, frames, 3), finite=True, low=-9.0, high=9.0)),
        "target_length": rng.integers(0, labels, batch, endpoint=True),
        "output_length": rng.integers(0, frames, batch, endpoint=True),
        "mask_index": blank,
    }


def _spelled(path: tuple[int, ...], blank: int) -> list[int]:
    return [label for label, _ in groupby(path) if label != blank]


def _ctc_by_paths(
    target: Array, output: Array, target_length: Array, output_length: Array, mask_index: int
) -> list[Any]:
    found = []
    for labels, logits, count, frames in zip(target, *_wide(output), target_length, output_length, strict=True):
        powers = np.exp(logits[:frames])
        chances = powers / powers.sum(axis=-1, keepdims=True)
        wanted = labels[:count].tolist()
        total = np.longdouble(0)
        for path in product(range(3), repeat=int(frames)):
            if _spelled(path, mask_index) == wanted:
                total += np.prod(chances[np.arange(frames), list(path)], initial=np.longdouble(1))
        found.append(-np.log(total) if total else np.inf)
    return found


def _ctc(**arguments: Any) -> Array:
    return np.array(_ctc_by_paths(**arguments), dtype=np.longdouble)


spec("ctc_loss", _sequences, _ctc, ulps=8, scale=lambda output, **rest: 1 + 2 * np.abs(output).sum(axis=(1, 2)))


def ctc_by_states(target: Array, output: Array, target_length: Any, output_length: Any, blank: int = 0) -> Array:
    """For long sequences: the probabilities themselves, frame by frame, whose exponents long double can hold."""
    found = []
    for labels, logits, count, frames in zip(target, *_wide(output), target_length, output_length, strict=True):
        chances = np.exp(logits[:frames] - logits[:frames].max(axis=-1, keepdims=True))
        chances /= chances.sum(axis=-1, keepdims=True)
        states = [blank, *(state for label in labels[:count] for state in (int(label), blank))]
        reached = np.zeros(len(states), np.longdouble)
        reached[0] = 1
        for frame in chances:
            moved = reached.copy()
            moved[1:] += reached[:-1]
            for place in range(2, len(states)):
                if states[place] not in (blank, states[place - 2]):
                    moved[place] += reached[place - 2]
            reached = moved * frame[states]
        found.append(-np.log(reached[-2:].sum()))
    return np.array(found)


def random_sequences(batch: int, frames: int, labels: int, classes: int) -> tuple[Array, Array, Array, Array]:
    """Labels, logits and lengths for CTC that the frames can spell."""
    rng = np.random.default_rng(7)
    target = rng.integers(1, classes, (batch, labels))
    output = array_of("float32", 2 * rng.normal(size=(batch, frames, classes)))
    return target, output, rng.integers(0, labels, batch, endpoint=True), rng.integers(frames - 9, frames, batch)

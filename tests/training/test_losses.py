"""Losses as objects: reductions, weights, smoothing, names; the values against plain Python by the definitions."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from ember_ml import ops, registry
from ember_ml.errors import UnknownName
from ember_ml.training import losses

LOGITS = [[0.5, -1.0, 2.0], [0.0, 0.25, -3.0], [4.0, 4.0, -1.0], [1.0, 0.0, 0.5]]
CLASSES = [2, 0, 1, 0]
WEIGHTS = [1.0, 0.0, 2.5, 0.5]


def _softmax(row: list[float]) -> list[float]:
    total = math.fsum(math.exp(x) for x in row)
    return [math.exp(x) / total for x in row]


def _one_hot(label: int) -> list[float]:
    return [float(i == label) for i in range(3)]


def _mean(values: Any) -> float:
    values = list(values)
    return math.fsum(values) / len(values)


def _crossentropy(target: list[float], row: list[float]) -> float:
    return -math.fsum(t * math.log(p) for t, p in zip(target, _softmax(row), strict=True))


def _smooth(target: list[float], share: float) -> list[float]:
    return [t * (1 - share) + share / len(target) for t in target]


def _by_number(function: Any) -> Any:
    return lambda target, row: _mean(map(function, target, row))


def _binary(target: float, logit: float) -> float:
    p = 1 / (1 + math.exp(-logit))
    return -target * math.log(p) - (1 - target) * math.log(1 - p)


def _huber(target: float, x: float, delta: float) -> float:
    size = abs(x - target)
    return size**2 / 2 if size <= delta else delta * (size - delta / 2)


ONE_HOT = [_one_hot(label) for label in CLASSES]
SHARES = [_softmax([x * 0.3 for x in row]) for row in LOGITS]
CASES: list[tuple[Any, Any, Any, Any]] = [
    (losses.MeanSquaredError, ONE_HOT, LOGITS, _by_number(lambda t, x: (x - t) ** 2)),
    (losses.MeanAbsoluteError, ONE_HOT, LOGITS, _by_number(lambda t, x: abs(x - t))),
    (losses.Huber, ONE_HOT, LOGITS, _by_number(lambda t, x: _huber(t, x, 1.0))),
    (losses.LogCosh, ONE_HOT, LOGITS, _by_number(lambda t, x: math.log(math.cosh(x - t)))),
    (losses.BinaryCrossentropy, ONE_HOT, LOGITS, _by_number(_binary)),
    (losses.CategoricalCrossentropy, ONE_HOT, LOGITS, _crossentropy),
    (losses.SparseCategoricalCrossentropy, CLASSES, LOGITS, lambda t, x: _crossentropy(_one_hot(t), x)),
    (
        losses.KLDivergence,
        SHARES,
        [_softmax(row) for row in LOGITS],
        lambda t, p: math.fsum(a * math.log(a / b) for a, b in zip(t, p, strict=True)),
    ),
]


@pytest.mark.parametrize(("kind", "target", "prediction", "of_sample"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_reductions_and_weights(kind: Any, target: Any, prediction: Any, of_sample: Any, backend: str) -> None:
    each = [of_sample(t, p) for t, p in zip(target, prediction, strict=True)]
    weighted = [w * x for w, x in zip(WEIGHTS, each, strict=True)]
    target, prediction = ops.array(target), ops.array(prediction)
    near = {"rel": 2e-6, "abs": 1e-6}
    assert ops.item(kind()(target, prediction)) == pytest.approx(_mean(each), **near)
    assert ops.item(kind(reduction="sum")(target, prediction)) == pytest.approx(math.fsum(each), **near)
    assert ops.to_numpy(kind(reduction="none")(target, prediction)).tolist() == pytest.approx(each, **near)
    mean = math.fsum(weighted) / math.fsum(WEIGHTS)
    assert ops.item(kind()(target, prediction, WEIGHTS)) == pytest.approx(mean, **near)
    assert ops.item(kind(reduction="sum")(target, prediction, WEIGHTS)) == pytest.approx(math.fsum(weighted), **near)
    found = kind(reduction="none")(target, prediction, ops.array(WEIGHTS))
    assert ops.to_numpy(found).tolist() == pytest.approx(weighted, **near)
    assert ops.item(kind()(target, prediction, [0.0] * 4)) == 0.0


@pytest.mark.parametrize("share", [0.1, 0.6])
def test_label_smoothing(share: float, backend: str) -> None:
    expected = _mean(_crossentropy(_smooth(t, share), x) for t, x in zip(ONE_HOT, LOGITS, strict=True))
    for kind, target in ((losses.CategoricalCrossentropy, ONE_HOT), (losses.SparseCategoricalCrossentropy, CLASSES)):
        assert ops.item(kind(label_smoothing=share)(target, LOGITS)) == pytest.approx(expected, rel=2e-6)
        given = kind(from_logits=False, label_smoothing=share)
        assert ops.item(given(target, ops.softmax(LOGITS))) == pytest.approx(expected, rel=2e-6)
    events = [[t * (1 - share) + share / 2 for t in row] for row in ONE_HOT]
    expected = _mean(_by_number(_binary)(t, x) for t, x in zip(events, LOGITS, strict=True))
    smooth = losses.BinaryCrossentropy(label_smoothing=share)
    assert ops.item(smooth(ONE_HOT, LOGITS)) == pytest.approx(expected, rel=2e-6)
    whole = [[int(t) for t in row] for row in ONE_HOT]  # integers must not round the shares away
    assert ops.item(smooth(whole, LOGITS)) == pytest.approx(expected, rel=2e-6)


def test_probabilities(backend: str) -> None:
    shares, column = ops.softmax(LOGITS), ops.reshape(ops.sigmoid(LOGITS), (4, 3))
    for kind, target in ((losses.CategoricalCrossentropy, ONE_HOT), (losses.SparseCategoricalCrossentropy, CLASSES)):
        assert ops.item(kind(from_logits=False)(target, shares)) == pytest.approx(
            ops.item(kind()(target, LOGITS)), rel=2e-6
        )
    found = losses.BinaryCrossentropy(from_logits=False)(ONE_HOT, column)
    assert ops.item(found) == pytest.approx(ops.item(losses.binary_crossentropy(ONE_HOT, LOGITS)), rel=2e-6)


def test_one_number_per_sample(backend: str) -> None:
    target, prediction = [1.0, 2.0, 3.0], [1.0, 4.0, 7.0]
    assert ops.item(losses.mean_squared_error(target, prediction)) == pytest.approx(20 / 3)
    assert ops.item(losses.mean_squared_error(target, prediction, [1.0, 1.0, 0.0])) == 2.0
    none = losses.MeanSquaredError(reduction="none")
    assert ops.to_numpy(none(target, prediction)).tolist() == [0.0, 4.0, 16.0]


def test_weights_of_sequences(backend: str) -> None:
    logits = ops.reshape(ops.sin(ops.arange(24, dtype="float32")), (2, 4, 3))
    target = [[0, 1, 2, 0], [2, 2, 1, 0]]
    each = losses.SparseCategoricalCrossentropy(reduction="none")(target, logits)
    assert ops.shape(each) == (2, 4)
    mask = [[1, 1, 0, 0], [1, 1, 1, 0]]
    values = ops.to_numpy(each).tolist()
    kept = [x for row, on in zip(values, mask, strict=True) for x, is_on in zip(row, on, strict=True) if is_on]
    loss = losses.sparse_categorical_crossentropy
    assert ops.item(loss(target, logits, mask)) == pytest.approx(_mean(kept), rel=2e-6)
    assert ops.item(loss(target, logits, [1.0, 3.0])) == pytest.approx(
        (math.fsum(values[0]) + 3 * math.fsum(values[1])) / 16, rel=2e-6
    )
    assert ops.item(loss(target, logits, [[1.0], [3.0]])) == pytest.approx(
        ops.item(loss(target, logits, [1.0, 3.0])), rel=1e-6
    )


@pytest.mark.parametrize("weight", [[1.0, 2.0, 3.0], [[1.0] * 3] * 4])
def test_weights_that_do_not_fit(weight: Any, backend: str) -> None:
    with pytest.raises(ValueError, match="do not fit values of shape"):
        losses.mean_squared_error(ONE_HOT, LOGITS, weight)


def test_one_weight_for_all(backend: str) -> None:
    alone = ops.item(losses.mean_squared_error(ONE_HOT, LOGITS))
    assert ops.item(losses.mean_squared_error(ONE_HOT, LOGITS, 2)) == pytest.approx(alone, rel=1e-6)
    total = ops.item(losses.MeanSquaredError("sum")(ONE_HOT, LOGITS, 2))
    assert total == pytest.approx(8 * alone, rel=1e-6)


def test_shapes_that_would_broadcast_are_refused(backend: str) -> None:
    with pytest.raises(ValueError, match="shape"):
        losses.mean_squared_error([1.0, 2.0], [[1.0], [2.0]])


def test_ctc_takes_three_targets(backend: str) -> None:
    logits = ops.reshape(ops.cos(ops.arange(24, dtype="float32")), (2, 4, 3))
    parts = (ops.array([[1, 2], [2, 1]]), ops.array([2, 1]), ops.array([4, 3]))
    expected = ops.to_numpy(ops.ctc_loss(parts[0], logits, parts[1], parts[2])).tolist()
    assert ops.item(losses.ctc_loss(parts, logits)) == pytest.approx(_mean(expected), rel=1e-6)
    with pytest.raises(ValueError, match="three parts"):
        losses.ctc_loss(parts[0], logits)


def test_gradients(backend: str) -> None:
    def of_logits(x: Any) -> Any:
        return losses.sparse_categorical_crossentropy(CLASSES, x, WEIGHTS)

    gradient = ops.to_numpy(ops.grad(of_logits)(ops.array(LOGITS))).tolist()
    total = math.fsum(WEIGHTS)
    for row, label, weight, found in zip(LOGITS, CLASSES, WEIGHTS, gradient, strict=True):
        expected = [(p - t) * weight / total for p, t in zip(_softmax(row), _one_hot(label), strict=True)]
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_names() -> None:
    assert registry.names("losses/") == sorted(f"losses/{name}" for name in losses.__all__ if name in ops.__dict__)
    for name in registry.names("losses/"):
        loss = losses.get(name.removeprefix("losses/"))
        assert type(loss) is type(getattr(losses, name.removeprefix("losses/")))
        assert repr(loss) == repr(pickle.loads(pickle.dumps(loss)))
        assert repr(registry.build(registry.config_of(loss))) == repr(loss)
    huber = losses.Huber(0.5, "sum")
    assert losses.get(huber) is huber
    assert registry.config_of(huber) == {"type": "losses/huber_loss", "delta": 0.5, "reduction": "sum"}
    with pytest.raises(UnknownName, match="did you mean 'losses/mean_squared_error'"):
        losses.get("mean_square_error")
    with pytest.raises(TypeError, match="a loss is a name"):
        losses.get(3)


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="a reduction is one of"):
        losses.MeanSquaredError("average")
    for share in (-0.1, 1.0):
        with pytest.raises(ValueError, match="label_smoothing"):
            losses.CategoricalCrossentropy(label_smoothing=share)

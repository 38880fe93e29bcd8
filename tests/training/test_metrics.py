"""Metrics against scikit-learn, in batches, with weights, on every backend and across switches."""

from __future__ import annotations

import copy
import json
import math
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import ember_ml
from ember_ml import nn, ops, registry
from ember_ml.backend import installed_backends
from ember_ml.errors import UnknownName
from ember_ml.training import Trainer, metrics

Data = tuple[list[Any], list[Any], list[float]]


def _multiclass(seed: int, count: int = 57, classes: int = 4) -> Data:
    chance = random.Random(seed)
    target = [chance.randrange(classes) for _ in range(count)]
    scores = [[chance.gauss(0, 1) + (label == place) for place in range(classes)] for label in target]
    return target, scores, [chance.choice([0.0, 0.5, 1.0, 3.0]) for _ in range(count)]


def _binary(seed: int, count: int = 57) -> Data:
    chance = random.Random(seed)
    target = [chance.randrange(2) for _ in range(count)]
    scores = [round(chance.gauss(label - 0.5, 1), 1) for label in target]  # rounded, so that some are equal
    return target, scores, [chance.choice([0.0, 0.5, 1.0, 3.0]) for _ in range(count)]


def _numbers(seed: int, count: int = 57) -> Data:
    chance = random.Random(seed)
    target = [_float32(chance.gauss(100, 1)) for _ in range(count)]
    found = [_float32(x + chance.gauss(0, 0.5)) for x in target]
    return target, found, [chance.choice([0.0, 0.5, 3.0]) for _ in range(count)]


def _float32(x: float) -> float:
    return struct.unpack("f", struct.pack("f", x))[0]


def _batches(data: Data, sizes: list[int]) -> Iterator[Data]:
    start = 0
    for size in sizes:
        part = tuple(x[start : start + size] for x in data)
        start += size
        if part[0]:
            yield part  # type: ignore[misc]


def _argmax(rows: list[list[float]]) -> list[int]:
    return [row.index(max(row)) for row in rows]


def _measured(metric: Any, data: Data, weighted: bool, sizes: tuple[int, ...] = (20, 1, 30, 6)) -> Any:
    for target, prediction, weight in _batches(data, list(sizes)):
        metric.update(ops.array(target), ops.array(prediction), ops.array(weight) if weighted else None)
    return metric.result()


def _signs(scores: list[float]) -> list[int]:
    return [int(score > 0) for score in scores]


def _by_class(function: Any, average: str) -> Any:
    return lambda t, p, w: function(t, _argmax(p), sample_weight=w, average=average, zero_division=0)


CASES: list[tuple[str, Callable[[], Any], Callable[[int], Data], Callable[..., float]]] = [
    ("accuracy", metrics.Accuracy, _multiclass, lambda t, p, w: sk.accuracy_score(t, _argmax(p), sample_weight=w)),
    ("binary", metrics.Accuracy, _binary, lambda t, p, w: sk.accuracy_score(t, _signs(p), sample_weight=w)),
    (
        "top 2",
        lambda: metrics.TopKAccuracy(2),
        _multiclass,
        lambda t, p, w: sk.top_k_accuracy_score(t, p, k=2, sample_weight=w, labels=range(4)),
    ),
    ("precision", metrics.Precision, _binary, lambda t, p, w: sk.precision_score(t, _signs(p), sample_weight=w)),
    ("recall", metrics.Recall, _binary, lambda t, p, w: sk.recall_score(t, _signs(p), sample_weight=w)),
    ("f1", metrics.F1, _binary, lambda t, p, w: sk.f1_score(t, _signs(p), sample_weight=w)),
    ("auc", metrics.AUC, _binary, lambda t, p, w: sk.roc_auc_score(t, p, sample_weight=w)),
    (
        "squares",
        metrics.MeanSquaredError,
        _numbers,
        lambda t, p, w: sk.mean_squared_error(t, p, sample_weight=w),
    ),
    (
        "magnitudes",
        metrics.MeanAbsoluteError,
        _numbers,
        lambda t, p, w: sk.mean_absolute_error(t, p, sample_weight=w),
    ),
    ("r2", metrics.R2, _numbers, lambda t, p, w: sk.r2_score(t, p, sample_weight=w)),
    (
        "perplexity",
        metrics.Perplexity,
        _multiclass,
        lambda t, p, w: math.exp(sk.log_loss(t, _softmax(p), sample_weight=w, labels=range(4))),
    ),
    *(
        (
            f"{kind.name} {average}",
            lambda kind=kind, average=average: kind(average),
            _multiclass,
            _by_class(of, average),
        )
        for kind, of in (
            (metrics.Precision, sk.precision_score),
            (metrics.Recall, sk.recall_score),
            (metrics.F1, sk.f1_score),
        )
        for average in ("macro", "micro", "weighted")
    ),
]


def _softmax(rows: list[list[float]]) -> list[list[float]]:
    found = [[math.exp(x) for x in row] for row in rows]
    return [[x / math.fsum(row) for x in row] for row in found]


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_against_scikit_learn(case: Any, weighted: bool, backend: str) -> None:
    _, make, make_data, reference = case
    for seed in range(3):
        data = make_data(seed)
        expected = reference(data[0], data[1], data[2] if weighted else None)
        found = _measured(make(), data, weighted)
        assert type(found) is float
        assert found == pytest.approx(expected, rel=3e-6)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_confusion_matrix(weighted: bool, backend: str) -> None:
    data = _multiclass(5)
    found = _measured(metrics.ConfusionMatrix(), data, weighted)
    expected = sk.confusion_matrix(data[0], _argmax(data[1]), sample_weight=data[2] if weighted else None)
    assert ops.to_numpy(found).tolist() == expected.tolist()


@given(st.sampled_from(CASES), st.integers(0, 999), st.lists(st.integers(1, 30), min_size=1, max_size=6), st.booleans())
def test_batches_ranks_and_states_do_not_matter(case: Any, seed: int, sizes: list[int], weighted: bool) -> None:
    _, make, make_data, _ = case
    data: Any = tuple(x[: sum(sizes)] for x in make_data(seed))
    whole, ranks, resumed = make(), [make(), make(), make()], make()
    near = pytest.approx(_measured(whole, data, weighted, (len(data[0]),)), rel=1e-5, abs=1e-6, nan_ok=True)
    for number, part in enumerate(_batches(data, sizes)):
        weight = part[2] if weighted else None
        ranks[number % 2].update(part[0], part[1], weight)
        fresh = make()
        fresh.restore(json.loads(json.dumps(resumed.state())))
        resumed = fresh
        resumed.update(part[0], part[1], weight)
    first = ranks[2]  # which has measured nothing itself
    for other in ranks[:2]:
        first.merge(json.loads(json.dumps(other.state())))
    assert first.result() == near
    assert resumed.result() == near
    assert whole.result() == near


@pytest.mark.skipif(len(installed_backends()) < 2, reason="needs a second backend")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_switch_between_batches(case: Any) -> None:
    _, make, make_data, reference = case
    data = make_data(8)
    metric, before = make(), ember_ml.get_backend()
    names = installed_backends()
    try:
        for number, (target, prediction, _) in enumerate(_batches(data, [9] * 7)):
            ember_ml.set_backend(names[number % len(names)])
            metric.update(ops.array(target), ops.array(prediction))
        expected = reference(data[0], data[1], None)
        assert metric.result() == pytest.approx(expected, rel=3e-6)
    finally:
        ember_ml.set_backend(before)


@pytest.mark.parametrize(
    "case", [*CASES, ("confusion", metrics.ConfusionMatrix, _multiclass, None)], ids=lambda c: c[0]
)
def test_an_update_reads_nothing(case: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, make, make_data, _ = case
    target, prediction, weight = (ops.array(x) for x in make_data(3))
    metric, again = make(), make()
    expected = _number(again.update(target, prediction, weight) or again.result())
    with monkeypatch.context() as patch:
        patch.setattr(ember_ml.get_backend_module(), "to_host", lambda x: pytest.fail("a value was read"))
        for _ in range(70):
            metric.update(target, prediction, weight)
    ratio = 70 if make is metrics.ConfusionMatrix else 1
    assert _number(metric.result()) == pytest.approx(expected * ratio, rel=1e-4)


def _number(result: Any) -> float:
    return result if isinstance(result, float) else ops.item(ops.sum(result))


def test_long_runs_lose_no_digits(backend: str) -> None:
    """Ten thousand batches: a float32 that each one is added to would be off by about 1e-4."""
    mean, squares = metrics.Mean(), metrics.MeanSquaredError()
    value = ops.array([0.1])
    zero = ops.zeros(1)
    for _ in range(10_000 if backend == "numpy" else 1000):
        mean.update(value)
        squares.update(zero, value)
    assert mean.result() == pytest.approx(0.1, rel=5e-7)
    assert squares.result() == pytest.approx(0.01, rel=5e-7)


def test_forms_of_classes(backend: str) -> None:
    rows = [[0, 1], [1, 0], [0, 1], [0, 1]]
    labels = [1, 0, 1, 1]
    scores = [[0.0, 1.0], [2.0, 1.0], [0.5, 0.0], [-1.0, 3.0]]
    single = [b - a for a, b in scores]
    column = [[x] for x in single]
    for kind in (metrics.Accuracy, metrics.Recall, metrics.Precision, metrics.F1, metrics.AUC):
        expected = _once(kind(), labels, scores)
        assert _once(kind(), rows, scores) == expected
        assert _once(kind(), labels, single) == expected
        assert _once(kind(), labels, column) == expected
        assert _once(kind(), [[x] for x in labels], column) == expected
        assert _once(kind(), nn.tensor.EmberTensor(labels), nn.tensor.EmberTensor(scores)) == expected
        assert _once(kind(), ops.array(labels, dtype="float32"), ops.array(scores, dtype="float16")) == expected
    assert _once(metrics.Accuracy(), labels, [1, 1, 1, 1]) == 0.75
    assert _once(metrics.Accuracy(threshold=0.5), labels, ops.sigmoid(ops.multiply(single, 9.0))) == 0.75
    assert _once(metrics.Recall(num_classes=2), labels, [1, 1, 1, 1]) == 1.0
    sequences = ops.array([scores, scores])
    assert _once(metrics.Accuracy(), [labels, labels], sequences) == 0.75
    assert _once(metrics.Perplexity(), [labels, labels], sequences) == pytest.approx(
        _once(metrics.Perplexity(), labels, scores), rel=1e-6
    )


def _once(metric: Any, *batch: Any) -> Any:
    metric.update(*batch)
    return metric.result()


def test_weights_of_tokens(backend: str) -> None:
    target, scores = [[0, 1], [1, 1]], [[[1.0, 0.0]] * 2] * 2
    assert _once(metrics.Accuracy(), target, scores, [[1, 1], [0, 0]]) == 0.5
    assert _once(metrics.Accuracy(), target, scores, [3.0, 1.0]) == 0.375


def test_multiple_outputs_of_r2(backend: str) -> None:
    chance = random.Random(1)
    target = [[chance.gauss(0, 1), chance.gauss(5, 3)] for _ in range(40)]
    found = [[a + chance.gauss(0, 0.5), b + chance.gauss(0, 2)] for a, b in target]
    weight = [chance.random() for _ in target]
    metric = metrics.R2()
    for rows in (slice(0, 13), slice(13, 40)):
        metric.update(target[rows], found[rows], weight[rows])
    assert metric.result() == pytest.approx(sk.r2_score(target, found, sample_weight=weight), rel=1e-5)
    assert _once(metrics.R2(), [2.0, 2.0], [2.0, 2.0]) == 1.0
    assert _once(metrics.R2(), [2.0, 2.0], [2.0, 3.0]) == 0.0


def test_ties_in_top_k_go_to_the_first(backend: str) -> None:
    scores = [[1.0, 1.0, 1.0, 0.0]] * 4
    metric = metrics.TopKAccuracy(2)
    assert _once(metric, [0, 1, 2, 3], scores) == 0.5
    assert _once(metrics.TopKAccuracy(1), [0, 1, 2, 3], scores) == _once(metrics.Accuracy(), [0, 1, 2, 3], scores)
    assert _once(metrics.TopKAccuracy(4), [0, 9], scores[:2]) == 0.5  # a class that is none is never found


def test_nothing_measured(backend: str) -> None:
    for name in registry.names("metrics/"):
        metric = metrics.get(name.removeprefix("metrics/"))
        assert math.isnan(metric.result())
        assert metric.state() == {"name": metric.name, "total": None}
        metric.merge(metric.state())
        assert math.isnan(metric.result())
    assert math.isnan(_once(metrics.Accuracy(), [0, 1], [0.1, 0.2], [0.0, 0.0]))
    assert math.isnan(_once(metrics.AUC(), [1, 1], [0.1, 0.2]))


def test_reset_and_copies(backend: str) -> None:
    metric = metrics.Accuracy()
    metric.update([0], [1.0])
    other = copy.deepcopy(metric)
    metric.reset()
    metric.update([1], [1.0])
    assert metric.result() == 1.0
    assert other.result() == 0.0


def test_graphs_are_not_kept(backend: str) -> None:
    metric = metrics.MeanSquaredError()

    def loss(x: Any) -> Any:
        y = ops.multiply(x, 2.0)
        return ops.sum(y), y

    (_, prediction), _ = ops.value_and_grad(loss, has_aux=True)(ops.ones(3))
    metric.update(ops.zeros(3), prediction)
    copy.deepcopy(metric)
    assert metric.result() == 4.0


def test_a_metric_without_a_name_has_that_of_its_class(backend: str) -> None:
    class Total(metrics.Metric):
        def measure(self, target: Any, prediction: Any, weight: Any = None) -> Any:
            return (ops.sum(prediction),)

        def conclude(self, *total: Any) -> Any:
            return total[0]

    model = nn.Linear(1, 1, bias=False).load_state_dict({"weight": [[2.0]]})
    trainer = Trainer(model, "sgd", "mean_squared_error", metrics=[Total()], progress=False)
    found = trainer.evaluate(ops.array([[1.0], [2.0], [3.0]]), ops.zeros((3, 1)), batch_size=2)
    assert found == pytest.approx({"loss": 4.0 * 14.0 / 3.0, "Total": 12.0})


def test_names() -> None:
    assert metrics.get("accuracy").name == "accuracy"
    kinds = {name for name in metrics.__all__ if name not in ("Measure", "Metric", "get")}
    made = [metrics.get(name.removeprefix("metrics/")) for name in registry.names("metrics/")]
    assert {type(metric).__name__ for metric in made} == kinds
    for metric in made:
        assert f"metrics/{metric.name}" in registry.names("metrics/")
        assert repr(registry.build(registry.config_of(metric))) == repr(metric)
    assert metrics.get(made[0]) is made[0]
    with pytest.raises(UnknownName, match="did you mean 'metrics/accuracy'"):
        metrics.get("acuracy")
    with pytest.raises(TypeError, match="a metric is a name"):
        metrics.get(3)


@pytest.mark.parametrize(
    ("metric", "batch", "message"),
    [
        (metrics.Accuracy(), ([1, 0], [1, 0, 1]), "do not belong together"),
        (metrics.Accuracy(), ([1, 0], [[[1.0, 2.0]] * 2] * 2), "do not belong together"),
        (metrics.BinaryAccuracy(), ([1, 0], [[1.0], [1.0]]), "shape"),
        (metrics.TopKAccuracy(), ([1, 0, 1], [[1.0, 2.0]] * 2), "do not fit scores"),
        (metrics.AUC(), ([1, 0, 1], [1.0, 2.0]), "do not belong together"),
        (metrics.R2(), ([1.0, 2.0], [[1.0], [2.0]]), "targets of shape"),
        (metrics.MeanSquaredError(), ([1.0, 2.0], [[1.0], [2.0]]), "shape"),
        (metrics.F1(), ([1, 0], [1, 0]), "set num_classes"),
        (metrics.F1(num_classes=2), ([1, 0], [[1.0, 2.0, 3.0]] * 2), "more than num_classes"),
        (metrics.F1("binary"), ([1, 0], [[1.0, 2.0, 3.0]] * 2), "for two classes"),
        (metrics.Precision(), ([1, 7], [[1.0, 2.0, 3.0]] * 2), "no classes from 0 to 2"),
        (metrics.ConfusionMatrix(), ([1, -1], [1.0, 2.0]), "no classes from 0 to 1"),
        (metrics.Accuracy(), ([1, 0], [1.0, 0.0], [1.0, 2.0, 3.0]), "weights of shape"),
    ],
)
def test_mistakes(metric: Any, batch: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _once(copy.deepcopy(metric), *batch)


def test_wrong_states_and_settings() -> None:
    with pytest.raises(ValueError, match="the state is of the metric 'recall'"):
        metrics.F1().merge(metrics.Recall().state())
    for state in ({}, None, {"name": "f1"}, 3):
        with pytest.raises(ValueError, match="has a name and a total"):
            metrics.F1().restore(state)  # type: ignore[arg-type]
    metric = metrics.F1()
    for total in (3, [], [[1, 2], [1, 2], [1, 2]], [[1], ["2"], [1], 1], [[1, 2], [1, 2], [1, 2], None], [1, 2, 3, 3]):
        with pytest.raises(ValueError, match="the total of the metric 'f1' cannot be right"):
            metric.restore({"name": "f1", "total": total})
    assert math.isnan(metric.result())
    with pytest.raises(ValueError, match="k is at least 1"):
        metrics.TopKAccuracy(0)
    with pytest.raises(ValueError, match="average is"):
        metrics.F1("mean")

"""Samplers: weights, classes, lengths and blocks."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.training import DataLoader, collation, samplers


def _batches(sampler: Any, size: int, rows: int, **settings: Any) -> list[list[int]]:
    return [ops.to_numpy(batch).tolist() for batch in DataLoader(ops.arange(rows), size, sampler=sampler, **settings)]


def test_orders_do_not_depend_on_the_backend(backend: str) -> None:
    for sampler in (
        samplers.WeightedSampler([0.5, 0.25, 0.0, 0.25, 0, 0, 0, 0, 0, 0]),
        samplers.StratifiedSampler([0, 1] * 5),
        samplers.LengthSampler([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], window=2),
        samplers.BlockSampler([3, 3, 4], window=1),
    ):
        found = _batches(sampler, 4, 10, seed=3)
        assert found != _batches(sampler, 4, 10, seed=4)
        with ember_ml.use_backend("numpy"):
            assert _batches(sampler, 4, 10, seed=3) == found


def test_weights_decide_how_often_a_sample_is_drawn() -> None:
    weights = [1.0, 2.0, 0.0, 5.0]
    sampler = samplers.WeightedSampler(weights, count=8000)
    loader = DataLoader(ops.arange(4), batch_size=8000, sampler=sampler)
    (first,), (second,) = ([ops.to_numpy(batch).tolist() for batch in loader] for _ in range(2))
    assert first != second
    counts = Counter(first)
    for index, weight in enumerate(weights):  # within 5 standard deviations of the binomial distribution
        share = weight / 8
        assert abs(counts[index] - 8000 * share) <= 5 * (8000 * share * (1 - share)) ** 0.5
    once = samplers.WeightedSampler(weights, count=3, replace=False)
    assert {tuple(sorted(batch)) for seed in range(5) for batch in _batches(once, 3, 4, seed=seed)} == {(0, 1, 3)}


@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=60), seed=st.integers(0, 99), size=st.integers(1, 9))
def test_classes_are_spread_evenly(labels: list[int], seed: int, size: int) -> None:
    batches = _batches(samplers.StratifiedSampler(labels), size, len(labels), seed=seed)
    order = [row for batch in batches for row in batch]
    assert sorted(order) == list(range(len(labels)))
    totals, seen = Counter(labels), Counter()
    for number, row in enumerate(order, 1):
        seen[labels[row]] += 1
        for label, total in totals.items():
            share = total / len(labels)
            assert abs(seen[label] - share * number) <= 1 + share * len(totals)


@given(lengths=st.lists(st.integers(0, 50), min_size=1, max_size=60), size=st.integers(1, 9), window=st.integers(1, 5))
def test_batches_have_similar_lengths(lengths: list[int], size: int, window: int) -> None:
    batches = _batches(samplers.LengthSampler(lengths, window), size, len(lengths), seed=1)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    whole = [sorted(lengths[row] for row in batch) for batch in batches if len(batch) == size]
    if len(whole) <= window:  # all of them were sorted at once, so no two overlap
        whole.sort()
        assert all(a[-1] <= b[0] for a, b in pairwise(whole))


@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any), window=st.integers(1, 4))
def test_blocks_stay_together(lengths: list[int], window: int) -> None:
    (order,) = _batches(samplers.BlockSampler(lengths, window), 200, sum(lengths))
    assert sorted(order) == list(range(sum(lengths)))
    block_of = [block for block, length in enumerate(lengths) for _ in range(length)]
    spans = {}
    for place, row in enumerate(order):
        spans.setdefault(block_of[row], []).append(place)
    for block, places in spans.items():  # rows of at most window - 1 other blocks lie between those of a block
        between = {block_of[row] for row in order[min(places) : max(places) + 1]} - {block}
        assert len(between) <= window - 1


def test_a_sampler_of_ones_own_with_ranks_and_positions(backend: str) -> None:
    class Backwards:
        def __len__(self) -> int:
            return 7

        def order(self, generator: ops.Generator, batch_size: int) -> list[int]:
            return [*range(6, -1, -1)]

    assert _batches(Backwards(), 3, 7) == [[6, 5, 4], [3, 2, 1], [0]]
    loader = DataLoader(ops.arange(7), 3, sampler=Backwards(), collate=collation.stack).shard(1, 2)
    assert [ops.to_numpy(batch).tolist() for batch in loader] == [[5, 4], [2, 1], [0]]
    loader.restore(loader.state() | {"epoch": 0, "batch": 1})
    assert [ops.to_numpy(batch).tolist() for batch in loader] == [[2, 1], [0]]
    Backwards.order = lambda self, generator, batch_size: [1, 2]
    with pytest.raises(ValueError, match="7 samples in an epoch"):
        _batches(Backwards(), 3, 7)


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.WeightedSampler([1.0] * 3),
        samplers.StratifiedSampler([0, 1, 0]),
        samplers.LengthSampler([1, 2, 3]),
        samplers.BlockSampler([1, 2]),
    ],
)
def test_samplers_of_other_data(sampler: Any) -> None:
    for settings in ({}, {"collate": collation.stack}):
        for data in ([1.0] * 4, ops.ones(2), (ops.ones((5, 2)), ops.ones(5))):
            with pytest.raises(ValueError, match="made for 3 samples, and the data have"):
                DataLoader(data, 2, sampler=sampler, **settings)
        assert len(DataLoader(ops.ones(3), 2, sampler=sampler, **settings)) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: samplers.WeightedSampler([1.0, -1.0]), "at least 0"),
        (lambda: samplers.WeightedSampler([0.0, 0.0]), "not all of them 0"),
        (lambda: samplers.WeightedSampler([[1.0]]), "one number for each sample"),
        (lambda: samplers.WeightedSampler([1.0, 0.0], count=2, replace=False), "cannot be drawn of 1 without repeats"),
        (lambda: samplers.LengthSampler([]), "one number for each sample"),
        (lambda: samplers.LengthSampler([1], window=0), "number of batches"),
        (lambda: samplers.BlockSampler([0]), "numbers of samples of blocks"),
        (lambda: samplers.BlockSampler([1], window=0), "number of blocks"),
        (lambda: collation.Pad(multiple_of=0), "at least 1"),
    ],
)
def test_mistakes_are_told(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_padding(backend: str) -> None:
    samples = [{"ids": [5, 6, 7], "mask": [True] * 3, "y": 1}, {"ids": [8], "mask": [True], "y": 0}]
    pad = collation.Pad({"ids": -100}, multiple_of=4)
    (batch,) = DataLoader(samples, collate=pad)
    assert {key: ops.to_numpy(value).tolist() for key, value in batch.items()} == {
        "ids": [[5, 6, 7, -100], [8, -100, -100, -100]],
        "mask": [[True, True, True, False], [True, False, False, False]],
        "y": [1, 0],
    }
    assert str(ops.dtype(batch["ids"])) == "int64"
    rows = [ops.ones((2, 3)), ops.ones((1, 3))]
    (padded,) = DataLoader(rows, collate=collation.Pad(0.5))
    assert ops.to_numpy(padded).tolist() == [[[1.0] * 3] * 2, [[1.0] * 3, [0.5] * 3]]
    for value, dtype in ((300, "uint8"), (-1, "uint8"), (0.5, "int32"), (float("nan"), "int64"), (-100, "bool")):
        rows = [{"x": ops.zeros(size, dtype=dtype)} for size in (1, 2)]
        with pytest.raises(ValueError, match=f"is no number of {dtype}") as caught:
            collation.Pad(value)(rows)
        assert "at 'x'" in caught.value.__notes__[0]
        assert collation.Pad(1)(rows)["x"].tolist() == [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match="others must agree"):
        collation.Pad()([ops.ones((2, 3)), ops.ones((2, 2))])

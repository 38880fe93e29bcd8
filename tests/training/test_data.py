"""Data loaders: order, positions, shards, iterables, tables, threads, and errors."""

from __future__ import annotations

import json
import math
import threading
import time
import traceback
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.training import DataLoader
from tests.reference import as_array


class Pair(NamedTuple):
    x: Any
    y: Any


def _lists(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {key: _lists(value) for key, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(map(_lists, batch))
    assert ember_ml.get_backend_module().is_native(batch)
    return ops.to_numpy(batch).tolist()


def _epoch(loader: DataLoader) -> list[Any]:
    return [_lists(batch) for batch in loader]


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ember-ml prefetch"]


@pytest.fixture(params=[0, 2])
def prefetch(request: pytest.FixtureRequest) -> Iterator[int]:
    yield request.param
    until = time.monotonic() + 5
    while _threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert not _threads()


def test_batches_have_the_structure_of_the_data(backend: str, prefetch: int) -> None:
    x, y = as_array([[1.5], [2.5], [3.5]], "float64"), [0, 1, 2]
    for data, expected in (
        (x, [[[1.5], [2.5]], [[3.5]]]),
        (y, [[0, 1], [2]]),
        ((x, y), [([[1.5], [2.5]], [0, 1]), ([[3.5]], [2])]),
        ({"x": x, "more": (y, y)}, [{"x": [[1.5], [2.5]], "more": ([0, 1],) * 2}, {"x": [[3.5]], "more": ([2],) * 2}]),
        (nn.tensor.EmberTensor(y), [[0, 1], [2]]),
    ):
        loader = DataLoader(data, batch_size=2, prefetch=prefetch)
        assert len(loader) == 2
        assert _epoch(loader) == expected
    (pair, _) = DataLoader(Pair(x, y), batch_size=2, prefetch=prefetch)
    assert type(pair) is Pair
    assert str(ops.dtype(pair.x)) == "float64"
    assert str(ops.dtype(pair.y)) == "int64"


def test_the_last_batch(backend: str) -> None:
    assert _epoch(DataLoader(ops.arange(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    loader = DataLoader(ops.arange(5), batch_size=2, drop_last=True)
    assert _epoch(loader) == [[0, 1], [2, 3]]
    assert len(loader) == 2
    assert [len(batch) for batch in _epoch(DataLoader(ops.arange(70)))] == [32, 32, 6]


def _shuffled(count: int = 23, **settings: Any) -> DataLoader:
    return DataLoader(ops.arange(count), batch_size=5, shuffle=True, **settings)


def test_the_order_depends_on_seed_and_epoch_alone(backend: str, prefetch: int) -> None:
    loader = _shuffled(seed=3, prefetch=prefetch)
    first, second = _epoch(loader), _epoch(loader)
    assert first != second
    for epoch in (first, second):
        assert sorted(row for batch in epoch for row in batch) == list(range(23))
    ops.random.seed(7)
    before = ops.random.default_generator().state()
    assert _epoch(_shuffled(seed=3)) == first
    assert ops.random.default_generator().state() == before
    assert _epoch(_shuffled(seed=4)) != first
    with ember_ml.use_backend("numpy"):
        assert _epoch(_shuffled(seed=3, prefetch=prefetch)) == first


@given(
    count=st.integers(1, 40),
    size=st.integers(1, 12),
    seed=st.integers(0, 2**64 - 1),
    stop=st.integers(0, 12),
    ranks=st.lists(st.integers(1, 5), min_size=2, max_size=2),
)
def test_resuming_on_any_number_of_ranks(count: int, size: int, seed: int, stop: int, ranks: list[int]) -> None:
    def run(loaders: list[DataLoader], batches: int) -> list[list[int]]:
        found = []
        while len(found) < batches:
            for parts in zip(*loaders, strict=True):
                found.append([row for part in parts for row in _lists(part)])
                if len(found) == batches:
                    break
        return found

    def shards(number: int) -> list[DataLoader]:
        whole = DataLoader(ops.arange(count), batch_size=size, shuffle=True, seed=seed)
        return [whole.shard(rank, number) for rank in range(number)]

    expected = run([DataLoader(ops.arange(count), batch_size=size, shuffle=True, seed=seed)], stop + 9)
    before = shards(ranks[0])
    first = run(before, stop)
    states = [json.loads(json.dumps(loader.state())) for loader in before]
    assert all(state == states[0] for state in states)
    after = shards(ranks[1])
    for loader in after:
        loader.restore(states[0])
    assert first + run(after, 9) == expected


def test_an_early_end_starts_the_epoch_again(backend: str, prefetch: int) -> None:
    loader = _shuffled(prefetch=prefetch)
    first = next(iter(loader))
    assert _lists(first) == _lists(next(iter(loader)))
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state()
    batches.close()  # type: ignore[attr-defined]
    whole = _epoch(loader)
    assert loader.state()["epoch"] == 1
    loader.restore(state)
    assert _epoch(loader) == whole[2:]
    assert loader.state() == {"seed": 0, "epoch": 1, "batch": 0, "batch_size": 5, "rows": 23}


def test_the_state_counts_what_was_given_not_what_was_made(backend: str) -> None:
    loader = _shuffled(prefetch=3)
    for number, _ in enumerate(loader, 1):
        time.sleep(0.01)
        expected = {"epoch": 0, "batch": number} if number < 5 else {"epoch": 1, "batch": 0}
        assert expected.items() <= loader.state().items()


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"seed": 0, "epoch": 0, "batch": "1", "batch_size": 5, "rows": 23},
        {"seed": 0, "epoch": 0, "batch": 1, "batch_size": 4, "rows": 23},
        {"seed": 0, "epoch": 0, "batch": 1, "batch_size": 5, "rows": 24},
        {"seed": 0, "epoch": -1, "batch": 0, "batch_size": 5, "rows": 23},
        {"seed": 0, "epoch": 0, "batch": 5, "batch_size": 5, "rows": 23},
        {"seed": -1, "epoch": 0, "batch": 0, "batch_size": 5, "rows": 23},
        None,
    ],
)
def test_states_that_cannot_be_restored(state: Any) -> None:
    loader = _shuffled()
    with pytest.raises(ValueError, match=r"state|seed|no batch"):
        loader.restore(state)
    assert loader.state()["batch"] == 0


def test_another_batch_size_between_epochs() -> None:
    loader = DataLoader(ops.arange(23), batch_size=7, shuffle=True)
    loader.restore({"seed": 9, "epoch": 2, "batch": 0, "batch_size": 5, "rows": 20})
    assert [len(batch) for batch in _epoch(loader)] == [7, 7, 7, 2]
    assert loader.state()["seed"] == 9


@pytest.mark.skipif(len(installed_backends()) < 2, reason="needs a second backend")
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_switch_within_an_epoch(shuffle: bool, prefetch: int) -> None:
    names = installed_backends()
    before = ember_ml.get_backend()
    try:
        for owner in names:
            ember_ml.set_backend(owner)
            loader = DataLoader((ops.arange(12), [0.5] * 12), batch_size=4, shuffle=shuffle, prefetch=prefetch)
            expected = _epoch(loader)
            loader.restore({**loader.state(), "epoch": 0, "batch": 0})
            found = []
            for number, batch in enumerate(loader):
                found.append(_lists(batch))
                ember_ml.set_backend(names[(number + 1) % len(names)])
            assert found == expected
    finally:
        ember_ml.set_backend(before)


@pytest.mark.parametrize("shuffle", [False, True])
def test_tensors_on_a_device_stay_there(
    shuffle: bool, backend: str, prefetch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"batch_size": 4, "shuffle": shuffle, "prefetch": prefetch}
    x = ops.reshape(ops.arange(20, dtype="float32"), (10, 2))
    expected = _epoch(DataLoader((x, ops.arange(10)), **settings))
    with monkeypatch.context() as patch:
        patch.setattr(ember_ml.get_backend_module(), "device_of", lambda x: "elsewhere")
        loader = DataLoader((x, ops.arange(10)), **settings)
    monkeypatch.setattr("ember_ml.training.sources.as_host", lambda *_: pytest.fail("the tensor left its device"))
    assert _epoch(loader) == expected
    monkeypatch.undo()
    with ember_ml.use_backend("numpy"):
        loader.restore({**loader.state(), "epoch": 0})
        assert _epoch(loader) == expected


# iterables


def test_iterables_of_batches(backend: str, prefetch: int) -> None:
    batches = [([[1.0], [2.0]], [0, 1]), ([[3.0]], [1])]
    loader = DataLoader(iter_of(batches), prefetch=prefetch)
    for _ in range(2):
        assert _epoch(loader) == batches
    with pytest.raises(TypeError, match="does not tell how many"):
        len(loader)
    sized = DataLoader({"a": 1}.values(), prefetch=prefetch)
    assert len(sized) == 1
    listed = DataLoader(lambda: iter([[ops.arange(2), {"m": ops.ones(2)}]]), prefetch=prefetch)
    assert _epoch(listed) == [([0, 1], {"m": [1.0, 1.0]})]


def iter_of(items: list[Any]) -> Any:
    class Endless:
        def __iter__(self) -> Iterator[Any]:
            return iter(items)

    return Endless()


def test_iterables_of_samples(backend: str, prefetch: int) -> None:
    samples = [(float(i), {"label": i}) for i in range(5)]
    loader = DataLoader(iter_of(samples), batch_size=2, prefetch=prefetch)
    expected = [([0.0, 1.0], {"label": [0, 1]}), ([2.0, 3.0], {"label": [2, 3]}), ([4.0], {"label": [4]})]
    assert _epoch(loader) == expected
    assert _epoch(DataLoader(iter_of(samples), 2, drop_last=True, prefetch=prefetch)) == expected[:2]
    ranges = DataLoader(range(5), batch_size=2)
    assert len(ranges) == 3
    assert _epoch(ranges) == [[0, 1], [2, 3], [4]]
    pairs = DataLoader(iter_of([Pair(ops.ones(2), 1), Pair(ops.zeros(2), 2)]), batch_size=2, prefetch=prefetch)
    (pair,) = pairs
    assert type(pair) is Pair
    assert _lists(pair) == ([[1.0, 1.0], [0.0, 0.0]], [1, 2])


def test_lazy_tensors_of_either_thread(backend: str, prefetch: int) -> None:
    made_before = [ops.multiply(ops.ones(2), i) for i in range(3)]
    loader = DataLoader(iter_of(made_before), batch_size=3, prefetch=prefetch)
    assert _epoch(loader) == [[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]]
    assert _epoch(DataLoader(iter_of(made_before), prefetch=prefetch)) == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]

    def made_there() -> Iterator[Any]:
        return (ops.multiply(ops.ones(2), i) for i in range(3))

    assert _epoch(DataLoader(made_there, prefetch=prefetch)) == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert _epoch(DataLoader(made_there, batch_size=3, prefetch=prefetch)) == _epoch(loader)


def test_positions_and_shards_of_iterables(backend: str, prefetch: int) -> None:
    for loader in (
        DataLoader(iter_of([[0, 1, 2, 3], [4, 5, 6], [7]]), prefetch=prefetch),
        DataLoader(iter_of([0, 1, 2, 3, 4, 5, 6, 7]), batch_size=3, prefetch=prefetch),
    ):
        whole = _epoch(loader)
        shards = [loader.shard(rank, 2) for rank in range(2)]
        for number, parts in enumerate(zip(*shards, strict=True)):
            assert [row for part in parts for row in _lists(part)] == whole[number]
            if number == 0:
                state = shards[0].state()
        assert state["batch"] == 1
        loader.restore(state)
        assert _epoch(loader) == whole[1:]
        assert loader.state()["epoch"] == 2


def test_texts_and_none_of_iterables_stay_as_they_are(backend: str, prefetch: int) -> None:
    """As they do in batches of datasets, by the batch and by the sample, whole and for each rank."""
    samples = [{"x": [float(i)], "text": "abcd"[i], "mask": None} for i in range(4)]
    batches = [{"x": as_array([[0.0], [1.0], [2.0], [3.0]], "float32"), "text": [*"abcd"], "mask": [None] * 4}]
    for loader in (DataLoader(samples.copy, 4, prefetch=prefetch), DataLoader(batches.copy, prefetch=prefetch)):
        (whole,) = loader
        assert ops.to_numpy(whole["x"]).tolist() == [[0.0], [1.0], [2.0], [3.0]]
        assert (whole["text"], whole["mask"]) == ([*"abcd"], [None] * 4)
        (part,) = loader.shard(1, 2)
        assert ops.to_numpy(part["x"]).tolist() == [[2.0], [3.0]]
        assert (part["text"], part["mask"]) == ([*"cd"], [None] * 2)
    ((x, nothing, name),) = DataLoader([(ops.ones((2, 1)), None, "a")].copy, prefetch=prefetch)
    assert (ops.shape(x), nothing, name) == ((2, 1), None, "a")


def test_a_generator_serves_once(backend: str, prefetch: int) -> None:
    loader = DataLoader((ops.array([i]) for i in range(3)), prefetch=prefetch)
    assert _epoch(loader) == [[0], [1], [2]]
    with pytest.raises(ValueError, match="cannot start again"):
        _epoch(loader)
    again = DataLoader(lambda: (ops.array([i]) for i in range(3)), prefetch=prefetch)
    assert _epoch(again) == _epoch(again)


def test_an_exception_arrives_with_its_traceback(backend: str, prefetch: int) -> None:
    def broken() -> Iterator[Any]:
        yield ops.ones(1)
        raise FileNotFoundError("the third disk")

    found = []
    with pytest.raises(FileNotFoundError, match="the third disk") as caught:
        found.extend(DataLoader(broken, prefetch=prefetch))
    assert len(found) == 1
    assert "in broken" in "".join(traceback.format_exception(caught.value))


def test_leaving_early_closes_the_iterable(backend: str, prefetch: int) -> None:
    closed = []

    def items() -> Iterator[Any]:
        try:
            while True:
                yield [1.0]
        finally:
            closed.append(True)

    for _ in DataLoader(items, prefetch=prefetch):
        break
    assert closed == [True]


def test_prefetching_works_ahead(backend: str) -> None:
    made: list[int] = []

    def items() -> Iterator[Any]:
        for number in range(9):
            made.append(number)
            yield [number]

    batches = iter(DataLoader(items, prefetch=3))
    next(batches)
    until = time.monotonic() + 5
    while len(made) < 5 and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(0.05)
    assert len(made) == 5  # the one given, three on the shelf and one in hand
    assert [_lists(batch) for batch in batches] == [[number] for number in range(1, 9)]


# tables


def test_dataframes(backend: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "y": [True, False, True], "s": list("xyz")})
    loader = DataLoader((frame[["a", "b"]], frame["y"]), batch_size=2)
    assert _epoch(loader) == [([[1.0, 0.5], [2.0, 1.5]], [True, False]), ([[3.0, 2.5]], [True])]
    with pytest.raises(TypeError, match=r"data at \['x'\]: the column 's' is"):
        DataLoader({"x": frame})


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_dataframes(library: str, backend: str) -> None:
    module = pytest.importorskip(library)
    columns = {"a": [1.0, 2.0, 3.0], "b": [0.5, 1.5, 2.5]}
    frame = module.DataFrame(columns) if library == "polars" else module.table(columns)
    assert _epoch(DataLoader((frame, frame["a"]), batch_size=2)) == [
        ([[1.0, 0.5], [2.0, 1.5]], [1.0, 2.0]),
        ([[3.0, 2.5]], [3.0]),
    ]


# errors


@pytest.mark.parametrize(
    ("data", "settings", "error", "message"),
    [
        (([1, 2], {"y": [1, 2, 3]}), {}, ValueError, r"2 at \[0\], 3 at \[1\]\['y'\]"),
        ([], {}, ValueError, "no rows"),
        ((), {}, ValueError, "no data"),
        (([1], 2.0), {}, ValueError, r"\[1\]: a single number has no rows"),
        (([1], ["a"]), {}, TypeError, r"data at \[1\]"),
        (([[1], [1, 2]],), {}, ValueError, r"data at \[0\]"),
        ([1, 2], {"batch_size": 0}, ValueError, "batch_size is at least 1"),
        ([1, 2], {"batch_size": 2.5}, TypeError, "integer"),
        ([1, 2], {"batch_size": 3, "drop_last": True}, ValueError, "2 rows make no batch of 3"),
        ([1, 2], {"seed": -1}, ValueError, "seed"),
        ([1, 2], {"prefetch": -1}, ValueError, "prefetch"),
        (iter_of([]), {"shuffle": True}, ValueError, "only arrays and datasets"),
        (3, {}, TypeError, "not int"),
    ],
)
def test_mistakes_are_told_at_once(data: Any, settings: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DataLoader(data, **settings)


@pytest.mark.parametrize(
    ("data", "batch_size", "error", "message"),
    [
        (iter_of([]), None, ValueError, "gave no batch"),
        (iter_of([]), 3, ValueError, "gave no batch"),
        (lambda: 3, None, TypeError, "the function gave int"),
        (iter_of([(1, 2), 3]), 2, ValueError, "must be alike"),
        (iter_of([(1, 2), (3,)]), 2, ValueError, "same number of parts"),
        (iter_of([{"a": 1}, {"b": 1}]), 2, ValueError, "same keys"),
        (iter_of([[1, 2], [3]]), 2, ValueError, "equal lengths"),
        (iter_of(["text"]), None, TypeError, "text"),
    ],
)
def test_mistakes_of_iterables_are_told_at_the_batch(
    data: Any, batch_size: int | None, error: type[Exception], message: str, prefetch: int
) -> None:
    with pytest.raises(error, match=message):
        _epoch(DataLoader(data, batch_size, prefetch=prefetch))


def test_ranks_are_checked() -> None:
    for rank, ranks in ((2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match="rank is a number"):
            _shuffled().shard(rank, ranks)
    few = DataLoader(ops.arange(2), batch_size=2)
    assert [math.prod(ops.shape(next(iter(few.shard(rank, 3))))) for rank in range(3)] == [0, 1, 1]


def test_numbers_of_numpy_leave_a_plain_state(backend: str) -> None:
    two, seven = ops.to_numpy(ops.asarray([2, 7]))
    loader = DataLoader(ops.arange(6), batch_size=two, shuffle=True, seed=seven)
    state = json.loads(json.dumps(loader.state()))
    assert state == DataLoader(ops.arange(6), batch_size=2, shuffle=True, seed=7).state()

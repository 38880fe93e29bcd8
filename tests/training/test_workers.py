"""Samples and workers: the same batches from any number of processes, errors, deaths, and nothing left behind."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.errors import WorkerLost
from ember_ml.training import DataLoader, collation, samplers
from tests.training import worker_data as data


def _lists(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {key: _lists(value) for key, value in batch.items()}
    if isinstance(batch, tuple):
        return tuple(map(_lists, batch))
    if isinstance(batch, list):
        return batch
    assert ember_ml.get_backend_module().is_native(batch)
    return ops.to_numpy(batch).tolist()


def _epoch(loader: DataLoader) -> list[Any]:
    return [_lists(batch) for batch in loader]


def _workers() -> list[Any]:
    return [child for child in multiprocessing.active_children() if child.name.startswith("ember-ml worker")]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    gc.collect()
    assert not _workers()


def _expected(numbers: Any) -> dict[str, Any]:
    return {
        "x": [[float(i), float(i) ** 2] for i in numbers],
        "y": [*numbers],
        "name": [f"n{i}" for i in numbers],
    }


def test_datasets_with_indices(backend: str) -> None:
    loader = DataLoader(data.Letters(7), batch_size=3)
    assert len(loader) == 3
    assert _epoch(loader) == [_expected(range(3)), _expected(range(3, 6)), _expected(range(6, 7))]
    assert len(DataLoader(data.Letters(70))) == 3  # 32 by default, as of arrays
    shuffled = _epoch(DataLoader(data.Letters(7), batch_size=3, shuffle=True, seed=5, drop_last=True))
    order = ops.to_numpy(ops.random_permutation(7, seed=5)).tolist()
    assert shuffled == [_expected(order[:3]), _expected(order[3:6])]


def test_lists_of_samples_and_rows(backend: str) -> None:
    pairs = [([1.0, 2.0], "a"), ([3.0], "b"), ([], "c")]
    assert _epoch(DataLoader(pairs, batch_size=3, collate=collation.Pad(-1))) == [
        ([[1.0, 2.0], [3.0, -1.0], [-1.0, -1.0]], ["a", "b", "c"])
    ]
    x = ops.reshape(ops.arange(6), (3, 2))
    loader = DataLoader({"x": x, "y": ops.ones(3)}, batch_size=2, transform=lambda row: {**row, "x": row["x"] + 1})
    assert _epoch(loader) == [
        {"x": [[1, 2], [3, 4]], "y": [1.0, 1.0]},
        {"x": [[5, 6]], "y": [1.0]},
    ]


def test_any_number_of_workers_gives_the_same() -> None:
    def run(workers: int) -> Any:
        held = data.Held(ops.arange(23, dtype="float64"))
        loader = DataLoader(held, 5, shuffle=True, seed=3, transform=data.add_noise, workers=workers)
        found = [_epoch(loader), _epoch(loader)]
        loader.close()
        return found

    first, second = expected = run(0)
    assert first != second
    for workers in (1, 2, 4):
        assert run(workers) == expected


def test_workers_feed_every_backend(backend: str) -> None:
    with ember_ml.use_backend("numpy"):
        expected = _epoch(DataLoader(data.Drawing(), batch_size=5, shuffle=True, collate=collation.stack))
        states = ops.random.default_generator().state()
    for workers in (0, 2):
        loader = DataLoader(data.Drawing(), batch_size=5, shuffle=True, workers=workers, prefetch=workers)
        assert _epoch(loader) == expected
        loader.close()
    assert ops.random.default_generator().state() == states
    names = DataLoader([1.0], transform=data.report_backend)
    assert _epoch(names) == [([1.0], ["numpy"])]
    assert ember_ml.get_backend() == backend


def test_random_numbers_depend_on_seed_epoch_and_place(backend: str) -> None:
    def run(seed: int = 0, epochs: int = 1, batch_size: int = 4, **settings: Any) -> list[list[float]]:
        loader = DataLoader([0.0] * 8, batch_size, transform=data.add_noise, seed=seed, **settings)
        return [[x for batch in _epoch(loader) for x in batch] for _ in range(epochs)]

    first, second = run(epochs=2)
    assert len({*first, *second}) == 16
    assert run(batch_size=3) == [first]  # the place counts, not the batch
    assert run(seed=1)[0] != first
    parts = [_epoch(DataLoader([0.0] * 8, 4, transform=data.add_noise).shard(rank, 2)) for rank in range(2)]
    assert [x for batch in zip(*parts, strict=True) for part in batch for x in part] == first
    drawn_together = _epoch(DataLoader([0.0] * 8, 4, collate=data.add_noise_to_batch))
    assert [len({*batch}) for batch in drawn_together] == [1, 1]
    assert drawn_together[0] != drawn_together[1]


def test_iterables_of_samples(backend: str) -> None:
    def items() -> Iterator[Any]:
        return iter([ops.array([float(i)]) for i in range(9)])

    expected = _epoch(DataLoader(items, batch_size=4, transform=data.add_noise))
    assert [len(batch) for batch in expected] == [4, 4, 1]
    loader = DataLoader(items, batch_size=4, transform=data.add_noise, workers=2)
    assert _epoch(loader) == expected
    loader.close()
    for ranks in (2, 3):
        parts = [
            _epoch(DataLoader(items, batch_size=4, transform=data.add_noise).shard(rank, ranks))
            for rank in range(ranks)
        ]
        assert [[row for part in batch for row in part] for batch in zip(*parts, strict=True)] == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_going_on_in_the_middle_of_an_epoch(workers: int) -> None:
    def make(workers: int = 0) -> DataLoader:
        held = data.Held(ops.arange(40.0))
        return DataLoader(held, 3, shuffle=True, transform=data.add_noise, workers=workers, seed=2)

    expected = _epoch(make())
    loader = make(workers)
    for number, _ in enumerate(loader):
        if number == 4:
            break
    again = make()
    again.restore(loader.state())
    assert _epoch(again) == expected[5:]
    assert _epoch(loader) == expected  # a loop that ended early begins again, with batches of before under way
    parts = [make().shard(rank, 2) for rank in range(2)]
    for part in parts:
        part.restore(loader.state() | {"epoch": 0, "batch": 5})
    found = [[x for part in batch for x in _lists(part)] for batch in zip(*parts, strict=True)]
    assert found == expected[5:]


def test_workers_stay_and_are_shared_by_no_two_loops() -> None:
    loader = DataLoader([1.0] * 6, batch_size=1, transform=data.report_process, workers=2)
    first, second = ([process for _, (process,) in _epoch(loader)] for _ in range(2))
    assert first == second == [*first[:2]] * 3
    assert os.getpid() not in first
    crossed = [(_lists(a)[0], _lists(b)[0]) for a, b in zip(loader, loader, strict=True)]
    assert crossed == [([1.0], [1.0])] * 6
    assert len(_workers()) == 2
    loader.close()
    assert not _workers()
    assert len(_epoch(loader)) == 6
    del loader
    gc.collect()
    assert not _workers()


def test_arrays_of_a_dataset_are_one_copy_that_nobody_changes() -> None:
    x = ops.to_numpy(ops.zeros((6, 1)))
    loader = DataLoader(data.Held(x), batch_size=1, transform=data.write_into, workers=2)
    assert _epoch(loader) == [[[1.0]]] * 6
    assert x.tolist() == [[0.0]] * 6
    assert _epoch(loader) == [[[2.0]]] * 6  # each worker has changed its own copy
    loader.close()


def test_batches_of_growing_size() -> None:
    loader = DataLoader([[1.0] * n for n in (1, 9, 70_000, 5, 200_000, 3)], 1, collate=collation.Pad(), workers=1)
    for _ in range(2):
        assert [len(batch[0]) for batch in _epoch(loader)] == [1, 9, 70_000, 5, 200_000, 3]
    loader.close()


@pytest.mark.parametrize("workers", [0, 1])
def test_datasets_with_a_shape_and_lists_of_texts(backend: str, workers: int) -> None:
    loader = DataLoader(data.Table(), batch_size=3, workers=workers)
    assert _epoch(loader) == [
        {"ids": [[0, 0], [1, 1], [2, 2]], "words": [[], ["w"], ["w", "w"]]},
        {"ids": [[3, 3], [4, 4]], "words": [["w"] * 3, ["w"] * 4]},
    ]
    loader.close()
    padded = DataLoader(data.Table(), batch_size=5, collate=collation.Pad())
    assert _epoch(padded)[0]["words"] == [["w"] * n for n in range(5)]


@pytest.mark.parametrize("workers", [0, 1])
def test_texts_of_numpy(backend: str, workers: int) -> None:
    with ember_ml.use_backend("numpy"):
        letters = type(ops.to_numpy(ops.zeros(0)))((2,), "<U1")
    letters[:] = ["a", "b"]
    samples = [{"text": text, "alone": (text, 1)} for text in letters]
    loader = DataLoader(data.Held(samples), batch_size=2, workers=workers)
    (batch,) = _epoch(loader)
    assert batch == {"text": ["a", "b"], "alone": (["a", "b"], [1, 1])}
    loader.close()


def test_some_samples_without_a_value() -> None:
    for values in ([None, 1, 2], [1, None, 2], [[1], None, [2]], [None, [1], [2]]):
        for collate in (collation.stack, collation.Pad()):
            with pytest.raises(TypeError, match="some samples of the batch have a text or None at 'x'"):
                _epoch(DataLoader([{"x": value} for value in values], collate=collate))
    assert _epoch(DataLoader([None, "a"], collate=collation.stack)) == [[None, "a"]]


def test_copies_of_a_loader_have_workers_of_their_own() -> None:
    loader = DataLoader([1.0, 2.0], batch_size=1, transform=data.report_process, workers=1)
    processes = {process for _, (process,) in _epoch(loader)}
    for again in (copy.copy(loader), copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
        assert [x for x, _ in _epoch(again)] == [[1.0], [2.0]]
        processes |= {process for _, (process,) in _epoch(again)}
        again.close()
    assert len(processes) == 4
    loader.close()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_closing_a_loader_within_a_loop(prefetch: int) -> None:
    loader = DataLoader([*range(20)], batch_size=1, transform=data.double, workers=2, prefetch=prefetch)
    batches = iter(loader)
    next(batches)
    loader.close()
    assert not _workers()
    with pytest.raises(RuntimeError, match="the loader was closed"):
        list(batches)
    assert len(_epoch(loader)) == 20
    loader.close()


def test_workers_end_with_their_loader_without_a_collection() -> None:
    gc.collect()
    gc.disable()
    try:
        for prefetch in (0, 2):
            loader = DataLoader([*range(3)], batch_size=1, transform=data.double, workers=1, prefetch=prefetch)
            assert len(_epoch(loader)) == 3
            del loader
            assert not _workers()
            loader = DataLoader(data.give_and_fail, 1, transform=data.double, workers=1, prefetch=prefetch)
            with pytest.raises(ValueError, match="no more"):
                _epoch(loader)
            del loader
            assert not _workers()
    finally:
        gc.enable()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_forks_of_a_program_do_not_share_its_workers(tmp_path: Path) -> None:
    script = tmp_path / "forking.py"
    script.write_text(
        "import os\n"
        "from ember_ml import ops\n"
        "from ember_ml.training import DataLoader\n"
        "from tests.training.worker_data import double\n"
        'if __name__ == "__main__":\n'
        "    loader = DataLoader([*range(40)], batch_size=1, transform=double, workers=1)\n"
        "    expected = [2 * n for n in range(40)]\n"
        "    begun = iter(loader)\n"
        "    next(begun)\n"
        "    list(loader)\n"
        "    process = os.fork()\n"
        "    found = [int(ops.item(batch[0])) for batch in loader]\n"
        "    assert found == expected, found\n"
        "    if not process:\n"
        "        try:\n"
        "            next(begun)\n"
        "        except RuntimeError as error:\n"
        "            os._exit(7 if 'forked' in str(error) else 1)\n"
        "        os._exit(2)\n"
        "    _, status = os.waitpid(process, 0)\n"
        "    assert len(list(begun)) == 39\n"
        "    loader.close()\n"
        "    print('status', os.waitstatus_to_exitcode(status))\n"
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root}:{root / 'src'}", "EMBER_ML_BACKEND": "numpy"}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, check=False, timeout=100
    )
    assert done.stdout == "status 7\n", done.stderr


# what goes wrong


@pytest.mark.parametrize("workers", [0, 2])
def test_an_exception_of_a_worker_arrives_with_its_traceback(workers: int) -> None:
    loader = DataLoader([*range(20)], batch_size=2, transform=data.refuse_seven, workers=workers)
    found = []
    with pytest.raises(FileNotFoundError, match=r"no such picture.*seven\.png") as caught:
        found.extend(_lists(batch) for batch in loader)
    assert found == [[0, 1], [2, 3], [4, 5]]
    text = "".join(traceback.format_exception(caught.value))
    assert "in refuse_seven" in text
    assert not workers or ("in worker 1 (process" in text and "at batch 3" in text)
    assert [_lists(batch) for _, batch in zip(range(3), loader, strict=False)] == found  # the workers are still there
    loader.close()


def test_exceptions_and_batches_that_cannot_be_pickled() -> None:
    loader = DataLoader([*range(20)], batch_size=2, transform=data.refuse_oddly, workers=1)
    with pytest.raises(RuntimeError, match="WrongNumber: 7 is wrong: it is odd") as caught:
        _epoch(loader)
    assert "in refuse_oddly" in caught.value.__notes__[0]
    loader.close()
    with pytest.raises(TypeError, match="at the top level of a file"):
        _epoch(DataLoader([1, 2], transform=lambda sample: sample, workers=1))
    with pytest.raises(TypeError, match="generator"):
        _epoch(DataLoader([1, 2], collate=data.give_generators, workers=1))
    for transform, message in (
        (data.refuse_with_an_odd_error, "OddError: odd"),
        (data.refuse_with_an_error_of_the_worker, "Lost: it is lost"),
    ):
        with pytest.raises(RuntimeError, match=message) as caught:
            _epoch(DataLoader([1, 2], transform=transform, workers=1))
        assert transform.__name__ in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("transform", "how"), [(data.die_at_seven, "was killed by SIGKILL"), (data.exit_at_seven, "ended with exit code 3")]
)
def test_a_worker_that_dies_is_named_with_its_batch(transform: Any, how: str) -> None:
    loader = DataLoader([*range(20)], batch_size=2, transform=transform, workers=2)
    found = []
    with pytest.raises(WorkerLost, match=rf"worker 1 \(process \d+\) {how}, and batch 3 is not made"):
        found.extend(_lists(batch) for batch in loader)
    assert found == [[0, 1], [2, 3], [4, 5]]
    assert not _workers()
    assert loader.state()["batch"] == 3


def test_a_worker_that_is_killed_from_outside() -> None:
    loader = DataLoader([*range(60)], batch_size=1, transform=data.double, workers=2)
    batches = iter(loader)
    for _ in range(9):
        next(batches)
    (victim,) = (worker.pid for worker in _workers() if worker.name.endswith(" 0"))
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(WorkerLost, match=rf"worker 0 \(process {victim}\) was killed by SIGKILL, and batch 1\d is"):
        list(batches)
    assert _epoch(loader)[10:12] == [[20], [22]]  # new workers
    loader.close()


def test_workers_end_with_a_program_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(
        "import multiprocessing, time\n"
        "from ember_ml.training import DataLoader\n"
        "from tests.training.worker_data import double\n"
        'if __name__ == "__main__":\n'
        "    for batch in DataLoader([*range(100)], batch_size=1, transform=double, workers=2):\n"
        "        print(*(child.pid for child in multiprocessing.active_children()), flush=True)\n"
        "        time.sleep(60)\n"
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root}:{root / 'src'}", "EMBER_ML_BACKEND": "numpy"}
    program = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment)
    assert program.stdout is not None
    with program:
        workers = [int(word) for word in program.stdout.readline().split()]
        assert len(workers) == 2
        program.kill()
    until = time.monotonic() + 20
    while any(map(_is_running, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(_is_running, workers))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_script_without_a_guard_is_told_about_it(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        "from ember_ml.training import DataLoader\n"
        "from tests.training.worker_data import double\n"
        "list(DataLoader([1, 2], transform=double, workers=1))\n"
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root}:{root / 'src'}", "EMBER_ML_BACKEND": "numpy"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert 'below `if __name__ == "__main__":`' in done.stderr


@pytest.mark.parametrize(
    ("items", "settings", "error", "message"),
    [
        ([1, 2], {"workers": -1}, ValueError, "workers is a number of processes"),
        ([1, 2], {"sampler": samplers.LengthSampler([1, 1]), "shuffle": True}, ValueError, "give one of them"),
        (iter([]), {"workers": 1}, ValueError, "give the batch_size"),
        (iter([]), {"sampler": samplers.LengthSampler([1, 1])}, ValueError, "for data with indices"),
        (data.Letters(0), {}, ValueError, "no rows"),
        ([], {"workers": 1}, ValueError, "no rows"),
    ],
)
def test_mistakes_are_told_at_once(items: Any, settings: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DataLoader(items, **settings)


def test_samples_that_do_not_fit_together() -> None:
    with pytest.raises(ValueError, match="equal lengths") as caught:
        _epoch(DataLoader(data.Held([{"ids": [1, 2]}, {"ids": [3]}]), batch_size=2))
    assert "at 'ids'; give the loader collate=collation.Pad()" in caught.value.__notes__[0]
    with pytest.raises(IndexError):
        _epoch(DataLoader([1, 2], sampler=data.Backwards(3), collate=collation.stack))


# nothing is left behind


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd"))


def _run_once(number: int) -> None:
    """Use workers in one of the ways in which a loop ends."""
    transform = (data.double, data.double, data.refuse_seven, data.die_at_seven)[number % 4]
    loader = DataLoader([*range(12)], batch_size=1, transform=transform, workers=1 + number % 2)
    try:
        for count, _ in enumerate(loader):
            if number % 4 == 1 and count == 2:
                break
    except (FileNotFoundError, WorkerLost):
        pass
    if number % 3:
        loader.close()


def _leaves_nothing(runs: int) -> None:
    _run_once(0)  # Python itself keeps a tracker of shared resources
    gc.collect()
    before = _descriptors()
    for number in range(runs):
        _run_once(number)
    gc.collect()
    assert not _workers()
    assert _descriptors() == before


def test_no_process_and_no_descriptor_is_left() -> None:
    _leaves_nothing(4)


@pytest.mark.long
def test_nothing_is_left_after_200_runs() -> None:
    _leaves_nothing(200)

"""Two processes in situations in which samples, noise or a checkpoint were lost in silence."""

from __future__ import annotations

import re
from functools import cache
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ember_ml import ops
from ember_ml.backend.random.generator import Generator
from ember_ml.distributed.strategy import DataParallelStrategy
from tests.distributed.jobs import SHARDING
from tests.distributed.ranks import run_ranks


@cache
def results(backend: str) -> list[Any]:
    with TemporaryDirectory() as folder:
        return run_ranks("trusted", backend, 2, module="tests.distributed.trust_jobs", folder=folder)


def test_a_strategy_distributes_in_its_own_way(backend: str) -> None:
    zero, one = (rank["own"] for rank in results(backend))
    assert zero == [[[0.0], [2.0]], [[4.0], [6.0]]]
    assert one == [[[1.0], [3.0]], [[5.0], [7.0]]]


def test_ranks_that_shuffle_apart_are_told(backend: str) -> None:
    for rank in results(backend):
        apart, ahead, same, same_ahead = rank["shuffled"]
        for kind, words in (apart, ahead):
            assert kind == "ValueError"
            assert "iterate over different batches" in words
        assert same[0] == same_ahead[0] == "nothing"


def test_each_rank_drops_other_elements(backend: str) -> None:
    (zero, drawn), (one, drawn_there) = (rank["masks"] for rank in results(backend))
    assert zero != one
    assert 10 < sum(zero) < 54
    assert drawn == drawn_there  # what the program draws outside of steps stays common


def test_a_run_with_noise_goes_on_from_a_checkpoint(backend: str) -> None:
    for rank in results(backend):
        whole, again = rank["resumed"]
        assert again == pytest.approx(whole, rel=1e-6)


def test_another_number_of_ranks_begins_streams_of_its_own(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("world_size", 2), ("num_parts", 2), ("part", 1)):  # as the second of two processes has them
        monkeypatch.setattr(DataParallelStrategy, name, value)
    states = [Generator(seed).state() for seed in (5, 6, 7)]

    def draw(saved: list[Any]) -> list[float]:
        ops.random.seed(0)
        strategy = DataParallelStrategy()
        strategy.restore_streams(saved)
        with strategy.random_stream():
            return ops.to_numpy(ops.random_uniform((3,))).tolist()

    assert draw(states) == draw([])  # from the program's stream, which a checkpoint has too
    assert draw(states[:2]) not in (draw([]), draw([states[1], states[0]]))


def test_ranks_that_find_different_checkpoints_are_told(backend: str) -> None:
    for number, rank in enumerate(results(backend)):
        missing, resumed, steps, different = rank["folders"]
        assert missing[0] == resumed[0] == different[0] == "CheckpointError"
        assert "rank 0 finds step 2; rank 1 finds " in missing[1]
        assert "holds no checkpoint" in missing[1]
        assert "rank 0 finds step 2; rank 1 finds step 4" in different[1]
        assert steps == (None if number else 2)  # the good one is still there


def test_a_save_that_fails_fails_on_every_rank(backend: str) -> None:
    for rank in results(backend):
        (kind, words), steps = rank["failed"]
        assert kind in ("OSError", "NotADirectoryError", "FileExistsError")
        assert "the checkpoint" in words
        assert steps == 4


def test_a_save_that_fails_beside_the_steps_ends_all_ranks_after_the_same_step(backend: str) -> None:
    found = [rank["failed beside"] for rank in results(backend)]
    for (kind, words), steps, after, saved in found:
        assert kind == "OSError"
        assert "no space left" in words
        assert 3 <= steps < 3000  # long before the next save
        assert after == saved == steps + 2
    assert len({steps for _, steps, _, _ in found}) == 1


def test_checkpoints_beside_the_steps_of_ranks(backend: str) -> None:
    for number, rank in enumerate(results(backend)):
        for found in rank["beside"]:
            waited, begun = found["contents"]
            assert begun == waited
            assert waited[0] == 2
            kind, words = found["error"]
            assert kind == "OSError"
            assert "no space left on the device" in words
            assert found["steps"] == [2, 5]
            assert not [name for name in found["files"] if name.startswith(".")], number


def test_a_log_has_each_line_once(backend: str) -> None:
    assert [rank["logged"] for rank in results(backend)] == [3, 3]


def test_an_evaluation_is_shared(backend: str) -> None:
    for rank in results(backend):
        (shared, validated, rows), (alone, validated_alone, all_rows) = rank["evaluated"]
        for found, wanted in zip(shared, alone, strict=True):
            assert found == pytest.approx(wanted, rel=1e-5)
        assert validated == pytest.approx(validated_alone, rel=1e-4)
        assert all_rows == 5 * 16
        assert rows < 0.6 * all_rows


def test_batches_of_an_evaluation_are_signs_of_life(backend: str) -> None:
    for few, many in (rank["moves"] for rank in results(backend)):
        assert few >= 4
        assert many >= few + 4


def test_different_calls_are_told_where_calls_are_compared(backend: str) -> None:
    variables = {"EMBER_ML_CHECK_COLLECTIVES": "1"}
    for rank in run_ranks("compared", backend, 2, variables=variables, module="tests.distributed.trust_jobs"):
        *failed, total = rank
        for (kind, words), parts in zip(
            failed,
            [
                ("float32(4,)", "int32(4,)"),
                ("(4,)", "(6,)"),
                ("sum)", "max)"),
                ("barrier()", "all_gather"),
                ("=0", "=1"),
                ("average(float32(2,), float32(2,)", "float32(2,))"),
                ("all_to_all(float32(2,))", "all_gather(float32(2,))"),
                ("make_group([[0, 1]])", "make_group([[1], [0]])"),
                ("sends float32(4,)", "expects float32(6,)"),
            ],
            strict=True,
        ):
            assert kind == "ValueError", words
            assert "the ranks make different calls: rank " in words
            assert all(part in words for part in parts)
            # a call of each rank stands in a line of its own
            told = r"rank (\d) (?:calls|sends|expects) [^;]* at trust_jobs\.py:(\d+) \((?:compared|<lambda>)\)"
            assert sorted(number for number, _ in re.findall(told, words)) == ["0", "1"], words
        assert total == [2.0, 1.0]


@pytest.mark.long
def test_steps_with_split_parameters_compile(backend: str) -> None:
    if backend not in SHARDING:
        pytest.skip("parameters are split on PyTorch and JAX")
    for eager, compiled in run_ranks("compiled", backend, 2, limit=240.0, module="tests.distributed.trust_jobs"):
        assert len(eager) == 4
        assert compiled == pytest.approx(eager, rel=1e-5)

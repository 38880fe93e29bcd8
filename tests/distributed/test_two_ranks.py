"""Two processes on every installed backend: each starts once, and its ranks' results are compared here."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ember_ml import ops
from tests.distributed.collective_jobs import REDUCED
from tests.distributed.comparing import check_equal, largest_difference
from tests.distributed.context_jobs import KINDS, gradients_alone
from tests.distributed.jobs import CLIPPED, GROUPED, SHARDING, STRATEGIES, fit, train
from tests.distributed.pipeline_jobs import alone
from tests.distributed.ranks import run_ranks
from tests.distributed.text_models import OTHERS, read_text

BASES = [[[1, 2], [3, 0], [7, 0], [0, 0]], [[2, 2], [3, 5], [7, 0], [1, 1]]]


@cache
def results(backend: str) -> list[Any]:
    with TemporaryDirectory() as folder:
        return run_ranks("everything", backend, 2, limit=300.0, folder=folder)  # JAX compiles for long


@pytest.fixture
def exchanged(backend: str) -> list[Any]:
    return [rank["exchange"] for rank in results(backend)]


def plus(x: Any, y: Any, how: Any = lambda a, b: a + b) -> Any:
    return [plus(a, b, how) for a, b in zip(x, y, strict=True)] if isinstance(x, list) else how(x, y)


def test_each_collective_on_each_dtype(exchanged: list[Any]) -> None:
    zero, one = BASES
    expected = {"sum": plus(zero, one), "max": plus(zero, one, max), "min": plus(zero, one, min)}
    expected |= {"gather": zero + one, "broadcast": one}
    for rank, found in enumerate(exchanged):
        expected["scatter"] = expected["sum"][2 * rank : 2 * rank + 2]
        for dtype, (name, values) in product(REDUCED, expected.items()):
            if dtype != "complex64":
                assert found[f"{name} {dtype}"] == values, (rank, dtype)
            elif name not in ("max", "min"):
                assert found[f"{name} {dtype}"] == [values, plus(values, values, lambda a, b: 0)]
        assert all(found[f"kept {dtype}"] for dtype in REDUCED)


def test_other_forms(exchanged: list[Any]) -> None:
    mean = plus(*BASES, lambda a, b: (a + b) / 2)
    for rank, found in enumerate(exchanged):
        assert (found["rank"], found["count"]) == (rank, 2)
        assert found["mean"] == mean
        assert found["any"] == plus(*BASES, lambda a, b: int(3 in (a, b)))
        assert found["0-d"] == [0.0, 1.0]
        assert found["strided"] == [list(column) for column in zip(*plus(*BASES), strict=True)]
        assert found["empty"] == [6, 0]
        assert found["long"]
        assert found["bits"] == [float("-inf"), float("inf")]
        assert found["portable"] == [True, 2.0]
        assert found["average"] == [mean, [0.5]]
        assert found["weighted"] == [[2.0, 2.0]]
        assert found["hidden"] == [[5.0]]
        assert found["begun"] == [mean, BASES[0] + BASES[1], [0], [0, 1], [2], mean, True]
    assert [found["received"] for found in exchanged] == [[8, 9], BASES[0]]


def test_mistakes_are_refused_before_anything_is_sent(exchanged: list[Any]) -> None:
    kinds = {
        "mean of integers": ("TypeError", "no mean of int64"),
        "sum of bools": ("TypeError", "no sum of bool"),
        "no such reduction": ("ValueError", "median"),
        "no such rank": ("ValueError", "no rank 2"),
        "to itself": ("ValueError", "itself"),
        "uneven": ("ValueError", "2 equal parts"),
        "too many": ("LaunchError", "asks for 3 processes and runs on 2"),
        "differentiated": ("LostGradient", "lose its gradient"),
        "begun": ("LostGradient", "lose its gradient"),
        "no collective": ("ValueError", "not average"),
    }
    for found in exchanged:
        for name, (kind, words) in kinds.items():
            assert found["errors"][name][0] == kind
            assert words in found["errors"][name][1]


def test_gradients_of_collectives(backend: str) -> None:
    """Of the sum over both ranks r of their results times 1 + 10 r, 2 + 10 r, ..., by hand."""
    zero, one = [rank["gradients"] for rank in results(backend)]
    for found in (zero, one):
        assert found["sum"] == [12.0, 14.0, 16.0, 18.0]
        assert found["mean"] == [6.0, 7.0, 8.0, 9.0]
        assert found["scatter"] == [0.5, 1.0, 5.5, 6.0]
        assert found["second"] == [72.0, 96.0, 72.0, 192.0]  # 24 times the sums 3, 4, 3, 8
        assert found["members"][0] == "ValueError"
        assert max(found["context"]) < 1e-5
    assert (zero["gather"], one["gather"]) == ([12.0, 14.0, 16.0, 18.0], [20.0, 22.0, 24.0, 26.0])
    assert (zero["to all"], one["to all"]) == ([1.0, 2.0, 11.0, 12.0], [3.0, 4.0, 13.0, 14.0])
    assert (zero["broadcast"], one["broadcast"]) == ([0.0, 0.0, 0.0, 0.0], [12.0, 14.0, 16.0, 18.0])
    assert (zero["alone"], one["alone"]) == ([1.0, 2.0, 3.0, 4.0], [11.0, 12.0, 13.0, 14.0])
    assert (zero["sent"], one["sent"]) == ([1.0, 2.0, 2.0, 2.0], [0.0, 4.0, 3.0, 4.0])


@pytest.fixture(params=STRATEGIES)
def trained(backend: str, request: pytest.FixtureRequest) -> list[Any]:
    if request.param == "FullShardStrategy" and backend not in SHARDING:
        pytest.skip("the strategy is for PyTorch and JAX; that it is refused elsewhere is tested below")
    return [rank[request.param] for rank in results(backend)]


def test_training_is_that_of_one_process(trained: list[Any]) -> None:
    alone = train("SingleProcess")
    assert alone["losses"][-1] < alone["losses"][0] / 4
    check_equal([rank["whole"] for rank in trained], alone)


def test_limits_of_gradients_are_those_of_one_process(trained: list[Any]) -> None:
    alone = train("SingleProcess", **CLIPPED)
    assert largest_difference(alone["losses"], train("SingleProcess", last=10)["losses"]) > 1e-3  # they do limit
    check_equal([rank["clipped"] for rank in trained], alone)


def test_groups_of_parameters_train_as_in_one_process(trained: list[Any]) -> None:
    alone = train("SingleProcess", last=10, **GROUPED)
    plain = train("SingleProcess", last=10, **(GROUPED | {"groups": ()}))
    assert largest_difference(alone["losses"], plain["losses"]) > 1e-3  # the groups change something
    check_equal([rank["grouped"] for rank in trained], alone | {"losses": alone["losses"][5:]})


def test_batches_that_do_not_split_evenly(trained: list[Any]) -> None:
    for name, rows in (("uneven", 7), ("tiny", 1)):  # of one row, one rank gets none
        if trained[0][name] is not None:
            check_equal([rank[name] for rank in trained], train("SingleProcess", rows=rows, last=10))


def test_going_on_from_a_saved_state(trained: list[Any]) -> None:
    alone = train("SingleProcess", last=10)
    for rank in trained:
        assert largest_difference(rank["half"]["losses"] + rank["resumed"]["losses"], alone["losses"]) < 2e-6
    check_equal([rank["resumed"] for rank in trained], alone | {"losses": alone["losses"][5:]})
    fewer = train("SingleProcess", first=5, last=10, start=trained[0]["half"])  # on another number of ranks
    check_equal([fewer], alone | {"losses": alone["losses"][5:]})


def test_two_processes_that_share_each_layer_are_one(backend: str) -> None:
    if backend == "jax":
        for rank in results(backend):
            assert "part of a compiled function" in rank["refused"]["tensor"][1]
        return
    alone = read_text("layers", None)
    ranks = [rank["layers"] for rank in results(backend)]
    check_equal(ranks, alone)
    assert all(rank["bytes"] < 0.53 * alone["bytes"] for rank in ranks)


@pytest.mark.parametrize("kind", ["layers", "gpt2"])
def test_two_processes_that_share_the_sequence_are_one(backend: str, kind: str) -> None:
    if backend == "jax":
        pytest.skip("its steps are compiled, which is refused")
    check_equal([rank["sequence"][kind] for rank in results(backend)], read_text(kind, None))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_two_processes_with_halves_of_the_texts_are_one(backend: str, kind: str) -> None:
    if backend == "jax":
        pytest.skip("its steps are not compiled then, which takes long: see test_context.py")
    ranks = [rank["context"][kind] for rank in results(backend)]
    alone = read_text(kind, None, 4 if kind == "layers" else 3, is_padded=KINDS[kind])
    check_equal(ranks, alone)
    for rank in ranks:
        assert rank["evaluated"] == pytest.approx(alone["evaluated"], abs=1e-6)
        assert largest_difference(rank["predicted"], alone["predicted"]) < 1e-5


def test_halves_of_texts_are_saved_computed_again_and_refused(backend: str) -> None:
    if backend == "jax":
        pytest.skip("as above")
    ranks = [rank["context"] for rank in results(backend)]
    check_equal([rank["reopened"] for rank in ranks], read_text("layers", None, 4), 5e-6)
    expected = gradients_alone()
    ops.seed(0)
    written = ops.to_numpy(OTHERS["places"]().generate([[7, 3, 9]], count=4, seed=0)).tolist()
    words = {
        "mask": r"the mask of an attention is .* and not of shape \(4, 4\)",
        "cache": "takes no cache",
        "pooling": "1 is of the class GlobalAvgPool",
        "target": "a target for each position",
        "length": "sequences of 7 positions do not split into 2",
    }
    for rank in ranks:
        for name, values in expected.items():
            assert largest_difference(rank["own"][name], values) < 1e-6, name
        assert rank["written"] == written
        assert rank["refused"].keys() == words.keys()
        for name, (kind, text) in rank["refused"].items():
            assert kind == "ValueError"
            assert re.search(words[name], text), text


def test_two_stages_of_a_pipeline_are_one_model(backend: str) -> None:
    expected, ranks = alone(), [rank["pipeline"] for rank in results(backend)]
    for rank, variables in zip(ranks, expected["stages"], strict=True):
        assert largest_difference(rank["losses"], expected["losses"]) < 1e-6
        assert rank["variables"].keys() == variables.keys()
        for name, values in variables.items():
            assert largest_difference(rank["variables"][name], values) < 2e-6, name
        assert rank["uneven"][0] == "ValueError"
    first, last = (rank["drawn"] for rank in ranks)
    assert first[:2] == first[2:]  # computed again with the same random numbers
    assert len(last) == len(set(last)) == 2


def test_each_process_writes_its_pieces_and_any_number_reads_them(backend: str) -> None:
    if backend not in SHARDING:
        pytest.skip("parameters are split on PyTorch and JAX")
    ranks = results(backend)
    alone = read_text("layers", None, 4)
    check_equal([rank["sharded"] for rank in ranks], alone, 5e-6)
    check_equal([rank["reopened"] for rank in ranks], alone, 5e-6)
    assert all(rank["sharded"]["bytes"] < 0.51 * alone["bytes"] for rank in ranks)


def test_parameters_in_several_units_train_as_in_one_process(backend: str) -> None:
    if backend not in SHARDING:
        pytest.skip("parameters are split on PyTorch and JAX")
    check_equal([rank["in units"] for rank in results(backend)], train("SingleProcess", last=10))


def test_states_in_several_vectors_train_as_in_one_process(backend: str) -> None:
    check_equal([rank["in vectors"] for rank in results(backend)], train("SingleProcess", last=10))


def test_averages_that_begin_early_are_the_same(backend: str) -> None:
    for rank in results(backend):
        found = rank["overlap"]
        assert found["same"] <= 1e-6 * found["size"]
        assert found["doubled"] <= 2e-6 * found["size"]
        assert found["own"] > 0.1 * found["size"]  # the ranks' own gradients differ
        assert found["unused"] == [0.0, 0.0]
        assert max(found["shifted"]) <= 1e-6 * found["size"]
        assert found["kept"] <= 8
        assert len({*found["held"]}) == 1, "the tensors of each step stay in memory"


def test_the_trainer_gives_what_one_process_gives(backend: str, tmp_path: Path) -> None:
    for rank in results(backend):
        for strategy, found in rank["fits"].items():
            rows = 32 if strategy == "FullShardStrategy" and backend == "jax" else 33
            folder = str(tmp_path / f"{strategy}{rank['exchange']['rank']}")
            if strategy == "lazy":
                check_fit(found, fit(None, folder, 2, is_lazy=True))
            else:
                check_fit(found["two"], fit(None, folder, 2, rows))
                check_fit(found["three"], fit(None, folder, 3, rows))


def check_fit(found: dict[str, Any], alone: dict[str, Any]) -> None:
    for part in ("curves", "parameters", "norms"):
        assert found[part].keys() == alone[part].keys()
        for name, values in alone[part].items():
            assert largest_difference(found[part][name], values) < 5e-6, name


def test_each_rank_keeps_its_part_of_the_optimizer_state(backend: str) -> None:
    for rank in results(backend):
        own, whole = rank["ZeroStrategy"]["whole"]["state bytes"]
        assert own == whole / 2
        assert rank["DataParallelStrategy"]["whole"]["state bytes"] == [whole, whole]


def test_a_parameter_that_is_split_may_be_assigned_to(backend: str) -> None:
    for rank in results(backend) if backend in SHARDING else ():
        assert rank["assigned"] == [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 10.0, 11.0]], 24]


def test_what_a_strategy_cannot_do_is_refused_with_the_reason(backend: str) -> None:
    for rank in results(backend):
        refused = rank["refused"]
        assert refused["matrices"][0] == "TypeError"
        assert "whole matrices" in refused["matrices"][1]
        if backend in SHARDING:
            assert refused["uneven"][0] == "ValueError"
            assert "3 to 4" in refused["uneven"][1]
        else:
            assert refused["full"][0] == "UnsupportedOp"
            assert "ZeroStrategy" in refused["full"][1]

"""Whom the launcher holds responsible, from what it has heard and when."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml.distributed.failure_detection import STALLED, RankState, Watch, describe_exit, traceback_of

LIMIT = 10.0


def said(moves: int, collectives: int = 0, inside: str = "", **more: Any) -> dict[str, Any]:
    return {"moves": moves, "collectives": collectives, "inside": inside, **more}


def watched(count: int = 3) -> tuple[Watch, list[RankState]]:
    ranks = [RankState(number, "") for number in range(count)]
    return Watch(ranks, LIMIT), ranks


def test_ranks_that_move_are_left_alone() -> None:
    watch, ranks = watched()
    for now in range(100):
        for rank in ranks:
            rank.beat(now, said(now))
        assert watch.stalled(now + 0.5) is None


def test_scripts_without_signs_of_life_are_left_alone() -> None:
    watch, _ = watched()
    assert watch.stalled(1e6) is None


def test_the_rank_that_is_behind_is_named_and_not_those_that_wait_for_it() -> None:
    watch, ranks = watched()
    for now in range(12):
        ranks[0].beat(now, said(9, 5, "all_reduce"))
        ranks[1].beat(now, said(8, 4))
        ranks[2].beat(now, said(9, 5, "all_reduce"))
    failure = watch.stalled(11)
    assert failure is not None
    assert (failure.rank, failure.code) == (1, STALLED)
    assert failure.why == "rank 1 has not moved for 11.0 s; ranks 0, 2 waited for it in all_reduce"


def test_a_silent_rank_is_named_before_one_that_is_behind() -> None:
    watch, ranks = watched(2)
    ranks[0].beat(0, said(9, 5))
    for now in range(12):
        ranks[1].beat(now, said(8, 4, "all_reduce"))
    failure = watch.stalled(11)
    assert failure is not None
    assert failure.why == "rank 0 has given no sign of life for 11.0 s"


def test_a_rank_that_never_joined_is_named() -> None:
    watch, ranks = watched(2)
    for now in range(12):
        ranks[1].beat(now, said(1, 1, "initialize"))
    failure = watch.stalled(11)
    assert failure is not None
    assert failure.why == "rank 0 has not joined the others; rank 1 waited for it in initialize"


def test_a_stopped_rank_is_named_and_a_continued_one_is_not() -> None:
    watch, ranks = watched(2)
    ranks[1].stopped = 0.0
    assert watch.stalled(9) is None
    failure = watch.stalled(11)
    assert failure is not None
    assert failure.why.startswith("rank 1 has been stopped for 11.0 s")
    ranks[1].stopped = None
    assert watch.stalled(11) is None


def test_a_rank_that_left_early_is_named() -> None:
    watch, ranks = watched(2)
    ranks[0].code = 0
    for now in range(12):
        ranks[1].beat(now, said(3, 2, "barrier"))
    failure = watch.stalled(11)
    assert failure is not None
    assert failure.why == "rank 0 has ended before the others; rank 1 waited for it in barrier"


@pytest.mark.parametrize(("idle", "guilty"), [(9.0, 1), (1.0, 0)])
def test_a_broken_collective_is_the_fault_of_a_rank_that_stands_still_only(idle: float, guilty: int) -> None:
    watch, ranks = watched(2)
    ranks[1].beat(20.0 - idle, said(4, 2))
    ranks[1].beat(20.0, said(4, 2))
    ranks[0].beat(20.0, said(6, 3, broken="all_reduce: out of memory"))
    failure = watch.behind(ranks[0], 20.0)
    assert failure.rank == guilty
    if guilty == 0:
        assert failure.why == "rank 0 could not finish all_reduce: out of memory"


def test_the_first_of_those_that_ended_on_their_own_account() -> None:
    watch, ranks = watched()
    ranks[0].broken = "all_reduce: connection closed"
    assert watch.first_exit([ranks[0], ranks[2], ranks[1]]) is ranks[2]
    assert watch.first_exit([ranks[0]]) is ranks[0]


def test_a_rank_that_raised_counts_until_it_has_ended() -> None:
    watch, ranks = watched(2)
    ranks[1].beat(5.0, said(1, raised="ValueError: bad"))
    assert watch.uncaught(5.1, 0.3) is None
    failure = watch.uncaught(5.4, 0.3)
    assert failure is not None
    assert (failure.rank, failure.why, failure.code) == (1, "rank 1 raised ValueError: bad", 1)
    ranks[1].code = 1
    assert watch.uncaught(6.0, 0.3) is None


def test_tracebacks_come_with_what_caused_them_and_without_what_came_before() -> None:
    start = "Traceback (most recent call last):"
    earlier = [start, "  a", "KeyError: logged", "going on"]
    chain = [start, "  b", "OSError: first", "", "The above exception was the direct cause of the following exception:"]
    last = ["", start, "  c", "ValueError: second"]
    assert traceback_of([*earlier, *chain, *last]) == [*chain, *last]
    assert traceback_of([*earlier, *last[1:]]) == last[1:]
    assert traceback_of(["[rank0]: " + line for line in last[1:]]) == ["[rank0]: " + line for line in last[1:]]
    assert traceback_of(["only", "words"]) == ["only", "words"]


def test_signals_have_names_where_they_have_one() -> None:
    assert describe_exit(-11) == "was killed by SIGSEGV"
    assert describe_exit(-63) == "was killed by signal 63"

"""Parameter groups where each rank has a part of the optimizer's state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.distributed.group_jobs import CASES
from tests.distributed.ranks import run_ranks
from tests.training.test_groups import draw_case


@pytest.mark.long
def test_random_groups_under_zero_equal_those_of_pytorch(backend: str) -> None:
    zero, one = _run("groupings", backend)
    assert zero == one
    for (kind, seed), found in zip(CASES, zero, strict=True):
        wanted = draw_case(kind, seed)[-1]
        assert found.keys() == wanted.keys()
        for name, values in wanted.items():
            assert found[name] == pytest.approx(values, rel=1e-5, abs=1e-5), (kind, seed, name)


def _run(job: str, backend: str, **given: Any) -> list[Any]:
    return run_ranks(job, backend, 2, limit=600.0, module="tests.distributed.group_jobs", **given)


@pytest.mark.long
def test_random_groups_under_zero_go_on_to_the_last_bit_after_a_kill(backend: str, tmp_path: Path) -> None:
    wanted = _run("fit_at_once", backend)
    with pytest.raises(AssertionError, match="the ranks ended with"):
        _run("fit_until_killed", backend, checkpoints=str(tmp_path))
    assert _run("fit_again", backend, checkpoints=str(tmp_path)) == wanted

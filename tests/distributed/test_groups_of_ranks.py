"""Parameter groups where each rank has a part of the optimizer's state."""

from __future__ import annotations

import pytest

from tests.distributed.group_jobs import CASES
from tests.distributed.ranks import run_ranks
from tests.training.test_groups import draw_case


@pytest.mark.long
def test_random_groups_under_zero_equal_those_of_pytorch(backend: str) -> None:
    zero, one = run_ranks("groupings", backend, 2, limit=600.0, module="tests.distributed.group_jobs")
    assert zero == one
    for (kind, seed), found in zip(CASES, zero, strict=True):
        wanted = draw_case(kind, seed)[-1]
        assert found.keys() == wanted.keys()
        for name, values in wanted.items():
            assert found[name] == pytest.approx(values, rel=1e-5, abs=1e-5), (kind, seed, name)

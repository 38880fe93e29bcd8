"""A model that is larger than the memory of each rank."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.distributed.ranks import run_ranks

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="other systems limit no data")]

EXACT = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
LAYERS = 96  # of 4 MB


def test_a_model_of_three_times_the_memory_of_a_rank_trains_is_saved_and_loaded(tmp_path: Path) -> None:
    pytest.importorskip("ember_ml.backend.torch")
    given = {"folder": str(tmp_path), "layers": LAYERS, "is_limited": True}
    module = "tests.distributed.limit_jobs"
    (alone,) = run_ranks("train", "torch", 1, 240, EXACT, module=module, strategy="SingleProcess", **given)
    assert "allocate" in alone["error"]  # the limit is one
    (whole,) = run_ranks(
        "train", "torch", 1, 240, EXACT, module=module, strategy="SingleProcess", **given | {"is_limited": False}
    )
    ranks = run_ranks("train", "torch", 8, 240, EXACT, module=module, strategy="FullShardStrategy", **given)
    for rank in ranks:
        assert rank.get("losses", rank) == pytest.approx(whole["losses"], rel=1e-5)
    assert len({*whole["losses"]}) == 3  # each step has changed it

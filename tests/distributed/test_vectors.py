"""Parameters as vectors of which each rank has a part: nothing is lost, whatever the shapes and the number of ranks."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ember_ml import nn, ops
from ember_ml.backend.processes.group import buckets_of
from ember_ml.distributed.strategy.zero import _Vector

SHAPES = st.lists(st.lists(st.integers(1, 4), max_size=3).map(tuple), min_size=1, max_size=5)


@pytest.mark.usefixtures("backend")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes=SHAPES, ranks=st.integers(1, 7))
def test_the_parts_are_equal_and_together_the_whole(shapes: list[tuple[int, ...]], ranks: int) -> None:
    named, first = {}, 0
    for place, shape in enumerate(shapes):
        size = math.prod(shape)
        named[f"p{place}"] = nn.Parameter(ops.reshape(ops.arange(first, first + size, dtype="float32"), shape))
        first += size
    vectors = [_Vector(named, rank, ranks) for rank in range(ranks)]
    parts = [ops.to_numpy(vector.part(named)).tolist() for vector in vectors]
    assert {len(part) for part in parts} == {-(-first // ranks)}
    joined = [number for part in parts for number in part]
    assert joined == [*map(float, range(first)), *[0.0] * (len(joined) - first)]
    whole = vectors[0].joined({name: x.value for name, x in named.items()})
    assert ops.to_numpy(whole).tolist() == joined
    for name, x in vectors[-1].apart(whole).items():
        assert tuple(x.shape) == named[name].shape
        assert ops.to_numpy(x).tolist() == ops.to_numpy(named[name].value).tolist()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9))), st.integers(1, 20))
def test_buckets_hold_every_place_once_in_order(tensors: list[tuple[str, int]], limit: int) -> None:
    kinds, sizes = [kind for kind, _ in tensors], [size for _, size in tensors]
    buckets = buckets_of(kinds, sizes, limit)
    assert sorted(place for bucket in buckets for place in bucket) == list(range(len(tensors)))
    for bucket in buckets:
        assert bucket == sorted(bucket)
        assert len({kinds[place] for place in bucket}) == 1
        assert sum(sizes[place] for place in bucket[:-1]) < limit


def test_tensors_that_are_all_known_share_a_message_until_it_is_full() -> None:
    sizes = [800_000, 1_000, 262_144, 1_000, 10_240, 40]
    assert buckets_of(["f"] * 6, sizes) == [[0, 1, 2, 3, 4, 5]]
    assert buckets_of(["f"] * 6, sizes, first=2**20) == [[0, 1, 2], [3, 4, 5]]

"""Parameters that are drawn when they are needed: the same numbers as those that are drawn at once."""

from __future__ import annotations

import copy
import pickle
from functools import partial
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.nn import initializers
from ember_ml.nn.modules.deferred import DeferredParameter
from ember_ml.training import Trainer

NAMED = sorted(initializers._NAMED)


def own_initializer(shape: Any, dtype: Any) -> Any:
    return ops.add(ops.random_normal(shape, dtype=dtype), ops.random_uniform(shape, dtype=dtype))


def build() -> nn.Module:
    return nn.Sequential(
        nn.Linear(4, 6, initializer=own_initializer),
        nn.LayerNorm(6),
        nn.Attention(6, 2),
        nn.Linear(6, 2),
    )


def values(model: nn.Module) -> dict[str, Any]:
    return {name: ops.to_numpy(x).tolist() for name, x in model.state_dict().items()}


def make(is_deferred: bool, function: Any = build) -> tuple[Any, list[float]]:
    """A model, and numbers that are drawn after it."""
    ops.random.seed(3)
    if is_deferred:
        with nn.deferred():
            model = function()
    else:
        model = function()
    return model, ops.to_numpy(ops.random_uniform((3,))).tolist()


def count_deferred(model: nn.Module) -> int:
    return sum(isinstance(x, DeferredParameter) for x in model.named_parameters().values())


def test_the_numbers_are_those_of_a_model_that_is_drawn_at_once(backend: str) -> None:
    at_once, after = make(False)
    later, after_later = make(True)
    assert after_later == after
    assert count_deferred(later) == len(later.named_parameters())
    assert {name: (x.shape, x.dtype, x.size, x.device) for name, x in later.named_parameters().items()} == {
        name: (x.shape, x.dtype, x.size, x.device) for name, x in at_once.named_parameters().items()
    }
    assert later.num_parameters == at_once.num_parameters
    assert count_deferred(later) == len(later.named_parameters())  # nothing of that has drawn anything
    names = list(later.named_parameters())
    for name in reversed(names):  # in whatever order they are read
        assert ops.to_numpy(later.named_parameters()[name].value).tolist() == values(at_once)[name]
    assert count_deferred(later) == 0


@pytest.mark.parametrize("name", NAMED)
def test_draws_of_initializers_are_counted_right(name: str) -> None:
    generator = ops.Generator(0)
    ops.random.seed(generator)
    initializers.get(name)((3, 4), "float32")
    assert initializers.count_draws(initializers.get(name)) == generator.state()["counter"]


def test_a_model_that_is_not_drawn_yet_trains_as_one_that_is(backend: str) -> None:
    batch = ops.random_normal((5, 3, 4), seed=1), ops.ones((5, 3, 2))
    found = []
    for is_deferred in (False, True):
        model = make(is_deferred)[0]
        Trainer(model, "adam", progress=False).step(batch)
        found.append(values(model))
    assert found[0] == found[1]


def test_a_model_that_is_not_drawn_yet_is_loaded_copied_and_pickled(backend: str) -> None:
    at_once, other = values(make(False)[0]), build()
    made = make(True)[0]
    assert values(copy.deepcopy(made)) == values(made) == at_once
    made = make(True)[0]
    made.load_state_dict(other.state_dict())
    assert values(made) == values(other)
    linear = partial(nn.Linear, 3, 2)
    assert values(pickle.loads(pickle.dumps(make(True, linear)[0]))) == values(make(False, linear)[0])


def test_what_is_not_read_takes_no_memory(backend: str) -> None:
    with nn.deferred():
        made = nn.Linear(10_000_000, 10_000_000, dtype="bfloat16")  # of 200 terabytes
    assert made.num_parameters == 10**14 + 10**7
    assert "Linear" in str(made)
    assert {x.dtype.name for x in made.named_parameters().values()} == {"bfloat16"}


def test_a_generator_of_the_library_cannot_draw_later() -> None:
    ops.random.seed(ops.Generator(0, native=True))
    try:
        with nn.deferred(), pytest.raises(ValueError, match="native generator"):
            nn.Linear(2, 2)
    finally:
        ops.random.seed(0)

"""nanoGPT's recipe: the example is short, and its losses are those of the same recipe in plain PyTorch."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from tests.test_examples import EXAMPLES, load

pytest.importorskip("torch")
nanogpt: Any = pytest.importorskip("tests.reference.nanogpt")

VOCABULARY, UPDATES = 29, 12


@cache
def recipe() -> Any:
    return load("nanogpt")


def make_batches() -> list[tuple[Any, Any]]:
    length, count = recipe().LENGTH, UPDATES * recipe().ACCUMULATE
    numbers = [(i * i * 7 + i // 5) % VOCABULARY for i in range(count * 2 * length + 1)]
    rows = [numbers[start : start + length + 1] for start in range(0, count * 2 * length, length)]
    pairs = [rows[i : i + 2] for i in range(0, len(rows), 2)]
    return [([row[:-1] for row in pair], [row[1:] for row in pair]) for pair in pairs]


@cache
def make_weights() -> dict[str, Any]:
    with ember_ml.use_backend("numpy"):
        ops.random.seed(0)
        made = {name: ops.to_numpy(x.value) for name, x in recipe().GPT(VOCABULARY).named_parameters().items()}
    return {name: x.copy() for name, x in made.items()}


def train(precision: str | None) -> list[float]:
    trainer = recipe().make_trainer(VOCABULARY, UPDATES, precision=precision, progress=False)
    trainer.model.load_state_dict(make_weights(), strict=False)
    batches = [(ops.array(x), ops.array(y)) for x, y in make_batches()]
    return list(trainer.fit(batches)["loss"])


@cache
def wanted(precision: str | None) -> list[float]:
    batches = make_batches()
    return nanogpt.train(make_weights(), batches, UPDATES, recipe().ACCUMULATE, recipe().RATE, precision)


def test_the_example_has_under_60_lines() -> None:
    assert len((EXAMPLES / "nanogpt.py").read_text().splitlines()) < 60


def test_losses_are_those_of_plain_pytorch(backend: str) -> None:
    found = train(None)
    assert found[-1] < found[0] - 0.1
    assert found == pytest.approx(wanted(None), abs=1e-4)


def test_losses_in_bfloat16_stay_near_those_of_float32_and_of_torch_autocast(backend: str) -> None:
    """bfloat16 has 8 bits: libraries round sums at other places, and the losses differ in the third digit."""
    found = train("bfloat16")
    assert found == pytest.approx(wanted(None), abs=0.02)
    assert found == pytest.approx(wanted("bfloat16"), abs=0.02)

"""Generation: the tokens of Transformers, the same from one seed on every backend, the same in batches as alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

import ember_ml
from ember_ml import models, ops
from ember_ml.backend import installed_backends
from ember_ml.nn.generation import choose_token
from tests.reference import pretrained
from tests.reference.pretrained import Written

Writing = Callable[[str], Written]


@pytest.mark.parametrize("name", ["gpt2", "llama3", "mistral-window", "qwen3", "gemma2", "gemma3-ropes", "phi3"])
def test_greedy_tokens_are_those_of_transformers(name: str, backend: str, written: Writing) -> None:
    case, count = written(name), 20 if name == "gpt2" else 40
    wanted = pretrained.generate(name, case.folder, case.tokens, count, eos_token_id=None)
    assert models.load(case.folder).generate(case.tokens, count, stop=[]) == wanted


def test_two_hundred_tokens(backend: str, written: Writing) -> None:
    case = written("llama")
    wanted = pretrained.generate("llama", case.folder, case.tokens[:1], 200, eos_token_id=None)
    assert models.load(case.folder).generate(case.tokens[0], 200, stop=[]) == wanted[0]


def test_one_seed_gives_the_same_tokens_on_all_backends(written: Writing) -> None:
    case, found = written("llama"), []
    before = ember_ml.get_backend()
    try:
        for name in installed_backends():
            ember_ml.set_backend(name)
            model = models.load(case.folder)
            choices = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "stop": []}
            found.append([model.generate(case.tokens, 30, seed=seed, **choices) for seed in (0, 1)])
    finally:
        ember_ml.set_backend(before)
    assert all(tokens == found[0] for tokens in found)
    assert found[0][0] != found[0][1]


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral-window", "gemma3"])
def test_batches_equal_single_runs(name: str, backend: str, written: Writing) -> None:
    model = models.load(written(name).folder)
    prompts = [[5, 6, 7, 8, 9, 10, 11], [12], [20, 21, 22]]
    alone = [model.generate(prompt, 12, stop=[]) for prompt in prompts]
    assert model.generate(prompts, 12, stop=[]) == alone


def test_texts_end_at_stop_tokens(backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    prompts = [[5, 6, 7], [12, 40]]
    whole = model.generate(prompts, 16, stop=[])
    first, second = whole[0][4], whole[1][9]
    shown: list[list[int | None]] = []
    found = model.generate(prompts, 16, stop=[first, second], on_tokens=shown.append)
    for text, all_of_it in zip(found, whole, strict=True):
        end = min(all_of_it.index(token) if token in all_of_it else 16 for token in (first, second))
        assert text == all_of_it[: end + 1]
    streamed = [[step[row] for step in shown if step[row] is not None] for row in (0, 1)]
    assert streamed == found
    model.generation["eos_token_id"] = first
    assert model.generate(prompts[0], 16) == whole[0][: whole[0].index(first) + 1]


def test_a_callback_stops_the_run_and_modes_come_back(backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    model.train()
    model.layers[0].eval()
    steps: list[list[int | None]] = []
    model.generate([5, 6], 16, stop=[], on_tokens=lambda new: steps.append(new) or len(steps) == 3)
    assert len(steps) == 3
    assert model.training
    assert not model.layers[0].training


def test_probabilities_of_sampling(backend: str) -> None:
    """Tokens are drawn as often as their probabilities, from those that top_k and top_p leave."""
    weights = [0.4, 0.3, 0.2, 0.1]
    rows = ops.array([[math.log(weight) for weight in weights]] * 4000)

    def shares(temperature: float, top_k: int | None, top_p: float | None) -> list[float]:
        drawn = choose_token(rows, temperature, top_k, top_p, ops.random.Generator(3))
        return [ops.item(ops.mean(ops.cast(ops.equal(drawn, token), "float32"))) for token in range(4)]

    def near(wanted: list[float]) -> object:
        return pytest.approx(wanted, abs=0.04)

    assert shares(1.0, None, None) == near(weights)
    assert shares(1.0, 2, None) == near([4 / 7, 3 / 7, 0, 0])
    assert shares(1.0, None, 0.65) == near([4 / 7, 3 / 7, 0, 0])
    assert shares(1.0, None, 0.75) == near([4 / 9, 3 / 9, 2 / 9, 0])
    assert shares(1.0, None, 0.01) == [1, 0, 0, 0]
    squares = [weight**2 for weight in weights]
    assert shares(0.5, None, None) == near([square / sum(squares) for square in squares])
    assert shares(0.0, None, None) == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_k": 0}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
    ],
)
def test_wrong_choices_raise(settings: dict[str, float], message: str, backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    with pytest.raises(ValueError, match=message):
        model.generate([1], **settings)
    with pytest.raises(ValueError, match="at least one token"):
        model.generate([[1], []])

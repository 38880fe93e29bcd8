"""Decoding by one program: the tokens are those of decoding step by step."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ember_ml import models, ops
from ember_ml.backend.selection import active
from tests.reference.pretrained import Written

Writing = Callable[[str], Written]
PROMPTS = [[5, 6, 7, 8, 9, 10, 11], [12], [20, 21, 22]]
SAMPLED: dict[str, Any] = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "seed": 3}


@pytest.fixture
def calls(backend: str, monkeypatch: pytest.MonkeyPatch) -> list[int] | None:
    """Run steps as they are, which compilers take seconds for, and count those that were prepared and done.

    None on a backend without a compiler, where nothing is prepared.
    """
    found = [0, 0]

    def repeat(function: Callable[..., Any]) -> Callable[..., Any]:
        found[0] += 1

        def begin(fixed: Any, state: Any) -> Callable[[], Any]:
            def advance() -> Any:
                nonlocal state
                found[1] += 1
                state = function(fixed, state)
                return state

            return advance

        return begin

    engine = active().compilation
    if engine is None:
        return None
    monkeypatch.setattr(engine, "repeat", repeat)
    monkeypatch.setattr(engine, "compiles_steps", False)
    return found


@pytest.mark.long_with("jax")  # which compiles each op for each length of the growing caches
@pytest.mark.parametrize("name", ["gpt2", "llama3", "mistral-window", "gemma2"])
def test_tokens_are_those_without_a_program(name: str, calls: list[int] | None, written: Writing) -> None:
    model = models.load(written(name).folder)
    for prompts, choice in ((PROMPTS, {}), (PROMPTS[0], SAMPLED)):
        wanted = model.generate(prompts, 12, stop=[], **choice)
        assert model.generate(prompts, 12, stop=[], compile=True, **choice) == wanted
    assert calls in (None, [2, 22])


def test_one_program_serves_many_lengths(calls: list[int] | None, written: Writing) -> None:
    model = models.load(written("llama").folder)
    model.generate([5, 6, 7], 4, stop=[], compile=True)
    model.generate([5, 6], 6, stop=[], compile=True)
    model.layers[0].mlp.down.weight = ops.zeros_like(model.layers[0].mlp.down.weight)  # the same parameter
    assert model.generate([5, 6], 6, stop=[], compile=True) == model.generate([5, 6], 6, stop=[])
    assert calls in (None, [1, 3 + 5 + 5])
    model.generate(PROMPTS[:2], 4, stop=[], compile=True)
    assert calls is None or calls[0] == 2
    twin = copy.deepcopy(model)
    assert twin.generate([5, 6], 6, stop=[], compile=True) == model.generate([5, 6], 6, stop=[])
    assert calls is None or calls[0] == 3


def test_texts_end_as_without_a_program(calls: list[int] | None, written: Writing) -> None:
    model = models.load(written("llama").folder)
    whole = model.generate(PROMPTS[0], 16, stop=[])
    end = whole[5]
    wanted = whole[: whole.index(end) + 1]
    assert model.generate(PROMPTS[0], 16, stop=[end], compile=True) == wanted
    before = 0 if calls is None else calls[1]
    assert before <= 2 * len(wanted)  # tokens are read a few steps late
    shown: list[list[int | None]] = []
    model.generate(PROMPTS[0], 16, stop=[], compile=True, on_tokens=lambda new: shown.append(new) or len(shown) == 3)
    assert [step[0] for step in shown] == whole[:3]
    assert calls is None or calls[1] == before + 2
    assert model.generate(PROMPTS[0], 1, stop=[], compile=True) == whole[:1]


def test_what_is_not_compiled_raises(calls: list[int] | None, written: Writing) -> None:
    config = {"model_type": "mamba2", "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_heads": 2}
    model: Any = models.from_config({**config, "head_dim": 8, "state_size": 4, "n_groups": 1, "expand": 2})
    if calls is None:  # it runs as it is
        assert model.generate([1], 2, stop=[], compile=True) == model.generate([1], 2, stop=[])
        return
    with pytest.raises(ValueError, match="Mamba2 is not compiled"):
        model.generate([1], 2, compile=True)
    sizes = {"vocab_size": 9, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    rope = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    config = {"model_type": "llama", "num_attention_heads": 2, "max_position_embeddings": 8, "rope_parameters": rope}
    growing: Any = models.from_config({**config, **sizes})
    assert growing.generate([1, 2], 6, stop=[], compile=True) == growing.generate([1, 2], 6, stop=[])
    with pytest.raises(ValueError, match="change while a text grows"):
        growing.generate([1, 2], 12, stop=[], compile=True)
    gpt = models.load(written("gpt2").folder)
    longest = gpt.settings.integer("n_positions")
    with pytest.raises(ValueError, match="n_positions"):
        gpt.generate([1, 2], longest, stop=[], compile=True)


@pytest.mark.long
@pytest.mark.parametrize("choice", [{}, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", ["gpt2", "llama3", "mistral-window", "gemma2", "qwen3"])
def test_compiled_tokens_are_the_same(name: str, choice: dict[str, Any], backend: str, written: Writing) -> None:
    model = models.load(written(name).folder)
    wanted = model.generate(PROMPTS, 20, stop=[], **choice)
    assert model.generate(PROMPTS, 20, stop=[], compile=True, **choice) == wanted
    assert model.generate(PROMPTS, 20, stop=[], compile=True, **choice) == wanted

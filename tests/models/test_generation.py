"""Generation: the tokens of Transformers, the same from one seed on every backend, the same in batches as alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import models, nn, ops
from ember_ml.backend import installed_backends
from ember_ml.backend.selection import active
from ember_ml.nn.generation import find_token
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


@pytest.mark.long
@pytest.mark.parametrize("name", pretrained.WRITERS)
def test_two_hundred_tokens_of_each_architecture(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    wanted = pretrained.generate(name, case.folder, case.tokens, 200, eos_token_id=None)
    assert models.load(case.folder).generate(case.tokens, 200, stop=[]) == wanted


def test_one_seed_gives_the_same_tokens_on_all_backends(written: Writing) -> None:
    case, found = written("llama"), []
    before = ember_ml.get_backend()
    try:
        for name in installed_backends():
            ember_ml.set_backend(name)
            model = models.load(case.folder)
            choices = {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "min_p": 0.02, "stop": []}
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


@pytest.mark.parametrize("name", ["llama", "mamba2", "t5"])
def test_streams_are_the_tokens_one_by_one(name: str, backend: str, written: Writing) -> None:
    model = models.load(written(name).folder)
    prompts, choices = [[5, 6, 7], [12, 40]], {"temperature": 0.7, "seed": 1}
    if name == "mamba2":
        prompts = [[5, 6, 7], [12, 40, 3]]
    whole = model.generate(prompts, 8, stop=[], **choices)
    assert list(zip(*model.stream(prompts, 8, stop=[], **choices), strict=True)) == [tuple(row) for row in whole]
    assert list(model.stream(prompts[0], 8, stop=[])) == model.generate(prompts[0], 8, stop=[])
    end = whole[0][2]
    wanted = model.generate(prompts, 8, stop=[end], **choices)
    steps = list(model.stream(prompts, 8, stop=[end], **choices))
    assert [[step[row] for step in steps if step[row] is not None] for row in (0, 1)] == wanted
    with pytest.raises(TypeError, match="heat"):
        model.stream(prompts, heat=1.0)
    with pytest.raises(ValueError, match="max_new_tokens"):  # before anything is asked for
        model.stream(prompts, 0)


def test_a_stream_that_is_left_gives_the_modes_back(backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    whole = model.generate([5, 6], 6, stop=[])
    model.train()
    new = model.stream([5, 6], 6, stop=[])
    assert [next(new), next(new)] == whole[:2]
    assert not model.training
    new.close()
    assert model.training

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interruption:
        model.generate([5, 6], 6, stop=[], on_tokens=interrupt)
    assert interruption.value
    assert model.training
    assert model.eval().generate([5, 6], 6, stop=[]) == whole


def test_a_text_may_end_at_the_last_position(backend: str, written: Writing) -> None:
    """A step that is begun before the last token is read must not fail for a text that ends with that token."""
    model = models.load(written("gpt2").folder)
    longest = model.settings.integer("n_positions")
    prompt, choices = list(range(3, 3 + longest - 2)), {"repetition_penalty": 50.0}
    whole = model.generate(prompt, 3, stop=[], **choices)
    assert len(set(whole)) == 3  # so that the third ends the text, and not one before it
    assert model.generate(prompt, 9, stop=whole[2], **choices) == whole
    new = model.stream(prompt, 9, stop=[], **choices)
    assert [next(new) for _ in range(3)] == whole
    with pytest.raises(ValueError, match="n_positions"):
        next(new)


def test_the_next_step_begins_before_a_token_is_read(
    backend: str, written: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a library computes when asked, it has the next step to do while the last token is shown."""
    model, laziness = models.load(written("llama").folder), active().laziness
    events: list[str] = []
    if laziness is not None:
        start = laziness.start
        monkeypatch.setattr(laziness, "start", lambda *tensors: events.append("start") or start(*tensors))
    model.generate([5, 6], 3, stop=[], on_tokens=lambda _: events.append("token"))
    wanted = ["start", "start", "token", "start", "token", "token"]
    assert events == [event for event in wanted if laziness is not None or event == "token"]


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma2", "t5", "mamba2"])
def test_repeated_tokens_are_penalized_as_by_transformers(name: str, backend: str, written: Writing) -> None:
    case, count = written(name), 20
    model, settings = models.load(case.folder), {"repetition_penalty": 1.7}
    wanted = pretrained.generate(name, case.folder, case.tokens, count, eos_token_id=None, **settings)
    assert model.generate(case.tokens, count, stop=[], **settings) == wanted
    assert wanted != model.generate(case.tokens, count, stop=[])
    if name in ("gpt2", "llama"):  # padding is no token that was seen
        prompts = [case.tokens[0], case.tokens[1][:4]]
        alone = [model.generate(prompt, count, stop=[], **settings) for prompt in prompts]
        assert model.generate(prompts, count, stop=[], **settings) == alone


@pytest.mark.parametrize(
    ("name", "smaller"),
    [
        ("gpt2", "gpt2-inner"),
        ("llama", "llama-tied"),
        ("mistral-window", "llama"),
        ("mamba2", "llama"),
        ("t5", "t5-gated"),
    ],
)
def test_a_draft_changes_no_token(
    name: str, smaller: str, backend: str, written: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, draft, prompt = models.load(written(name).folder), models.load(written(smaller).folder), [5, 6, 7, 40]
    for choices in ({}, {"temperature": 0.7, "min_p": 0.01, "seed": 4}, {"repetition_penalty": 1.3}):
        wanted = model.generate(prompt, 18, stop=[], **choices)
        assert model.generate(prompt, 18, stop=[], draft=draft, **choices) == wanted
        assert (
            model.generate(prompt, 18, stop=wanted[6], draft=model, **choices) == wanted[: wanted.index(wanted[6]) + 1]
        )
    calls, read = [], type(model).hidden_states
    monkeypatch.setattr(type(model), "hidden_states", lambda *args: calls.append(args[0] is model) or read(*args))
    twin = models.load(written(name).folder)
    assert model.generate(prompt, 18, stop=[], draft=twin) == model.generate(prompt, 18, stop=[], draft=twin)
    assert calls.count(True) == 2 * (1 + 4)  # the prompt, then 4 rounds of 5, 5, 5 and 2 tokens


def test_a_draft_must_fit(backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    other = models.from_config({"model_type": "llama", "vocab_size": 60, **sizes})
    with pytest.raises(ValueError, match="a vocabulary of 60 tokens and the model one of 61"):
        model.generate([1, 2], 8, draft=other)
    with pytest.raises(ValueError, match="one prompt"):
        model.generate([[1], [2]], draft=model)
    with pytest.raises(ValueError, match="without compile"):
        model.generate([1], draft=model, compile=True)


def test_probabilities_of_sampling(backend: str) -> None:
    """Tokens are drawn as often as their probabilities, from those that top_k and top_p leave."""
    weights = [0.4, 0.3, 0.2, 0.1]
    rows = ops.array([[math.log(weight) for weight in weights]] * 4000)

    def shares(temperature: float, top_k: int | None, top_p: float | None, min_p: float | None = None) -> list[float]:
        place = ops.random_uniform((4000, 1), seed=ops.random.Generator(3))
        drawn = find_token(rows, temperature, top_k, top_p, place, min_p)
        return [ops.item(ops.mean(ops.cast(ops.equal(drawn, token), "float32"))) for token in range(4)]

    def near(wanted: list[float]) -> object:
        return pytest.approx(wanted, abs=0.04)

    assert shares(1.0, None, None) == near(weights)
    assert shares(1.0, 2, None) == near([4 / 7, 3 / 7, 0, 0])
    assert shares(1.0, None, 0.65) == near([4 / 7, 3 / 7, 0, 0])
    assert shares(1.0, None, 0.75) == near([4 / 9, 3 / 9, 2 / 9, 0])
    assert shares(1.0, None, 0.01) == [1, 0, 0, 0]
    assert shares(1.0, None, None, 0.6) == near([4 / 7, 3 / 7, 0, 0])
    assert shares(2.0, None, None, 0.85) == near([0.5359, 0.4641, 0, 0])  # roots 0.632 and 0.548; 0.447 is left out
    assert shares(1.0, 3, 0.9, 0.4) == near([4 / 9, 3 / 9, 2 / 9, 0])
    assert shares(1.0, None, None, 1.0) == [1, 0, 0, 0]
    assert shares(1.0, None, None, 0.0) == near(weights)
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
        ({"min_p": 1.5}, "min_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
    ],
)
def test_wrong_choices_raise(settings: dict[str, float], message: str, backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    with pytest.raises(ValueError, match=message):
        model.generate([1], **settings)
    with pytest.raises(ValueError, match="at least one token"):
        model.generate([[1], []])


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([1.5, 2.0], "whole numbers, not 1.5"),
        ([True, 1], "whole numbers, not True"),
        ([5, -100], "there is none -100"),
        ([[5], 6], "a list of tokens, not 6"),
        ([5, [6]], r"whole numbers, not \[6\]"),
        ([[[5]]], r"whole numbers, not \[5\]"),
        (["ab"], "whole numbers, not 'a'"),
        (5, "a list of tokens, not 5"),
    ],
)
def test_what_is_no_prompt_raises(prompt: Any, message: str, backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    with pytest.raises((TypeError, ValueError), match=message):
        model.generate(prompt)


def test_prompts_and_stops_of_any_kind(backend: str, written: Writing) -> None:
    model, prompt = models.load(written("llama").folder), [5, 6, 7]
    whole = model.generate(prompt, 5, stop=[])
    native = ops.array(prompt)
    host = ops.to_numpy(native)
    same = (tuple(prompt), range(5, 8), native, host, list(host))
    assert [model.generate(x, 5, stop=[]) for x in same] == [whole] * 5
    assert model.generate([host, native], 5, stop=[]) == [whole, whole]
    end = whole[1]
    wanted, ends = whole[: whole.index(end) + 1], ops.array([end, 60])
    for stop in (ops.to_numpy(ends)[0], ops.to_numpy(ends), ends, iter([end]), {end}):
        assert model.generate(prompt, 5, stop=stop) == wanted
    for stop in ("x", ["x"], 1.5, True, [-1]):
        with pytest.raises((TypeError, ValueError), match="stop"):
            model.generate(prompt, 5, stop=stop)
    with pytest.raises(TypeError, match="a draft is a model that writes texts, not str"):
        model.generate(prompt, draft="small")
    for count in (2.5, None):
        with pytest.raises(ValueError, match="whole number from 1 up"):
            model.generate(prompt, count)


@pytest.mark.parametrize("temperature", [1e-4, 1e-30, 1e-45])
def test_cold_texts_are_the_likeliest(temperature: float, backend: str, written: Writing) -> None:
    model = models.load(written("llama").folder)
    assert model.generate([5, 6], 8, temperature=temperature, seed=0, stop=[]) == model.generate([5, 6], 8, stop=[])


def test_a_model_that_has_written_is_saved_and_trained_as_before(
    backend: str, written: Writing, tmp_path: Path
) -> None:
    """Writing may order weights in memory as the library's products read them fastest."""
    folder, tokens = written("llama").folder, [[1, 2, 3]]

    def gradients(model: Any) -> dict[str, Any]:
        found = nn.value_and_grad(model, lambda: ops.sum(ops.square(model(tokens))))()[1]
        return {name: ops.to_numpy(value) for name, value in found.items()}

    fresh, model = models.load(folder), models.load(folder)
    model.generate(tokens, 2, stop=[])
    model.save(tmp_path / "again")
    states = [found.state_dict() for found in (fresh, model, models.load(tmp_path / "again"))]
    for name, value in states[0].items():
        assert all((ops.to_numpy(state[name]) == ops.to_numpy(value)).all() for state in states)
    wanted = gradients(fresh)
    for name, value in gradients(model).items():
        pretrained.check_close(value, wanted[name])

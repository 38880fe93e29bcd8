"""T5 computes and writes what Transformers does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ember_ml import models, ops
from tests.reference import pretrained
from tests.reference.pretrained import TRANSLATORS, Written, check_close

Writing = Callable[[str], Written]


@pytest.mark.parametrize("name", TRANSLATORS)
def test_logits_are_those_of_transformers(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    model = models.load(case.folder)
    answers = [row[::-1] for row in case.tokens]
    check_close(ops.to_numpy(model(case.tokens, answers)), case.result)
    check_close(ops.to_numpy(model(case.tokens, answers, case.mask)), case.masked)
    state, parts = model.begin(case.tokens, case.mask), []
    for first, last in ((0, 1), (1, 5), (5, len(answers[0]))):
        hidden, state = model.hidden_states([row[first:last] for row in answers], None, state)
        parts.append(model.logits(hidden))
    check_close(ops.to_numpy(ops.concatenate(parts, 1)), case.masked)


@pytest.mark.parametrize("name", ["t5", "t5-gated"])
def test_greedy_tokens_are_those_of_transformers(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    model = models.load(case.folder)
    wanted = pretrained.generate(name, case.folder, case.tokens, 30, eos_token_id=None)
    assert model.generate(case.tokens, 30, stop=[]) == wanted
    prompts = [case.tokens[0], case.tokens[1][:4]]
    assert model.generate(prompts, 10, stop=[]) == [model.generate(prompt, 10, stop=[]) for prompt in prompts]


def test_the_decoder_needs_a_text(backend: str, written: Writing) -> None:
    model = models.load(written("t5").folder)
    with pytest.raises(ValueError, match="begin"):
        model.hidden_states([[1]])

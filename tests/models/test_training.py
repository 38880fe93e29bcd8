"""Models that were loaded are trained: their gradients are those of Transformers on PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ember_ml import models, nn, ops
from tests.reference import pretrained
from tests.reference.pretrained import TRANSLATORS, Written

Writing = Callable[[str], Written]


@pytest.mark.parametrize("name", ["gpt2", "llama3", "gemma2", "phi3", "bert-words", "modernbert-words", "mamba2", "t5"])
def test_gradients_are_those_of_transformers(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    wanted = pretrained.gradients(name, case.folder, case.tokens)
    model = models.load(case.folder)
    given = (case.tokens, case.tokens) if name in TRANSLATORS else (case.tokens,)
    _, gradients = nn.value_and_grad(model, lambda: ops.mean(ops.square(model(*given))))()
    compared = 0
    for parameter, gradient in gradients.items():
        stored = model.names.find(parameter)
        if stored.names[0] not in wanted:
            continue
        found = ops.to_numpy(ops.matrix_transpose(gradient) if stored.is_transposed else gradient)
        reference = wanted[stored.names[0]]
        error = ops.item(ops.max(ops.abs(ops.subtract(found, reference))))
        assert error <= 1e-4 * max(ops.item(ops.max(ops.abs(reference))), 1e-2), stored.names[0]
        compared += 1
    assert compared == len(gradients)

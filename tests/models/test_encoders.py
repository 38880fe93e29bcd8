"""Encoders compute what Transformers does, with each head and with padding."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ember_ml import models, ops
from tests.reference import pretrained
from tests.reference.pretrained import ENCODERS, Written, check_close

Writing = Callable[[str], Written]


@pytest.mark.parametrize("name", ENCODERS)
def test_results_are_those_of_transformers(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    model = models.load(case.folder)
    check_close(ops.to_numpy(model(case.tokens)), case.result)
    masked = ops.to_numpy(model(case.tokens, mask=case.mask))
    if masked.ndim == 3:
        check_close(masked[0], case.masked[0])
        check_close(masked[1, :-3], case.masked[1, :-3])
    else:
        check_close(masked, case.masked)


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_pooling_and_types(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    types = [[0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 0, 0, 0, 0]]
    vectors, pooled = pretrained.pooled(name, case.folder, case.tokens, types)
    model = models.load(case.folder)
    found = model(case.tokens, types=types)
    check_close(ops.to_numpy(found), vectors)
    check_close(ops.to_numpy(model.pool(found)), pooled)


def test_embeddings_of_texts_leave_padding_out(backend: str, written: Writing) -> None:
    case = written("distilbert")
    model = models.load(case.folder)
    embedded = ops.to_numpy(model.embed(case.tokens, case.mask))
    check_close(embedded[0], case.masked[0].mean(0))
    check_close(embedded[1], case.masked[1, :-3].mean(0))
    check_close(ops.to_numpy(model.embed(case.tokens, case.mask, pooling="first")), case.masked[:, 0])
    with pytest.raises(ValueError, match="one of mean, first"):
        model.embed(case.tokens, pooling="pooler")


def test_too_many_positions_raise(backend: str, written: Writing) -> None:
    model = models.load(written("bert").folder)
    with pytest.raises(ValueError, match="24 positions"):
        model([[1] * 25])
    with pytest.raises(ValueError, match="knows no types"):
        models.load(written("distilbert").folder)([[1]], types=[[0]])

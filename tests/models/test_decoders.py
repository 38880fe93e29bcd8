"""Decoders compute what Transformers does: with and without cache, masks and windows; and go back to its format."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ember_ml import models, ops
from tests.reference.pretrained import DECODERS, Written, check_close

Writing = Callable[[str], Written]


@pytest.mark.parametrize("name", DECODERS)
def test_logits_are_those_of_transformers(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    model = models.load(case.folder)
    check_close(ops.to_numpy(model(case.tokens)), case.result)
    masked = ops.to_numpy(model(case.tokens, mask=case.mask))
    check_close(masked[0], case.masked[0])
    check_close(masked[1, 3:], case.masked[1, 3:])  # what padding computes means nothing


# the others have frequencies that depend on the length of the text so far
CACHED = [name for name in DECODERS if name not in ("llama-dynamic", "phi3-longer")]


@pytest.mark.parametrize("name", CACHED)
def test_cache_changes_nothing(name: str, backend: str, written: Writing) -> None:
    case = written(name)
    model = models.load(case.folder)
    state, parts, masked_parts = model.initial_state(2), [], []
    masked_state = model.initial_state(2)
    for first, last in ((0, 5), (5, 6), (6, 8), (8, len(case.tokens[0]))):
        piece = [row[first:last] for row in case.tokens]
        found, state = model(piece, state=state)
        parts.append(found)
        found, masked_state = model(piece, [row[first:last] for row in case.mask], masked_state)
        masked_parts.append(found)
    check_close(ops.to_numpy(ops.concatenate(parts, 1)), case.result)
    check_close(ops.to_numpy(ops.concatenate(masked_parts, 1))[1, 3:], case.masked[1, 3:])

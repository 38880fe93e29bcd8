"""Speculative decoding: a small model, the draft, proposes tokens, and the model reads several of them in one call.

At each position the model chooses its token from its own logits, with the random number that it would have had without
a draft. Proposals that are what it chooses cost no call of their own; the first that is not ends the round. So the
tokens are those of the model alone, up to rounding, whatever the draft proposes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ember_ml import ops
from ember_ml.models.causal import DecoderState
from ember_ml.models.generation import TextGenerator
from ember_ml.models.token_choice import Chooser
from ember_ml.models.token_steps import Start
from ember_ml.nn.layers.sequence_mixing.heads import KeyValueCache
from ember_ml.typing import Tensor

__all__ = ["write_with_draft"]

_AHEAD = 4
"""The most tokens that the draft proposes at once."""


def write_with_draft(
    model: TextGenerator, draft: TextGenerator, start: Start, draft_start: Start, most: int, chooser: Chooser
) -> Iterator[Tensor]:
    """Yield up to ``most`` tokens, (1,) each, that follow one text, with which both models start."""
    hidden, state = model.hidden_states(*start)
    logits = model.logits(ops.get_item(hidden, (slice(None), -1)))
    last = chooser.choose(logits, 1)
    yield last
    _, draft_state = draft.hidden_states(*draft_start)
    done, unread = 1, [last]
    while done < most:
        states, proposals = [draft_state], []
        step = ops.reshape(ops.concatenate(unread), (1, -1))
        for number in range(done + 1, min(done + _AHEAD, most - 1) + 1):
            hidden, draft_state = draft.hidden_states(step, None, states[-1])
            found = draft.logits(ops.get_item(hidden, (slice(None), -1)))
            if found.shape[-1] != logits.shape[-1]:
                raise ValueError(
                    f"the draft has a vocabulary of {found.shape[-1]} tokens and the model one of {logits.shape[-1]}: "
                    "they must have the same tokens"
                )
            proposals.append(chooser.choice.find(found, chooser.place(number, logits)))
            states.append(draft_state)
            step = ops.reshape(proposals[-1], (1, 1))
        read = ops.reshape(ops.concatenate([last, *proposals]), (1, -1))
        hidden, after = model.hidden_states(read, None, state)
        logits = ops.squeeze(model.logits(hidden), 0)
        proposed = ops.to_numpy(read).tolist()[0][1:]
        accepted = 0
        while True:
            done += 1
            last = chooser.choose(ops.get_item(logits, slice(accepted, accepted + 1)), done)
            yield last
            if accepted == len(proposed) or ops.to_numpy(last).tolist() != [proposed[accepted]]:
                break
            accepted += 1
        is_whole = accepted == len(proposed)
        state = after if is_whole else _go_back(model, read, state, after, accepted + 1)
        # the draft has not read its own last proposal
        unread = [*proposals[-1:], last] if is_whole else [last]
        draft_state = states[-1] if is_whole else states[accepted + 1]


def _go_back(model: TextGenerator, tokens: Tensor, before: Any, after: Any, kept: int) -> Any:
    """Return the state after the first ``kept`` of the tokens; ``before`` is that before them, ``after`` after all."""
    if type(after) is DecoderState and after.is_real is None and not any(cache.dropped for cache in after.caches):
        length = before.length + kept
        part = (slice(None), slice(length))
        caches = [KeyValueCache(ops.get_item(x.key, part), ops.get_item(x.value, part)) for x in after.caches]
        return DecoderState(tuple(caches), None, length)
    # windows and recurrent states have forgotten what they were: read the tokens again
    return model.hidden_states(ops.get_item(tokens, (slice(None), slice(kept))), None, before)[1]

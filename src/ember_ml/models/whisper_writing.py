"""How Whisper writes: the tokens that it begins with, those that it never writes, and the times of what was said.

A time is a token: those after ``no_timestamps_token_id`` count steps of 0.02 seconds from the beginning of the window
of 30 seconds that the encoder takes. A segment of speech stands between two times. Where a window ends within a
segment, the next window begins with it, so that sounds may be of any length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ember_ml import ops
from ember_ml.errors import ConfigError
from ember_ml.models.generation import check_count, find_ends
from ember_ml.models.token_steps import collect, write_tokens
from ember_ml.nn.generation import check_sampling, choose_token, in_use
from ember_ml.typing import Tensor, TensorLike

if TYPE_CHECKING:
    from ember_ml.models.whisper import Whisper, WhisperState

__all__ = ["Segment", "write_segments", "write_texts"]

_STEP = 0.02
"""Seconds between one time and the next."""
_FRAMES = 2
"""Frames of a spectrogram in such a step: the encoder has a vector for each pair."""


class Segment(NamedTuple):
    """A piece of speech, between two times."""

    start: float
    """Seconds from the beginning of the sound."""
    end: float
    tokens: list[int]
    """What was said, without the tokens that stand for times."""


class Wish(NamedTuple):
    """What is to be written, and how tokens are chosen, as in ``model.transcribe``."""

    most: int | None
    language: str | None
    task: str
    temperature: float
    seed: int | None


def write_texts(
    model: Whisper,
    features: TensorLike,
    wish: Wish,
    stop: int | Iterable[int] | None,
    on_tokens: Callable[[list[int | None]], Any] | None,
) -> list[list[int]]:
    """Return the tokens of each spectrogram, without times."""
    features, ends = ops.asarray(features), find_ends(model, stop)
    stream = None if wish.temperature == 0 else ops.random.Generator(wish.seed)
    never, at_first = _find_suppressed(model)

    def choose(logits: Tensor, count: int) -> Tensor:
        logits = ops.add(logits, at_first if count == 1 else never)
        return choose_token(logits, wish.temperature, None, None, stream)

    with in_use(model):
        state = model.begin(features)
        first = _first_tokens(model, state, wish, has_times=False)
        steps = write_tokens(model, _start(first, state), _count_room(model, first, wish), ends, choose)
        return collect(steps, len(first), on_tokens)


def write_segments(model: Whisper, features: TensorLike, wish: Wish) -> list[list[Segment]]:
    """Return what is said in each spectrogram, of any length, and when."""
    features = ops.asarray(features)
    rules, stream = _TimeRules(model), None if wish.temperature == 0 else ops.random.Generator(wish.seed)
    batch, frames = ops.shape(features)[:2]
    found: list[list[Segment]] = [[] for _ in range(batch)]
    places, first = [0] * batch, []
    with in_use(model):
        while True:
            rows = [row for row in range(batch) if places[row] < frames]
            if not rows:
                return found
            state = model.begin(ops.concatenate([_cut(features, row, places[row], model) for row in rows]))
            first = first or _first_tokens(model, state, wish, has_times=True)  # all rows begin, so all are there
            start = _start([first[row] for row in rows], state)
            rules.begin(len(rows))

            def choose(logits: Tensor, count: int) -> Tensor:
                return rules.add(choose_token(rules.apply(logits), wish.temperature, None, None, stream))

            steps = write_tokens(model, start, _count_room(model, first, wish), {rules.end}, choose)
            texts = collect(steps, len(rows))
            for row, text in zip(rows, texts, strict=True):
                text = text[:-1] if text[-1] == rules.end else text
                left = min(frames - places[row], model.encoder.frames)
                segments, done = rules.split(text, left)
                offset = places[row] * _STEP / _FRAMES
                found[row] += [Segment(offset + x.start, offset + x.end, x.tokens) for x in segments]
                places[row] += done


def _cut(features: Tensor, row: int, first: int, model: Whisper) -> Tensor:
    """Return the window of a row that begins at a frame, with zeros after the end."""
    size = model.encoder.frames
    part = ops.get_item(features, (slice(row, row + 1), slice(first, first + size)))
    return ops.pad(part, ((0, 0), (0, size - part.shape[1]), (0, 0)))


def _start(first: list[list[int]], state: WhisperState) -> tuple[Tensor, None, WhisperState]:
    return ops.array(first, dtype="int64", device=ops.get_device(state.contexts[0].key)), None, state


def _count_room(model: Whisper, first: list[list[int]], wish: Wish) -> int:
    """Return how many tokens are written at most."""
    room = model.decoder.longest - len(first[0]) + 1
    count = room if wish.most is None else wish.most
    check_count(count)
    check_sampling(wish.temperature, None, None)
    if count > room:
        raise ValueError(f"this Whisper has room for {room} tokens (max_target_positions), not for {count}")
    return count


def _read_settings(model: Whisper) -> dict[str, Any]:
    return {**model.settings.values, **{key: x for key, x in model.generation.items() if x is not None}}


def _first_tokens(model: Whisper, state: WhisperState, wish: Wish, has_times: bool) -> list[list[int]]:
    """Return what the decoder begins with: the start, and for models of several languages language and task."""
    known, batch = _read_settings(model), ops.shape(state.contexts[0].key)[0]
    start = known.get("decoder_start_token_id")
    if type(start) is not int:
        raise ConfigError(f"{model.settings.where} lacks decoder_start_token_id, with which the decoder begins")
    languages, tasks, quiet = known.get("lang_to_id"), known.get("task_to_id"), known.get("no_timestamps_token_id")
    last = [quiet] if type(quiet) is int and not has_times else []
    language, task = wish.language, wish.task
    if not isinstance(languages, dict) or not isinstance(tasks, dict):
        if language is not None or task != "transcribe":
            raise ValueError("this Whisper knows one language (generation_config.json has no lang_to_id)")
        return [[start, *last]] * batch
    if task not in tasks:
        raise ValueError(f"the task is one of {', '.join(tasks)}, not {task!r}")
    if language is None:
        chosen = _find_languages(model, state, batch, start, sorted(languages.values()))
    elif f"<|{language}|>" in languages:
        chosen = [languages[f"<|{language}|>"]] * batch
    else:
        raise ValueError(f"there is no language {language!r} in lang_to_id; there are {', '.join(languages)}")
    return [[start, token, tasks[task], *last] for token in chosen]


def _find_languages(model: Whisper, state: WhisperState, batch: int, start: int, known: list[int]) -> list[int]:
    """Return the likeliest token of a language for each sound."""
    hidden, _ = model.hidden_states([[start]] * batch, None, state)
    logits = ops.get_item(model.logits(hidden), (slice(None), -1))
    best = ops.argmax(ops.take(logits, ops.array(known, dtype="int64"), -1), -1)
    return [known[i] for i in ops.to_numpy(best).tolist()]


def _find_suppressed(model: Whisper) -> tuple[Tensor, Tensor]:
    """Return what is added to logits: minus infinity for tokens that are never written, or never written first."""
    tokens: list[set[int]] = []
    for key in ("suppress_tokens", "begin_suppress_tokens"):
        found = model.generation.get(key, model.settings.get(key)) or []
        if not isinstance(found, list) or not all(type(token) is int for token in found):
            raise ConfigError(f"generation_config.json has {key} = {found!r:.80}; it must be a list of tokens")
        tokens.append(set(found))
    weight, never, at_first = model.output.weight, tokens[0], tokens[0] | tokens[1]
    device, count = ops.get_device(weight), model.decoder.embedding.count
    rows = [[-math.inf if token in out else 0.0 for token in range(count)] for out in (never, at_first)]
    return ops.array(rows[0], dtype=weight.dtype, device=device), ops.array(rows[1], dtype=weight.dtype, device=device)


class _TimeRules:
    """Which tokens may follow those that are written, where times are written too.

    A text begins with a time. Times come in pairs, the end of a segment and the beginning of the next, or one before
    the end; they never decrease, and a segment does not end where it begins. Where all times together are likelier than
    any other token, a time is written.
    """

    end: int
    """The token that ends a text."""

    def __init__(self, model: Whisper) -> None:
        known = _read_settings(model)
        quiet, latest = known.get("no_timestamps_token_id"), known.get("max_initial_timestamp_index")
        ends = find_ends(model, None)
        if type(quiet) is not int or not ends or not (latest is None or type(latest) is int):
            raise ConfigError(
                f"{model.settings.where}, or generation_config.json, lacks no_timestamps_token_id, after which the "
                "tokens for times stand, or eos_token_id, or has another max_initial_timestamp_index than a number"
            )
        self.end, self._quiet, self._zero = min(ends), quiet, quiet + 1
        self._count = model.decoder.embedding.count
        self._latest = self._count if latest is None else self._zero + latest
        self._never, self._at_first = _find_suppressed(model)
        self._tokens = ops.arange(self._count, device=ops.get_device(self._never))
        self._texts: list[list[int]] = []

    def begin(self, batch: int) -> None:
        """Begin with so many empty texts."""
        self._texts = [[] for _ in range(batch)]

    def add(self, chosen: Tensor) -> Tensor:
        """Add a token to each text; return them."""
        for text, token in zip(self._texts, ops.to_numpy(chosen).tolist(), strict=True):
            text.append(token)
        return chosen

    def apply(self, logits: Tensor) -> Tensor:
        """Return the logits with minus infinity for what may not follow."""
        is_first = not self._texts[0]
        logits = ops.cast(ops.add(logits, self._at_first if is_first else self._never), "float32")
        bounds = ops.array(
            [self._find_bounds(text) for text in self._texts], dtype="int64", device=ops.get_device(logits)
        )
        least_text, least_time = (ops.get_item(bounds, (slice(None), slice(i, i + 1))) for i in range(2))
        tokens, is_time = self._tokens, ops.greater_equal(self._tokens, self._zero)
        may = ops.greater_equal(tokens, ops.where(is_time, least_time, least_text))
        may = ops.logical_and(may, ops.not_equal(tokens, self._quiet))
        if is_first:
            may = ops.logical_and(may, ops.less_equal(tokens, self._latest))
        logits = ops.where(may, logits, -math.inf)
        times = ops.logsumexp(ops.get_item(logits, (slice(None), slice(self._zero, None))), -1, keepdims=True)
        texts = ops.max(ops.get_item(logits, (slice(None), slice(self._zero))), -1, keepdims=True)
        return ops.where(ops.logical_and(ops.greater(times, texts), ops.logical_not(is_time)), -math.inf, logits)

    def _find_bounds(self, text: list[int]) -> tuple[int, int]:
        """Return the least token that is no time, and the least time, that may follow."""
        if not text:
            return self._zero, self._zero
        is_time, was_time = text[-1] >= self._zero, len(text) < 2 or text[-2] >= self._zero
        if is_time and was_time:
            return 0, self._count
        last = next((token for token in reversed(text) if token >= self._zero), self._zero - 1)
        return (self.end, last) if is_time else (0, last + 1)

    def split(self, text: list[int], frames: int) -> tuple[list[Segment], int]:
        """Return the segments of a text about so many frames, and after how many of them the next window begins."""
        is_time = [token >= self._zero for token in text]
        seconds = [(token - self._zero) * _STEP for token in text]
        cuts = [i for i in range(1, len(text)) if is_time[i] and is_time[i - 1]]
        words = [None if there else token for token, there in zip(text, is_time, strict=True)]

        def make(first: int, last: int, start: float, end: float) -> Segment:
            return Segment(start, end, [token for token in words[first:last] if token is not None])

        if not cuts:
            times = [x for x, there in zip(seconds, is_time, strict=True) if there]
            return [make(0, len(text), 0.0, times[-1] if times and times[-1] else frames // _FRAMES * _STEP)], frames
        is_whole = is_time[-2:] == [False, True]  # nothing is said after the last time
        ends = [*cuts, len(text)] if is_whole else cuts
        found = [make(a, b, seconds[a], seconds[b - 1]) for a, b in zip([0, *ends], ends, strict=False)]
        return found, frames if is_whole else (text[cuts[-1] - 1] - self._zero) * _FRAMES

"""Generate texts with a decoder: the prompt in one call, then one call for each new token, with a cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.backend.capabilities import Laziness
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.errors import ConfigError
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.nn.generation import check_sampling, choose_token, in_use
from ember_ml.tensor.ember_tensor import to_native
from ember_ml.typing import IndexLike, MaskLike, Tensor

__all__ = ["Request", "TextGenerator", "Texts", "check_choices", "find_ends", "write_tokens"]

Prompt = Sequence[int] | Sequence[Sequence[int]] | Tensor


class TextGenerator(PretrainedModel):
    """A model that writes texts token by token: subclasses define what :meth:`generate` calls."""

    def initial_state(self, batch: int) -> Any:
        """The state before anything was seen, for ``batch`` texts."""
        raise NotImplementedError(f"{type(self).__name__} does not define initial_state")

    def begin_generation(self, tokens: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None, Any]:
        """The tokens and mask of the first call, and the state before it, for padded prompts."""
        return tokens, mask, self.initial_state(ops.shape(tokens)[0])

    def hidden_states(self, tokens: IndexLike, mask: MaskLike | None = None, state: Any = None) -> tuple[Tensor, Any]:
        """What the last layer makes of the tokens, normalized, and the state after them, None without one."""
        raise NotImplementedError(f"{type(self).__name__} does not define hidden_states")

    def logits(self, hidden: Tensor) -> Tensor:
        """The logits of the next token, from :meth:`hidden_states`."""
        raise NotImplementedError(f"{type(self).__name__} does not define logits")

    def generate(
        self,
        tokens: Prompt,
        max_new_tokens: int = 128,
        *,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: int | Iterable[int] | None = None,
        on_tokens: Callable[[list[int | None]], Any] | None = None,
        compile: bool = False,
    ) -> list[list[int]] | list[int]:
        """The tokens that follow a prompt, or each of several prompts, as lists of integers without the prompt.

        Each new token is the likeliest one, or with a ``temperature`` above 0 drawn from the probabilities of the
        logits divided by it: with ``top_k`` from that many of the likeliest tokens, with ``top_p`` from the fewest of
        them whose probabilities add up to at least that. One ``seed`` gives the same tokens on every backend, as long
        as rounding does not decide. A text ends with a token of ``stop``, by default those that the model's files name
        as ``eos_token_id``, or after ``max_new_tokens``. Prompts of different lengths are padded before their first
        token.

        Args:
            tokens: One prompt, a list of integers, or a list of prompts.
            max_new_tokens: The most tokens for each prompt.
            temperature: 0 takes the likeliest token.
            top_k: The number of tokens to draw from.
            top_p: The sum of probabilities to draw from, above 0 and up to 1.
            seed: Where the random numbers start; None: anywhere.
            stop: Tokens that end a text; an empty list: none does.
            on_tokens: Called with the new token of each prompt, None where the text has ended; True stops all of them.
            compile: Whether the step from one token to the next is compiled, once for the number of prompts, the way of
                choosing and the length of the caches, a multiple of 256; that takes a while, and the tokens are the
                same up to rounding. On NumPy, which has no compiler, nothing changes. Decoders with caches of keys and
                values can be compiled; others raise.

        >>> from ember_ml import models
        >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2})
        >>> new = model.generate([1, 2, 3], max_new_tokens=4, stop=[])
        >>> len(new), new == model.generate([[4], [1, 2, 3]], max_new_tokens=4, stop=[])[1]
        (4, True)
        """
        rows, is_single = _read_prompts(tokens)
        check_choices(max_new_tokens, temperature, top_k, top_p)
        ends = find_ends(self, stop)
        stream = None if temperature == 0 else ops.random.Generator(seed)
        width = max(map(len, rows))
        padded = ops.array([[0] * (width - len(row)) + row for row in rows], dtype="int64")
        mask = None
        if any(len(row) < width for row in rows):
            mask = ops.array([[False] * (width - len(row)) + [True] * len(row) for row in rows])
        with in_use(self):
            start = self.begin_generation(padded, mask)
            if compile and active().compilation is not None:
                choice = (temperature, top_k, top_p)
                found = self.write_compiled(Request(start, max_new_tokens, ends, choice, stream, on_tokens))
            else:
                found = write_tokens(
                    self,
                    start,
                    max_new_tokens,
                    ends,
                    lambda logits, _: choose_token(logits, temperature, top_k, top_p, stream),
                    on_tokens,
                )
        return found[0] if is_single else found

    def write_compiled(self, request: Request) -> list[list[int]]:
        """Return what :func:`write_tokens` does, by a compiled program."""
        raise ValueError(f"{type(self).__name__} is not compiled for generation: leave compile=True out")


class Request(NamedTuple):
    """What a compiled program is to write."""

    start: tuple[Tensor, Tensor | None, Any]
    """Tokens, their mask, the state before them."""
    most: int
    """How many tokens at most."""
    ends: set[int]
    """The tokens that end a text."""
    choice: tuple[float, int | None, float | None]
    """Temperature, ``top_k``, ``top_p``."""
    stream: Any
    """Where random numbers come from."""
    on_tokens: Callable[[list[int | None]], Any] | None


class Texts:
    """The tokens that are written, row by row, until each row has ended."""

    found: list[list[int]]

    def __init__(self, batch: int, ends: set[int], on_tokens: Callable[[list[int | None]], Any] | None) -> None:
        self.found = [[] for _ in range(batch)]
        self._is_open = [True] * batch
        self._ends, self._on_tokens = ends, on_tokens

    def add(self, new: list[int]) -> bool:
        """Add one token to each row that has not ended; return whether nothing more is wanted."""
        shown = [token if is_there else None for token, is_there in zip(new, self._is_open, strict=True)]
        for row, token in enumerate(shown):
            if token is not None:
                self.found[row].append(token)
                self._is_open[row] = token not in self._ends
        wants_stop = self._on_tokens is not None and self._on_tokens(shown) is True
        return wants_stop or not any(self._is_open)


def write_tokens(
    model: Any,
    start: tuple[Tensor, Tensor | None, Any],
    most: int,
    ends: set[int],
    choose: Callable[[Tensor, int], Tensor],
    on_tokens: Callable[[list[int | None]], Any] | None = None,
) -> list[list[int]]:
    """Return what a model with ``hidden_states`` and ``logits`` writes after ``start``, its tokens, mask and state.

    ``choose`` gets the logits of the next tokens, and how many tokens are there with them; it returns one for each row.
    """
    texts = Texts(ops.shape(start[0])[0], ends, on_tokens)
    steps, backend = islice(_compute_tokens(model, start, choose), most), active()
    for chosen in steps if backend.laziness is None else _begin_ahead(steps, backend, backend.laziness):
        if texts.add(ops.to_numpy(chosen).tolist()):
            break
    return texts.found


def _compute_tokens(
    model: Any, start: tuple[Tensor, Tensor | None, Any], choose: Callable[[Tensor, int], Tensor]
) -> Iterator[Tensor]:
    """Yield one token for each row, (batch,), then those after them, without an end."""
    step, mask, state = start
    batch = ops.shape(step)[0]
    for number in count(1):
        hidden, state = model.hidden_states(step, mask, state)
        chosen = choose(model.logits(ops.get_item(hidden, (slice(None), -1))), number)
        yield chosen
        step, mask = ops.reshape(chosen, (batch, 1)), None


def _begin_ahead(steps: Iterator[Tensor], backend: Backend, laziness: Laziness) -> Iterator[Tensor]:
    """Yield each step after the next one has been begun, so that the library computes while the caller reads.

    A next step that fails does so when it is asked for: the text may end before it.
    """
    ahead = _begin_next(steps, backend, laziness)
    while ahead is not None:
        current, failure = ahead, None
        try:
            ahead = _begin_next(steps, backend, laziness)
        except Exception as error:
            ahead, failure = None, error
        yield current
        if failure is not None:
            raise failure


def _begin_next(steps: Iterator[Tensor], backend: Backend, laziness: Laziness) -> Tensor | None:
    step = next(steps, None)
    if step is not None:
        laziness.start(to_native(step, backend, None, None))
    return step


def _read_prompts(tokens: Prompt) -> tuple[list[list[int]], bool]:
    """Return the prompts as lists, and whether it is one alone."""
    data: Any = tokens if isinstance(tokens, list | tuple) else ops.to_numpy(tokens).tolist()
    is_single = bool(data) and not isinstance(data[0], list | tuple)
    rows = [list(row) for row in ([data] if is_single else data)]
    if not rows or not all(rows):
        raise ValueError("generate begins with at least one token for each prompt")
    return rows, is_single


def check_choices(count: int, temperature: float, top_k: int | None = None, top_p: float | None = None) -> None:
    """Raise where what :meth:`TextGenerator.generate` was told cannot be."""
    if count < 1:
        raise ValueError(f"max_new_tokens is at least 1, not {count!r}")
    check_sampling(temperature, top_k, top_p)


def find_ends(model: PretrainedModel, stop: int | Iterable[int] | None) -> set[int]:
    """Return the tokens that end a text: those of ``stop``, or where it is None those that the model's files name."""
    if stop is None:
        stop = model.generation.get("eos_token_id")
        stop = model.settings.get("eos_token_id", []) if stop is None else stop
        if not all(type(token) is int for token in (stop if isinstance(stop, list) else [stop])):
            raise ConfigError(
                f"{model.settings.where}, or generation_config.json, has eos_token_id = {stop!r:.80}; it must be a "
                "token or a list of tokens"
            )
    return {stop} if isinstance(stop, int) else set(stop or [])

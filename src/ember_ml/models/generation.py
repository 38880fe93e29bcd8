"""Generate texts with a decoder: the prompt in one call, then one call for each new token, with a cache."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from operator import index
from typing import Any, NamedTuple, SupportsIndex, TypedDict, Unpack

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.errors import ConfigError
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.token_choice import Choice, Chooser
from ember_ml.models.token_steps import NewTokens, Start, Texts, collect, write_tokens
from ember_ml.nn.generation import in_use
from ember_ml.typing import IndexLike, MaskLike, Tensor

__all__ = ["Choices", "Request", "TextGenerator", "check_count", "find_ends"]

Prompt = Sequence[int] | Sequence[Sequence[int]] | Tensor


class Choices(TypedDict, total=False):
    """What :meth:`TextGenerator.stream` may be told, as :meth:`TextGenerator.generate` explains it."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float
    seed: int | None
    stop: int | Iterable[int] | None
    compile: bool
    draft: TextGenerator | None


class TextGenerator(PretrainedModel):
    """A model that writes texts token by token: subclasses define what :meth:`generate` calls."""

    def initial_state(self, batch: int) -> Any:
        """The state before anything was seen, for ``batch`` texts."""
        raise NotImplementedError(f"{type(self).__name__} does not define initial_state")

    def begin_generation(self, tokens: Tensor, mask: Tensor | None) -> Start:
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
        min_p: float | None = None,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
        stop: int | Iterable[int] | None = None,
        on_tokens: Callable[[NewTokens], Any] | None = None,
        compile: bool = False,
        draft: TextGenerator | None = None,
    ) -> list[list[int]] | list[int]:
        """The tokens that follow a prompt, or each of several prompts, as lists of integers without the prompt.

        Each new token is the likeliest one, or with a ``temperature`` above 0 drawn from the probabilities of the
        logits divided by it: with ``top_k`` from that many of the likeliest tokens, with ``top_p`` from the fewest of
        them whose probabilities add up to at least that, with ``min_p`` from those that are at least that many times as
        likely as the likeliest. One ``seed`` gives the same tokens on every backend, as long as rounding does not
        decide. A text ends with a token of ``stop``, by default those that the model's files name as ``eos_token_id``,
        or after ``max_new_tokens``. Prompts of different lengths are padded before their first token.

        Args:
            tokens: One prompt, a list of integers, or a list of prompts.
            max_new_tokens: The most tokens for each prompt.
            temperature: 0 takes the likeliest token.
            top_k: The number of tokens to draw from.
            top_p: The sum of probabilities to draw from, above 0 and up to 1.
            min_p: The least probability to draw from, as a part of the largest, from 0 to 1.
            repetition_penalty: Logits of tokens that are there, in the prompt too, are divided by it, or where they are
                below 0 multiplied by it.
            seed: Where the random numbers start; None: anywhere.
            stop: Tokens that end a text; an empty list: none does.
            on_tokens: Called with the new token of each prompt, None where the text has ended; True stops all of them.
            compile: Whether the step from one token to the next is compiled, once for the number of prompts, the way of
                choosing and the length of the caches, a multiple of 256; that takes a while, and the tokens are the
                same up to rounding. On NumPy, which has no compiler, nothing changes. Decoders with caches of keys and
                values can be compiled; others raise.
            draft: A smaller model with the same tokens, for one prompt: it proposes tokens, of which the model reads
                several in one call. The tokens are those without it, up to rounding.

        >>> from ember_ml import models
        >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2})
        >>> new = model.generate([1, 2, 3], max_new_tokens=4, stop=[])
        >>> len(new), new == model.generate([[4], [1, 2, 3]], max_new_tokens=4, stop=[])[1]
        (4, True)
        """
        rows, is_single = _read_prompts(tokens)
        choice = Choice(temperature, top_k, top_p, min_p, repetition_penalty)
        request = self._request(rows, max_new_tokens, choice, seed, stop, compile, draft)
        found = collect(self._write(request._replace(is_streamed=on_tokens is not None)), len(rows), on_tokens)
        return found[0] if is_single else found

    def stream(
        self, tokens: Prompt, max_new_tokens: int = 128, **choices: Unpack[Choices]
    ) -> Generator[NewTokens] | Generator[int]:
        """The tokens of :meth:`generate` one by one, while they are written.

        For one prompt each item is a token; for several it is a list with the new token of each, None where a text has
        ended. The model is in the mode of use until the iterator is exhausted or closed; nothing is computed for tokens
        that are not asked for, but at most one.

        Args:
            tokens: One prompt, or a list of prompts.
            max_new_tokens: The most tokens for each prompt.
            choices: Those of :meth:`generate`, without ``on_tokens``.

        >>> from ember_ml import models
        >>> model = models.from_config({"model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2})
        >>> new = model.stream([1, 2, 3], 4, stop=[])
        >>> [next(new), *new] == model.generate([1, 2, 3], 4, stop=[])
        True
        """
        rows, is_single = _read_prompts(tokens)
        ways = {key: choices[key] for key in Choice._fields if key in choices}
        if unknown := choices.keys() - Choices.__annotations__.keys():
            raise TypeError(f"stream does not take {', '.join(sorted(unknown))}")
        request = self._request(
            rows,
            max_new_tokens,
            Choice(**ways),
            choices.get("seed"),
            choices.get("stop"),
            choices.get("compile", False),
            choices.get("draft"),
        )
        steps = self._write(request._replace(is_streamed=True))
        return _take_first(steps) if is_single else steps

    def _request(
        self,
        rows: list[list[int]],
        most: int,
        choice: Choice,
        seed: int | None,
        stop: int | Iterable[int] | None,
        compile: bool,
        draft: TextGenerator | None,
    ) -> Request:
        """Return what is to be written; raise where it cannot be."""
        check_count(most)
        choice.check()
        stream = None if choice.temperature == 0 else ops.random.Generator(seed)
        if not (draft is None or isinstance(draft, TextGenerator)):
            raise TypeError(f"a draft is a model that writes texts, not {type(draft).__name__}")
        if draft is not None and (compile or len(rows) > 1):
            raise ValueError("a draft is for one prompt, and without compile=True")
        return Request(rows, most, find_ends(self, stop), choice, stream, compile, draft)

    def _write(self, request: Request) -> Generator[NewTokens]:
        """Yield the new token of each text."""
        rows, most, choice = request.rows, request.most, request.choice
        width = max(map(len, rows))
        padded = ops.array([[0] * (width - len(row)) + row for row in rows], dtype="int64")
        mask = None
        if any(len(row) < width for row in rows):
            mask = ops.array([[False] * (width - len(row)) + [True] * len(row) for row in rows])
        with in_use(self):
            start = self.begin_generation(padded, mask)
            if request.compile and active().compilation is not None:
                yield from self.write_compiled(request, start)
                return
            chooser = Chooser(choice, request.stream, start[:2])
            if request.draft is None:
                yield from write_tokens(self, start, most, request.ends, chooser.choose)
                return
            from ember_ml.models.speculation import write_with_draft  # which needs this class

            with in_use(request.draft):
                begin = request.draft.begin_generation(padded, None)
                steps = write_with_draft(self, request.draft, start, begin, most, chooser)
                yield from Texts(1, request.ends).read(steps)

    def write_compiled(self, request: Request, start: Start) -> Iterator[NewTokens]:
        """Yield what :func:`write_tokens` does, by a compiled program."""
        raise ValueError(f"{type(self).__name__} is not compiled for generation: leave compile=True out")


class Request(NamedTuple):
    """What is to be written."""

    rows: list[list[int]]
    """The prompts."""
    most: int
    """How many tokens at most."""
    ends: set[int]
    """The tokens that end a text."""
    choice: Choice
    stream: Any
    """Where random numbers come from."""
    compile: bool
    draft: TextGenerator | None
    is_streamed: bool = False
    """Whether someone waits for each token."""


def _take_first(steps: Generator[NewTokens]) -> Generator[int]:
    """Yield the tokens of the only text."""
    with closing(steps):
        for (token,) in steps:
            assert token is not None
            yield token


def _read_prompts(tokens: Prompt) -> tuple[list[list[int]], bool]:
    """Return the prompts as lists, and whether it is one alone."""
    data: Any = list(tokens) if isinstance(tokens, list | tuple | range) else ops.to_numpy(tokens).tolist()
    if not isinstance(data, list):
        raise TypeError(f"a prompt is a list of tokens, not {data!r:.80}")
    is_single = bool(data) and not isinstance(data[0], Sequence) and not ops.ndim(data[0])
    rows = [_read_tokens(row, "a prompt") for row in ([data] if is_single else data)]
    if not rows or not all(rows):
        raise ValueError("generate begins with at least one token for each prompt")
    return rows, is_single


def _read_tokens(tokens: Any, where: str) -> list[int]:
    """Return tokens as a list of whole numbers; raise for anything else, such as texts and the -100 of labels."""
    data = ops.to_numpy(tokens).tolist() if ops.is_tensor(tokens) else tokens
    if not isinstance(data, Iterable):
        raise TypeError(f"{where} is a list of tokens, not {data!r:.80}")
    data = list(data)
    for token in data:
        if not isinstance(token, SupportsIndex) or isinstance(token, bool):
            hint = "; models.TextStream ends a text before a stop string" if where == "stop" else ""
            raise TypeError(f"the tokens of {where} are whole numbers, not {token!r:.80}{hint}")
        if index(token) < 0:
            raise ValueError(f"the tokens of {where} count from 0, there is none {token!r:.80}")
    return [index(token) for token in data]


def check_count(count: int) -> None:
    """Raise where so many new tokens cannot be written."""
    if not isinstance(count, SupportsIndex) or count < 1:
        raise ValueError(f"max_new_tokens is a whole number from 1 up, not {count!r:.80}")


def find_ends(model: PretrainedModel, stop: int | Iterable[int] | None) -> set[int]:
    """Return the tokens that end a text: those of ``stop``, or where it is None those that the model's files name."""
    if stop is None:
        found: Any = model.generation.get("eos_token_id")
        found = model.settings.get("eos_token_id", []) if found is None else found
        ends: list[Any] = found if isinstance(found, list) else [found]
        if not all(type(token) is int for token in ends):
            raise ConfigError(
                f"{model.settings.where}, or generation_config.json, has eos_token_id = {found!r:.80}; it must be a "
                "token or a list of tokens"
            )
        return set(ends)
    return set(_read_tokens([stop] if isinstance(stop, SupportsIndex) and not ops.ndim(stop) else stop, "stop"))

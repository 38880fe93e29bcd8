"""Write sequences token by token with any model that carries a state from one call to the next."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, SupportsIndex, cast

from ember_ml import ops
from ember_ml.backend.random import distributions
from ember_ml.backend.random.draw import draw
from ember_ml.backend.selection import active
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.modules.module import Module
from ember_ml.typing import IndexLike, Tensor

__all__ = ["arrange_weights", "check_sampling", "choose_token", "find_token", "generate", "in_use", "unrecorded"]

_COLD = 1e-3


def generate(
    model: Module,
    tokens: IndexLike,
    count: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: Any = None,
    *,
    top_p: float | None = None,
    stop: int | Iterable[int] = (),
) -> Tensor:
    """Return ``tokens`` (batch, length), or of one text (length,), with ``count`` more, drawn one after another.

    The model is any module with ``initial_state(batch)`` whose ``forward(tokens, state=state)`` returns the logits of
    the next token at each position, (batch, length, vocabulary), and the new state: a transformer with its caches, or a
    recurrent network. It is used in evaluation mode, and gets its own modes back.

    The logits are divided by ``temperature``; 0 takes the likeliest token. ``top_k`` leaves all but that many of the
    likeliest out, ``top_p`` all but the fewest whose probabilities add up to at least that. One ``seed`` gives the same
    tokens again, on every backend up to rounding of the logits. A text that has reached a token of ``stop`` repeats it
    while others go on; where all have, nothing more is drawn.

    >>> from ember_ml import nn, ops
    >>> class Letters(nn.Module):
    ...     def __init__(self):
    ...         self.embedding, self.lstm, self.output = nn.Embedding(5, 8), nn.LSTM(8, 8), nn.Linear(8, 5)
    ...     def initial_state(self, batch):
    ...         return self.lstm.initial_state(batch)
    ...     def forward(self, tokens, state):
    ...         y, state = self.lstm(self.embedding(tokens), state=state)
    ...         return self.output(y), state
    >>> ops.shape(nn.generate(Letters(), [[1, 2, 3]], count=4, seed=0))
    (1, 7)
    """
    given = ops.convert_to_tensor(tokens)
    if given.ndim not in (1, 2) or not given.shape[-1]:
        raise ValueError(f"generate begins with tokens of shape (batch, length), not {tuple(given.shape)}")
    check_sampling(temperature, top_k, top_p)
    if operator.index(count) < 0:
        raise ValueError(f"count is a number of tokens, not {count}")
    begin = getattr(model, "initial_state", None)
    if begin is None:
        raise TypeError(f"{type(model).__name__} cannot generate: it has no initial_state(batch), which begins a text")
    is_one = isinstance(stop, SupportsIndex) and not ops.ndim(stop)
    ends: list[Any] = [stop] if is_one else list(cast(Iterable[int], stop))
    rows = ops.reshape(given, (-1, given.shape[-1]))
    dtype = ops.dtype(rows)
    if dtype.kind in ("int", "uint") and dtype.bits < 32:  # it need not hold each token that is drawn
        rows = ops.cast(rows, "int64")
    # one stream for all tokens: a seed itself would begin anew at each
    stream = seed if seed is None or isinstance(seed, ops.random.Generator) else ops.random.Generator(seed)
    with in_use(model), unrecorded():
        found, state, is_open = [rows], begin(rows.shape[0]), None
        for _ in range(count):
            logits, state = _read_result(model, model(found[-1], state=state))
            drawn = ops.reshape(choose_token(logits[:, -1], temperature, top_k, top_p, stream), (-1, 1))
            drawn = drawn if drawn.dtype == rows.dtype else ops.cast(drawn, rows.dtype)
            if ends:
                drawn = drawn if is_open is None else ops.where(is_open, drawn, found[-1])
                is_open = ops.logical_not(ops.isin(drawn, ends))
            found.append(drawn)
            if is_open is not None and not ops.item(ops.any(is_open)):
                break
    whole = ops.concatenate(found, axis=1)
    return ops.reshape(whole, (-1,)) if given.ndim == 1 else whole


def _read_result(model: Module, result: Any) -> tuple[Tensor, Any]:
    """Return the logits and the state that a model gave."""
    if not isinstance(result, tuple | list) or len(result) != 2 or ops.ndim(result[0]) != 3:
        raise TypeError(
            f"{type(model).__name__} cannot generate: forward(tokens, state=state) returns no pair of logits, (batch, "
            "length, vocabulary), and the new state"
        )
    return result[0], result[1]


@contextmanager
def in_use(model: Module) -> Iterator[None]:
    """Put a model into the mode of use for a block, and each of its modules back into its own mode after it."""
    arrange_weights(model)
    modes = [(module, module.training) for _, module in model.named_modules()]
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def arrange_weights(model: Module) -> None:
    """Let the weights of linear maps lie in memory as the library reads them fastest; their values stay."""
    backend = active()
    if backend.weight_layout is None:
        return
    for _, module in model.named_modules():
        # that of a user's class may be computed, and that of a new layer is not there yet
        variable = dict(module.own_variables()).get("weight") if isinstance(module, Linear) else None
        if variable is not None:
            value = variable.value
            if variable.home is backend and not (backend.is_traced(value) or backend.is_recorded(value)):
                variable.hold(backend.weight_layout.arrange(value))


def unrecorded() -> AbstractContextManager[Any]:
    """Return a block for calls that nobody differentiates: tokens have no gradient."""
    gradients = active().gradients
    return nullcontext() if gradients is None or gradients.unrecorded is None else gradients.unrecorded()


def check_sampling(temperature: float, top_k: int | None, top_p: float | None, min_p: float | None = None) -> None:
    """Raise unless these say how to choose a token."""
    if not temperature >= 0:
        raise ValueError(f"the temperature is a number from 0 up, not {temperature!r}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k is at least 1, not {top_k!r}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p is above 0 and at most 1, not {top_p!r}")
    if min_p is not None and not 0 <= min_p <= 1:
        raise ValueError(f"min_p is a number from 0 to 1, not {min_p!r}")


def choose_token(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None, stream: Any) -> Tensor:
    """Return one token for each row of logits."""
    if temperature == 0:
        return ops.argmax(logits, -1)
    place = draw(distributions.UNIFORM.float32, (logits.shape[0], 1), ops.get_device(logits), stream)
    return find_token(logits, temperature, top_k, top_p, place)


def find_token(
    logits: Tensor,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    place: Tensor | None,
    min_p: float | None = None,
) -> Tensor:
    """Return one token for each row of logits, with ``place`` a number below 1 for each row, where one is drawn."""
    if temperature == 0 or place is None:
        return ops.argmax(logits, -1)
    scaled, tokens = logits if ops.dtype(logits) is ops.float32 else ops.cast(logits, "float32"), None
    if temperature < _COLD:  # what is divided by so little would overflow: the likeliest token has 0
        scaled, temperature = ops.subtract(scaled, ops.max(scaled, -1, keepdims=True)), max(temperature, 1e-30)
    scaled = scaled if temperature == 1 else ops.divide(scaled, temperature)
    if top_k is not None and top_k < scaled.shape[-1]:
        scaled, tokens = ops.top_k(scaled, top_k)
    if top_p is not None and top_p < 1:
        ordered = scaled if tokens is not None else ops.sort(scaled, descending=True)
        shares = ops.softmax(ordered)
        # a token stays while those before it do not reach top_p; the first always does
        stays = ops.less(ops.subtract(ops.cumsum(shares, -1), shares), top_p)
        least = ops.min(ops.where(stays, ordered, float("inf")), -1, keepdims=True)
        scaled = ops.where(ops.less(scaled, least), float("-inf"), scaled)
    if min_p:
        least = ops.add(ops.max(scaled, -1, keepdims=True), math.log(min_p))
        scaled = ops.where(ops.less(scaled, least), float("-inf"), scaled)
    # the token is the first whose running sum is above the number; the last sum is 1
    sums = ops.cumsum(ops.softmax(scaled), -1)
    drawn = ops.sum(ops.less_equal(ops.divide(sums, sums[:, -1:]), place), -1, keepdims=True)
    return ops.reshape(drawn if tokens is None else ops.take_along_axis(tokens, drawn, -1), (-1,))

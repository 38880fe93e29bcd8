"""Mamba 2 (Dao and Gu, 2024): a decoder whose layers keep a state instead of a cache of all positions.

For each layer ``x = x + mixer(norm(x))``. The mixer maps a position to a gate ``z``, to ``x``, ``B`` and ``C``, which a
short convolution over the last positions mixes, and to a step ``d`` for each head. The state of a head, a matrix,
becomes ``exp(d A) h + (d x) B.T``, with one ``A < 0`` for each head, and the result is ``h C + D x``, times ``silu(z)``
and normalized. All positions of a chunk are computed at once: what position ``t`` gets from ``s`` is ``C_t . B_s``
times the decay between them, as in an attention. The state goes from chunk to chunk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.errors import ConfigError
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.generation import TextGenerator
from ember_ml.models.names import Names
from ember_ml.models.settings import Settings
from ember_ml.nn.initializers import normal
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing import Conv1d, Embedding, Linear, RMSNorm
from ember_ml.nn.modules.module import Module
from ember_ml.typing import IndexLike, MaskLike, Tensor

__all__ = ["Mamba2", "MixerState"]

_MIXER = {"inputs": "in_proj", "near": "conv1d", "norm": "norm", "output": "out_proj"}
_MIXER_VECTORS = {"log_rate": "A_log", "skip": "D", "step_bias": "dt_bias"}
NAMES: Names = Names(
    {
        "embedding": "backbone.embeddings",
        "layers.{}.norm": "backbone.layers.{}.norm",
        **{f"layers.{{}}.mixer.{key}": f"backbone.layers.{{}}.mixer.{name}" for key, name in _MIXER.items()},
        **{f"layers.{{}}.mixer.{key}": f"backbone.layers.{{}}.mixer.{name}" for key, name in _MIXER_VECTORS.items()},
        "norm": "backbone.norm_f",
        "output": "lm_head",
    },
    prefix="backbone.",
    old={"backbone.embedding.weight": "backbone.embeddings.weight"},
)


class MixerState(NamedTuple):
    """What a layer keeps from one call to the next."""

    near: Tensor
    """The last inputs of the convolution, (batch, kernel - 1, channels)."""
    heads: Tensor
    """The states of the heads, (batch, heads, width, states)."""


class _Mixer(Layer):
    log_rate: Any
    skip: Any
    step_bias: Any

    def __init__(self, settings: Settings) -> None:
        hidden, self._states = settings.integer("hidden_size", 4096), settings.integer("state_size", 128)
        self._heads, self._width = settings.integer("num_heads", 128), settings.integer("head_dim", 64)
        self._groups, self._kernel = settings.integer("n_groups", 8), settings.integer("conv_kernel", 4)
        self._inner = self._heads * self._width
        if self._inner != int(settings.number("expand", 2) * hidden) or self._heads % self._groups:
            raise ConfigError(
                f"{settings.where} has {self._heads} heads (num_heads) of width {self._width} (head_dim) in "
                f"{self._groups} groups (n_groups), which do not make up hidden_size={hidden} times expand"
            )
        self._chunk, self._limits = settings.integer("chunk_size", 256), _read_limits(settings)
        self._channels = self._inner + 2 * self._groups * self._states
        has_bias = settings.flag("use_bias", False)
        self.inputs = Linear(hidden, self._inner + self._channels + self._heads, has_bias)
        has_near_bias = settings.flag("use_conv_bias", True)
        self.near = Conv1d(self._channels, self._channels, self._kernel, groups=self._channels, bias=has_near_bias)
        self.norm = RMSNorm(self._inner, settings.number("layer_norm_epsilon", 1e-5))
        self.output = Linear(self._inner, hidden, has_bias)
        self._activation = settings.choice("hidden_act", ACTIVATIONS, "silu")
        self.add_parameter("log_rate", (self._heads,), _draw_rates)
        self.add_parameter("skip", (self._heads,), "ones")
        least, most = settings.number("time_step_min", 0.001), settings.number("time_step_max", 0.1)
        self.add_parameter("step_bias", (self._heads,), lambda shape, dtype: _draw_steps(shape, dtype, least, most))

    def initial_state(self, batch: int) -> MixerState:
        """Return zeros."""
        weight = self.inputs.bias if self.inputs.bias is not None else self.skip
        where = {"device": ops.get_device(weight)}
        near = ops.zeros((batch, self._kernel - 1, self._channels), dtype=weight.dtype, **where)
        heads = ops.zeros((batch, self._heads, self._width, self._states), dtype="float32", **where)
        return MixerState(near, heads)

    def forward(self, x: Tensor, is_real: Tensor | None, state: MixerState) -> tuple[Tensor, MixerState]:
        """Return the result and the state after it; ``is_real``, (batch, length, 1), is false at padding."""
        batch, count, _ = x.shape
        x = x if is_real is None else ops.where(is_real, x, 0.0)
        gate, mixed, steps = ops.split(self.inputs(x), (self._inner, self._inner + self._channels), axis=-1)
        seen = ops.concatenate([ops.cast(state.near, mixed.dtype), mixed], 1)
        mixed = self._activation(self.near(seen))
        mixed = mixed if is_real is None else ops.where(is_real, mixed, 0.0)
        size = self._groups * self._states
        values, into, out = ops.split(ops.cast(mixed, "float32"), (self._inner, self._inner + size), axis=-1)
        steps = ops.softplus(ops.add(ops.cast(steps, "float32"), ops.cast(self.step_bias, "float32")))
        steps = ops.clip(steps, *self._limits)
        decays = ops.multiply(steps, ops.negative(ops.exp(ops.cast(self.log_rate, "float32"))))
        values = ops.reshape(values, (batch, count, self._heads, self._width))
        moved = ops.multiply(values, ops.expand_dims(steps, -1))
        into, out = (self._spread(part, batch, count) for part in (into, out))
        heads, found = state.heads, []
        for first in range(0, count, self._chunk):
            part = (slice(None), slice(first, first + self._chunk))
            wrote, decayed, entered, read = (ops.get_item(t, part) for t in (moved, decays, into, out))
            y, heads = _compute_chunk(wrote, decayed, entered, read, heads)
            found.append(y)
        y = found[0] if len(found) == 1 else ops.concatenate(found, 1)
        y = ops.add(y, ops.multiply(values, ops.expand_dims(ops.cast(self.skip, "float32"), -1)))
        y = ops.multiply(ops.reshape(y, (batch, count, self._inner)), ops.silu(ops.cast(gate, "float32")))
        near = ops.get_item(seen, (slice(None), slice(count, None)))
        return self.output(ops.cast(self.norm(y), x.dtype)), MixerState(near, heads)

    def _spread(self, x: Tensor, batch: int, count: int) -> Tensor:
        """Return what the heads of a group share, (batch, count, heads, states)."""
        x = ops.reshape(x, (batch, count, self._groups, self._states))
        shared = self._heads // self._groups
        return x if shared == 1 else ops.repeat(x, shared, axis=2)


def _compute_chunk(values: Tensor, decays: Tensor, into: Tensor, out: Tensor, heads: Tensor) -> tuple[Tensor, Tensor]:
    """Return the results of a few positions, (batch, count, heads, width), and the states after them.

    Of what each position writes (``values``, ``into``), of what it reads (``out``) and of the logarithms of its decays.
    """
    count = values.shape[1]
    logs = ops.transpose(decays, (0, 2, 1))  # (batch, heads, count)
    values, into, out = (ops.transpose(t, (0, 2, 1, 3)) for t in (values, into, out))
    from_start = ops.expand_dims(ops.exp(ops.cumsum(logs, -1)), -1)
    found = ops.multiply(ops.matmul(out, ops.transpose(heads, (0, 1, 3, 2))), from_start)
    if count == 1:
        to_end = ops.ones_like(from_start)
        weights = ops.matmul(out, ops.transpose(into, (0, 1, 3, 2)))
    else:
        device = ops.get_device(values)
        # each column sums up only what lies between two positions, so that no large sums cancel
        later = ops.where(ops.tri(count, count, -1, dtype="bool", device=device), ops.expand_dims(logs, -1), 0.0)
        between = ops.exp(ops.cumsum(later, -2))
        to_end = ops.expand_dims(ops.get_item(between, (..., -1, slice(None))), -1)
        past = ops.tri(count, count, 0, dtype="bool", device=device)
        products = ops.matmul(out, ops.transpose(into, (0, 1, 3, 2)))
        weights = ops.where(past, ops.multiply(products, between), 0.0)
    found = ops.add(found, ops.matmul(weights, values))
    whole = ops.get_item(from_start, (slice(None), slice(None), slice(-1, None)))
    written = ops.matmul(ops.transpose(values, (0, 1, 3, 2)), ops.multiply(into, to_end))
    return ops.transpose(found, (0, 2, 1, 3)), ops.add(ops.multiply(heads, whole), written)


class _Block(Module):
    def __init__(self, settings: Settings) -> None:
        self.norm = RMSNorm(settings.integer("hidden_size", 4096), settings.number("layer_norm_epsilon", 1e-5))
        self.mixer = _Mixer(settings)
        self._is_wide = settings.flag("residual_in_fp32", True)

    def forward(self, x: Tensor, is_real: Tensor | None, state: MixerState) -> tuple[Tensor, MixerState]:
        found, state = self.mixer(self.norm(ops.cast(x, self.norm.weight.dtype)), is_real, state)
        x = ops.cast(x, "float32") if self._is_wide else x
        return ops.add(x, ops.cast(found, x.dtype)), state


class Mamba2(TextGenerator):
    """Mamba 2 with its head: logits of the next token for each position of (batch, length) integers.

    ``mask`` is false, or 0, at padding, which stands before the tokens of a row. With ``state``, which
    :meth:`initial_state` makes, the model goes on where the last call stopped, and returns the logits and the new
    state.
    """

    names: Names
    embedding: Embedding
    layers: list[Any]
    norm: RMSNorm
    output: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = NAMES
        hidden, vocabulary = settings.integer("hidden_size", 4096), settings.integer("vocab_size", 32768)
        self.embedding = Embedding(vocabulary, hidden, normal(0.1))
        self.layers = [_Block(settings) for _ in range(settings.integer("num_hidden_layers", 64, most=1000))]
        self.norm = RMSNorm(hidden, settings.number("layer_norm_epsilon", 1e-5))
        self.output = Linear(hidden, vocabulary, bias=False)
        if settings.flag("tie_word_embeddings", False):
            self.output.weight = self.embedding.variable("weight")

    def initial_state(self, batch: int) -> tuple[MixerState, ...]:
        """The states of all layers before anything was seen."""
        return tuple(layer.mixer.initial_state(batch) for layer in self.layers)

    def forward(
        self, tokens: IndexLike, mask: MaskLike | None = None, state: tuple[MixerState, ...] | None = None
    ) -> Any:
        hidden, after = self.hidden_states(tokens, mask, state)
        logits = self.logits(hidden)
        return logits if state is None else (logits, after)

    def hidden_states(
        self, tokens: IndexLike, mask: MaskLike | None = None, state: tuple[MixerState, ...] | None = None
    ) -> tuple[Tensor, tuple[MixerState, ...] | None]:
        """What the last layer makes of the tokens, normalized, and the state after them, None without one."""
        tokens = ops.asarray(tokens)
        if tokens.ndim != 2 or not tokens.shape[1]:
            raise ValueError(f"Mamba2 takes tokens of shape (batch, length), not {ops.shape(tokens)}")
        is_real = None
        if mask is not None:
            is_real = ops.expand_dims(ops.asarray(mask, dtype="bool", device=ops.get_device(tokens)), -1)
        x, after = self.embedding(tokens), []
        for layer, before in zip(self.layers, state or self.initial_state(x.shape[0]), strict=True):
            x, new = layer(x, is_real, before)
            after.append(new)
        return self.norm(ops.cast(x, self.norm.weight.dtype)), None if state is None else tuple(after)

    def logits(self, hidden: Tensor) -> Tensor:
        return self.output(hidden)


def _read_limits(settings: Settings) -> tuple[float, float | None]:
    """Return the least and the largest step; None: there is no largest."""
    found = settings.get("time_step_limit", [0.0, None])
    least, most = found if isinstance(found, list) and len(found) == 2 else (None, None)
    most = None if most == {"__float__": "Infinity"} else most
    if not isinstance(least, int | float) or not isinstance(most, int | float | None):
        raise ConfigError(f"{settings.where} has time_step_limit = {found!r:.80}; it must be two numbers")
    return float(least), None if most is None else float(most)


def _draw_rates(shape: Sequence[int], dtype: Any) -> Tensor:
    """Return the logarithms of 1, 2, 3 and so on."""
    return ops.log(ops.arange(1, shape[0] + 1, dtype=dtype))


def _draw_steps(shape: Sequence[int], dtype: Any, least: float, most: float) -> Tensor:
    """Return what softplus makes steps of, which are drawn between two bounds, evenly in their logarithms."""
    steps = ops.exp(ops.random_uniform(shape, math.log(least), math.log(most), dtype=dtype))
    return ops.log(ops.expm1(steps))

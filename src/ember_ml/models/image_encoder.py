"""What encoders of images share: patches with positions, and layers that normalize before each part."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.errors import ConfigError
from ember_ml.models.settings import Settings
from ember_ml.nn.initializers import constant, normal
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing import Conv2d, Dropout, LayerNorm, Linear
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.modules.module import Module
from ember_ml.typing import MaskLike, Tensor, TensorLike

__all__ = ["EncoderBlock", "FusedGatedMLP", "Patches", "QueryPooling", "check_images", "drop_samples", "read_sides"]


class FusedGatedMLP(Module):
    """``down(act(gate(x)) * up(x))`` with one linear map for gate and up, and biases."""

    gate_up: Linear
    down: Linear

    def __init__(self, hidden: int, inner: int, activation: Callable[[Any], Any]) -> None:
        self.gate_up, self.down = Linear(hidden, 2 * inner), Linear(inner, hidden)
        self._activation = activation

    def forward(self, x: Tensor) -> Tensor:
        gate, up = ops.split(self.gate_up(x), 2, axis=-1)
        return self.down(ops.multiply(self._activation(gate), up))


class EncoderBlock(Layer):
    """``x = x + attention(norm(x))``, then ``x = x + mlp(norm(x))``; with ``scale`` each part times a learned vector.

    Args:
        hidden: The width of a position.
        heads: The number of heads.
        mlp: The network of each position.
        epsilon: That of the norms.
        bias: Whether queries, keys and values have biases.
        dropout: The share of each part's numbers that become 0 in training.
        attention_dropout: The share of the attention's weights that do.
        scale: What the learned vectors start with; None: there are none.
        dropped: The share of samples to which a part adds nothing in training.
    """

    attention_norm: LayerNorm
    attention: GroupedQueryAttention
    attention_scale: Any
    mlp_norm: LayerNorm
    mlp: Any
    drop: Dropout
    mlp_scale: Any

    def __init__(
        self,
        hidden: int,
        heads: int,
        mlp: Module,
        epsilon: float,
        bias: bool = True,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        scale: float | None = None,
        dropped: float = 0.0,
    ) -> None:
        self.attention_norm, self.mlp_norm = LayerNorm(hidden, epsilon), LayerNorm(hidden, epsilon)
        self.attention = GroupedQueryAttention(hidden, heads, bias=bias, output_bias=True, dropout=attention_dropout)
        self.mlp, self.drop = mlp, Dropout(dropout)
        self._is_scaled, self._dropped = scale is not None, dropped
        if scale is not None:
            self.add_parameter("attention_scale", (hidden,), constant(scale))
            self.add_parameter("mlp_scale", (hidden,), constant(scale))

    def forward(self, x: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        dropped = self._dropped if self.training else 0.0
        found = self.drop(self.attention(self.attention_norm(x), mask, is_causal=is_causal))
        found = ops.multiply(found, self.attention_scale) if self._is_scaled else found
        x = ops.add(x, drop_samples(found, dropped))
        found = self.drop(self.mlp(self.mlp_norm(x)))
        found = ops.multiply(found, self.mlp_scale) if self._is_scaled else found
        return ops.add(x, drop_samples(found, dropped))


class QueryPooling(Layer):
    """What a learned query collects from all positions, and a network of it: one vector for each image."""

    query: Any
    qkv: Linear
    output: Linear
    norm: LayerNorm
    mlp: Any

    def __init__(self, hidden: int, heads: int, mlp: Any, epsilon: float) -> None:
        self.add_parameter("query", (1, 1, hidden), normal(0.02))
        self.qkv, self.output = Linear(hidden, 3 * hidden), Linear(hidden, hidden)
        self.norm = LayerNorm(hidden, epsilon)
        self.mlp, self._heads = mlp, heads

    def forward(self, x: Tensor) -> Tensor:
        batch, width = x.shape[0], x.shape[2]
        query = ops.split(self.qkv(self.query), 3, axis=-1)[0]
        _, key, value = (
            ops.reshape(part, (batch, -1, self._heads, width // self._heads))
            for part in ops.split(self.qkv(x), 3, axis=-1)
        )
        query = ops.broadcast_to(ops.reshape(query, (1, 1, *key.shape[2:])), (batch, 1, *key.shape[2:]))
        found = self.output(ops.reshape(ops.dot_product_attention(query, key, value), (batch, width)))
        return ops.add(found, self.mlp(self.norm(found)))


class Patches(Layer):
    """Images as sequences: a linear map of each patch, a first vector where there is one, and learned positions.

    Images of another size than that of training get positions in between, by bicubic interpolation.

    Args:
        settings: Those of the encoder: ``image_size``, ``patch_size``, ``num_channels``.
        hidden: The width of a position.
        bias: Whether the linear map has a bias.
        first: The shape of the first vector; None: there is none.
        has_batch_axis: Whether the positions are stored with an axis of length 1 before the others.
        masked: The shape of the vector that stands for hidden patches; None: there is none.
    """

    map: Conv2d
    first: Any
    masked: Any
    places: Any

    def __init__(
        self,
        settings: Settings,
        hidden: int,
        bias: bool = True,
        first: tuple[int, ...] | None = None,
        has_batch_axis: bool = False,
        masked: tuple[int, ...] | None = None,
        size: int = 224,
        patch: int = 16,
    ) -> None:
        sides, self._patch = read_sides(settings, "image_size", size), read_sides(settings, "patch_size", patch)
        self._grid = (sides[0] // self._patch[0], sides[1] // self._patch[1])
        self._hidden, self._has_first, self._has_masked = hidden, first is not None, masked is not None
        self.channels: int = settings.integer("num_channels", 3)
        if not all(self._grid):
            raise ConfigError(f"{settings.where} has images of {sides} and patches of {self._patch}, which are larger")
        self.map = Conv2d(self.channels, hidden, self._patch, self._patch, bias=bias)
        count = math.prod(self._grid) + self._has_first
        self.add_parameter("places", (1, count, hidden) if has_batch_axis else (count, hidden), normal(0.02))
        if first is not None:
            self.add_parameter("first", first, normal(0.02))
        if masked is not None:
            self.add_parameter("masked", masked, "zeros")

    def forward(self, images: TensorLike, hidden_patches: MaskLike | None = None) -> Tensor:
        images = check_images(images, self.channels, self.map.weight.dtype)
        x = self.map(images)
        batch, *grid, width = x.shape
        x = ops.reshape(x, (batch, -1, width))
        if hidden_patches is not None:
            if not self._has_masked:
                raise ValueError("this model has no vector for hidden patches")
            is_hidden = ops.expand_dims(ops.asarray(hidden_patches, dtype="bool", device=ops.get_device(x)), -1)
            x = ops.where(is_hidden, ops.reshape(self.masked, (1, 1, width)), x)
        if self._has_first:
            first = ops.broadcast_to(ops.reshape(self.first, (1, 1, width)), (batch, 1, width))
            x = ops.concatenate([first, x], 1)
        return ops.add(x, self._positions((grid[0], grid[1])))

    def _positions(self, grid: tuple[int, int]) -> Tensor:
        """Return the positions of a grid of patches, (1, count, hidden)."""
        places = ops.reshape(self.places, (1, -1, self._hidden))
        if grid == self._grid:
            return places
        start = int(self._has_first)
        plane = ops.reshape(
            ops.cast(ops.get_item(places, (0, slice(start, None))), "float32"), (*self._grid, self._hidden)
        )
        device = ops.get_device(places)
        rows, columns = (
            ops.array(_interpolation(*sides), dtype="float32", device=device)
            for sides in zip(self._grid, grid, strict=True)
        )
        plane = ops.reshape(ops.matmul(rows, ops.reshape(plane, (self._grid[0], -1))), (grid[0], self._grid[1], -1))
        found = ops.cast(ops.reshape(ops.matmul(columns, plane), (1, -1, self._hidden)), places.dtype)
        first = ops.get_item(places, (slice(None), slice(start)))
        return ops.concatenate([first, found], 1) if start else found


def drop_samples(x: Tensor, share: float) -> Tensor:
    """Return ``x`` with that share of the samples of a batch 0, and the others scaled up (Huang et al., 2016)."""
    if not share:
        return x
    ones = ops.ones((x.shape[0], *(1,) * (x.ndim - 1)), dtype=x.dtype, device=ops.get_device(x))
    return ops.multiply(x, ops.dropout(ones, share))


def _interpolation(old: int, new: int) -> list[list[float]]:
    """Return the weights of ``old`` numbers in each of ``new``, by the cubic kernel of Keys (1981) with a = -3/4."""

    def weigh(distance: float) -> float:
        if distance < 1:
            return (1.25 * distance - 2.25) * distance**2 + 1
        return -0.75 * (((distance - 5) * distance + 8) * distance - 4)

    table = [[0.0] * old for _ in range(new)]
    for row, weights in enumerate(table):
        centre = (row + 0.5) * old / new - 0.5
        for tap in range(math.floor(centre) - 1, math.floor(centre) + 3):
            weights[min(max(tap, 0), old - 1)] += weigh(abs(centre - tap))  # beyond the edge stands the edge
    return table


def check_images(images: TensorLike, channels: int, dtype: Any) -> Tensor:
    """Return images as a tensor of ``dtype``; raise unless they are (batch, height, width, channels)."""
    found = ops.asarray(images)
    if found.ndim != 4 or found.shape[-1] != channels:
        raise ValueError(
            f"images are (batch, height, width, channels) with {channels} channels, not of shape {ops.shape(found)}"
        )
    return ops.cast(found, dtype)


def read_sides(settings: Settings, key: str, default: int) -> tuple[int, int]:
    """Return a height and a width, which the settings may give as one number."""
    value = settings.get(key, default)
    if not isinstance(value, list):
        side = settings.integer(key, default, most=100_000)
        return side, side
    if len(value) != 2 or not all(type(side) is int and 0 < side <= 100_000 for side in value):
        raise ConfigError(f"{settings.where} has {key} = {value!r:.80}; it must be a whole number or two of them")
    return value[0], value[1]

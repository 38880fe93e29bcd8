"""Layers that mix the channels of each position alone, and those that reduce positions."""

from __future__ import annotations

from ember_ml.nn.layers.channel_mixing.dropout import Dropout
from ember_ml.nn.layers.channel_mixing.linear import Linear

__all__ = ["Dropout", "Linear"]

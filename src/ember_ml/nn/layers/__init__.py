"""Layers: those that mix the channels of each position, and those that mix the positions of a sequence."""

from __future__ import annotations

from ember_ml.nn.layers import base, channel_mixing, sequence_mixing, specialized

__all__ = ["base", "channel_mixing", "sequence_mixing", "specialized"]

"""Layers: those that mix the channels of each position, or the positions of a sequence, or change samples at random."""

from __future__ import annotations

from ember_ml.nn.layers import augmentation, base, channel_mixing, sequence_mixing, specialized

__all__ = ["augmentation", "base", "channel_mixing", "sequence_mixing", "specialized"]

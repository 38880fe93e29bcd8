"""Building blocks of networks: the activations."""

from __future__ import annotations

from ember_ml.nn.modules import activations

__all__ = ["activations"]

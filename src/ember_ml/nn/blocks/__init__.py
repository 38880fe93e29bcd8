"""Blocks: layers put together that keep the shape of their input and are stacked to make networks."""

from __future__ import annotations

from ember_ml.nn.blocks.language import LanguageModel
from ember_ml.nn.blocks.mixer import MixerBlock
from ember_ml.nn.blocks.residual import Residual
from ember_ml.nn.blocks.transformer import Transformer, TransformerBlock

__all__ = ["LanguageModel", "MixerBlock", "Residual", "Transformer", "TransformerBlock"]

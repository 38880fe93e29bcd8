"""Layers that mix the channels of each position alone, and those that reduce positions."""

from __future__ import annotations

from ember_ml.nn.layers.channel_mixing.base import ChannelMixingLayer
from ember_ml.nn.layers.channel_mixing.convolution import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from ember_ml.nn.layers.channel_mixing.dropout import Dropout
from ember_ml.nn.layers.channel_mixing.embedding import Embedding
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.layers.channel_mixing.mixture import MixtureOfExperts
from ember_ml.nn.layers.channel_mixing.mlp import GEGLU, MLP, GatedMLP, SwiGLU
from ember_ml.nn.layers.channel_mixing.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from ember_ml.nn.layers.channel_mixing.pooling import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveAvgPool3d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    GlobalAvgPool,
    GlobalMaxPool,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from ember_ml.nn.layers.channel_mixing.separable import (
    DepthwiseConv1d,
    DepthwiseConv2d,
    DepthwiseConv3d,
    SeparableConv1d,
    SeparableConv2d,
    SeparableConv3d,
)
from ember_ml.nn.layers.channel_mixing.shaping import Flatten, Identity, Mask, Reshape

__all__ = [
    "GEGLU",
    "MLP",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "BatchNorm",
    "ChannelMixingLayer",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "DepthwiseConv1d",
    "DepthwiseConv2d",
    "DepthwiseConv3d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GatedMLP",
    "GlobalAvgPool",
    "GlobalMaxPool",
    "GroupNorm",
    "Identity",
    "InstanceNorm",
    "LayerNorm",
    "Linear",
    "Mask",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MixtureOfExperts",
    "RMSNorm",
    "Reshape",
    "SeparableConv1d",
    "SeparableConv2d",
    "SeparableConv3d",
    "SwiGLU",
]

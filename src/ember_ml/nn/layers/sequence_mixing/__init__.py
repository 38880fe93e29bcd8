"""Layers that mix the positions of a sequence."""

from __future__ import annotations

from ember_ml.nn.layers.sequence_mixing.attention import Attention, CrossAttention, KeyValueCache
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.nn.layers.sequence_mixing.continuous import CfC
from ember_ml.nn.layers.sequence_mixing.convolution import CausalConv1d
from ember_ml.nn.layers.sequence_mixing.linear_attention import LinearAttention
from ember_ml.nn.layers.sequence_mixing.recurrent import GRU, LSTM, RNN
from ember_ml.nn.layers.sequence_mixing.state_space import StateSpace

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Attention",
    "CausalConv1d",
    "CfC",
    "CrossAttention",
    "KeyValueCache",
    "LinearAttention",
    "SequenceMixingLayer",
    "StateSpace",
]

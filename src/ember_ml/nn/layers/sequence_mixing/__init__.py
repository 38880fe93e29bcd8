"""Layers that mix the positions of a sequence."""

from __future__ import annotations

from ember_ml.nn.layers.sequence_mixing.attention import Attention, CrossAttention
from ember_ml.nn.layers.sequence_mixing.base import SequenceMixingLayer
from ember_ml.nn.layers.sequence_mixing.continuous import CFC
from ember_ml.nn.layers.sequence_mixing.convolution import CausalConv1d
from ember_ml.nn.layers.sequence_mixing.grouped_query import GroupedQueryAttention
from ember_ml.nn.layers.sequence_mixing.linear_attention import LinearAttention
from ember_ml.nn.layers.sequence_mixing.recurrent import GRU, LSTM, RNN
from ember_ml.nn.layers.sequence_mixing.state_space import StateSpace

__all__ = [
    "CFC",
    "GRU",
    "LSTM",
    "RNN",
    "Attention",
    "CausalConv1d",
    "CrossAttention",
    "GroupedQueryAttention",
    "LinearAttention",
    "SequenceMixingLayer",
    "StateSpace",
]

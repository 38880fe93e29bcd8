"""Recurrent layers on PyTorch's own functions, which loop over the positions in C++, or on the GPU in one kernel."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch

from ember_ml.backend.torch.gradients import may_be_differentiated_again

__all__ = ["run"]

_FUNCTIONS: dict[str, Any] = {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu, "gru": torch.gru, "lstm": torch.lstm}


def run(
    kind: str,
    x: torch.Tensor,
    state: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    has_bias: bool,
    layers: int,
    bidirectional: bool,
) -> tuple[torch.Tensor, Sequence[torch.Tensor]] | None:
    """The results and the last state, or None where the loop in Python must compute them."""
    tensors = (x, *state, *weights)
    if x.dtype not in (torch.float32, torch.float64) or not x.numel():
        return None
    if torch.compiler.is_compiling() or may_be_differentiated_again():
        return None
    if any(type(t) is not torch.Tensor or t.dtype is not x.dtype or t.device != x.device for t in tensors):
        return None
    start = list(state) if kind == "lstm" else state[0]
    # as in training, where alone cuDNN keeps what its gradient needs
    with warnings.catch_warnings() if x.is_cuda else nullcontext():
        if x.is_cuda:  # cuDNN gathers the weights at each call, and says so; ours are tensors of their own
            warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
        y, *last = _FUNCTIONS[kind](x, start, list(weights), has_bias, layers, 0.0, True, bidirectional, True)
    return y, last

"""Recurrent layers on PyTorch's own functions, which loop over the positions in C++, or on the GPU in one kernel."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from ember_ml.backend.torch.gradients import may_be_differentiated_again

__all__ = ["run"]

_FUNCTIONS: dict[str, Any] = {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu, "gru": torch.gru, "lstm": torch.lstm}

_SMALL = 384
"""States up to this length go to cuDNN as sequences of several lengths would.

For others it has kernels, chosen by torch, whose tanh is wrong by 1e-5; where TF32 is allowed, speed is preferred.
"""


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
    function = _FUNCTIONS[kind]
    # as in training, where alone cuDNN keeps what its gradient needs
    rest = (start, list(weights), has_bias, layers, 0.0, True, bidirectional)
    if not x.is_cuda:
        y, *last = function(x, *rest, True)
        return y, last
    with warnings.catch_warnings():
        # cuDNN gathers the weights at each call, and says so; ours are tensors of their own
        warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
        if state[0].shape[-1] > _SMALL or _is_tf32_allowed():
            y, *last = function(x, *rest, True)
        else:
            batch, length = x.shape[:2]
            sizes = torch.full((length,), batch, dtype=torch.int64, device="cpu")
            y, *last = function(x.transpose(0, 1).reshape(length * batch, -1), sizes, *rest)
            y = y.reshape(length, batch, -1).transpose(0, 1)
    return y, last


def _is_tf32_allowed() -> bool:
    newer = getattr(getattr(torch.backends.cudnn, "rnn", None), "fp32_precision", None)
    return torch.backends.cudnn.allow_tf32 if newer is None else newer == "tf32"

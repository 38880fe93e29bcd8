"""Recurrent layers by PyTorch's own functions, which loop over the positions in C++, or in one kernel on the GPU."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch

from ember_ml.backend.torch.gradients import may_be_differentiated_again

__all__ = ["pullback", "run"]

pullback = None

_FUNCTIONS: dict[str, Any] = {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu, "gru": torch.gru, "lstm": torch.lstm}

# torch 2.11 on CUDA: for sequences of one length, torch chooses kernels of cuDNN whose tanh is wrong by 1e-5. States up
# to this length are passed as sequences of several lengths, unless TF32, which prefers speed, is allowed.
_SMALL = 384


def run(
    kind: str,
    x: torch.Tensor,
    state: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    has_bias: bool,
    layers: int,
    bidirectional: bool,
) -> tuple[torch.Tensor, Sequence[torch.Tensor]] | None:
    """Return the results and the last state, or None where the loop in Python must compute them."""
    tensors = (x, *state, *weights)
    if x.dtype not in (torch.float32, torch.float64) or not x.numel():
        return None
    if torch.compiler.is_compiling() or may_be_differentiated_again():
        return None
    if any(type(t) is not torch.Tensor or t.dtype is not x.dtype or t.device != x.device for t in tensors):
        return None
    start = list(state) if kind == "lstm" else state[0]
    function = _FUNCTIONS[kind]
    # torch 2.11 on CUDA: cuDNN keeps what its gradient needs in training mode only
    rest = (start, list(weights), has_bias, layers, 0.0, True, bidirectional)
    if not x.is_cuda:
        y, *last = function(x, *rest, True)
        return y, last
    with warnings.catch_warnings():
        # torch 2.11 on CUDA: warns that cuDNN copies the weights, which are separate tensors here, at each call
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

"""PyTorch's own call for each op that the benchmark compares."""

from __future__ import annotations

from typing import Any

import torch

calls = {
    "add": torch.add,
    "multiply": torch.multiply,
    "sin": torch.sin,
    "matmul": torch.matmul,
    "mean": torch.mean,
    "reshape": torch.reshape,
    "concatenate": torch.cat,
    "abs": torch.abs,
    "log": torch.log,
}


def evaluate(x: Any) -> Any:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
    elif x.is_mps:
        torch.mps.synchronize()
    return x

"""The recipe of examples/nanogpt.py in plain PyTorch: model, groups, rates, clipping, accumulation, autocast."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

__all__ = ["train"]


def _forward(p: Mapping[str, torch.Tensor], x: torch.Tensor, layers: int, heads: int) -> torch.Tensor:
    y = p["tokens.weight"][x] + p["positions.weight"][: x.shape[1]]
    width = y.shape[-1]
    for layer in range(layers):
        q = {name.split(".", 2)[2]: value for name, value in p.items() if name.startswith(f"blocks.{layer}.")}
        z = F.layer_norm(y, (width,), q["attention_norm.weight"], q["attention_norm.bias"])
        parts = F.linear(z, q["attention.qkv.weight"], q["attention.qkv.bias"]).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (heads, width // heads)).transpose(1, 2) for part in parts)
        z = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(-2)
        y = y + F.linear(z, q["attention.output.weight"], q["attention.output.bias"])
        z = F.layer_norm(y, (width,), q["mlp_norm.weight"], q["mlp_norm.bias"])
        z = F.gelu(F.linear(z, q["mlp.up.weight"], q["mlp.up.bias"]), approximate="tanh")
        y = y + F.linear(z, q["mlp.down.weight"], q["mlp.down.bias"])
    y = F.layer_norm(y, (width,), p["norm.weight"], p["norm.bias"])
    return F.linear(y, p["tokens.weight"])


def train(
    weights: Mapping[str, np.ndarray[Any, Any]],
    batches: Sequence[tuple[Any, Any]],
    updates: int,
    accumulate: int,
    rate: float,
    precision: str | None,
    layers: int = 2,
    heads: int = 4,
) -> list[float]:
    """Return the loss of each batch."""
    p = {name: torch.tensor(x, requires_grad=True) for name, x in weights.items()}
    decayed = [x for x in p.values() if x.ndim >= 2]
    others = [x for x in p.values() if x.ndim < 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), eps=1e-8)
    warmup, losses = max(updates // 10, 1), []
    block = nullcontext() if precision is None else torch.autocast("cpu", getattr(torch, precision))
    for number, (x, y) in enumerate(batches):
        with block:
            logits = _forward(p, torch.tensor(x), layers, heads)
        loss = F.cross_entropy(logits.float().flatten(0, 1), torch.tensor(y).flatten())
        (loss / accumulate).backward()
        losses.append(loss.item())
        if (number + 1) % accumulate:
            continue
        update = number // accumulate
        if update < warmup:
            now = rate * (update + 1) / (warmup + 1)
        else:
            done = (update - warmup) / (updates - warmup)
            now = rate / 10 + 0.5 * (1 + math.cos(math.pi * done)) * (rate - rate / 10)
        for group in optimizer.param_groups:
            group["lr"] = now
        torch.nn.utils.clip_grad_norm_(list(p.values()), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return losses

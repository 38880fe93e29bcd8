"""Llama as it is written by hand on PyTorch: a step of training, and decoding with a captured CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F


class Sizes:
    """What the functions read from ``config.json``."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.groups, self.width = config["num_key_value_heads"], config["head_dim"]
        self.epsilon, self.base = config["rms_norm_eps"], config["rope_theta"]


def make_rotation(sizes: Sizes, length: int, device: Any, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the cosines and sines of all positions, (length, width of a head)."""
    rates = sizes.base ** -(torch.arange(0, sizes.width, 2, device=device).double() / sizes.width)
    angles = torch.outer(torch.arange(length, device=device).double(), rates).repeat(1, 2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn the heads of x, (batch, heads, length, width)."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def forward(state: dict[str, torch.Tensor], sizes: Sizes, tokens: torch.Tensor, rotation: Any) -> torch.Tensor:
    """Return the logits of all positions."""
    x = F.embedding(tokens, state["embedding.weight"])
    cos, sin = (part[: tokens.shape[1]] for part in rotation)
    b, t, c = x.shape
    for i in range(sizes.layers):
        w = {name: state[f"layers.{i}.{name}.weight"] for name in _NAMES}
        y = F.rms_norm(x, (c,), w["attention_norm"], sizes.epsilon)
        q = F.linear(y, w["attention.query"]).view(b, t, sizes.heads, sizes.width).transpose(1, 2)
        k = F.linear(y, w["attention.key"]).view(b, t, sizes.groups, sizes.width).transpose(1, 2)
        v = F.linear(y, w["attention.value"]).view(b, t, sizes.groups, sizes.width).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + F.linear(y.transpose(1, 2).reshape(b, t, -1), w["attention.output"])
        y = F.rms_norm(x, (c,), w["mlp_norm"], sizes.epsilon)
        x = x + F.linear(F.silu(F.linear(y, w["mlp.gate"])) * F.linear(y, w["mlp.up"]), w["mlp.down"])
    return F.linear(F.rms_norm(x, (c,), state["norm.weight"], sizes.epsilon), state["embedding.weight"])


_NAMES = (
    "attention_norm",
    "attention.query",
    "attention.key",
    "attention.value",
    "attention.output",
    "mlp_norm",
    "mlp.gate",
    "mlp.up",
    "mlp.down",
)


def make_training_step(
    state: dict[str, torch.Tensor], config: dict[str, Any], tokens: Any, target: Any, rate: float, compiled: bool
) -> Callable[[], torch.Tensor]:
    """Return a step of full fine-tuning with fused AdamW."""
    sizes = Sizes(config)
    state = {name: x.clone().requires_grad_() for name, x in state.items() if name != "output.weight"}
    rotation = make_rotation(sizes, tokens.shape[1], tokens.device, state["embedding.weight"].dtype)
    optimizer = torch.optim.AdamW(state.values(), lr=rate, weight_decay=0.0, fused=True)

    def loss_of() -> torch.Tensor:
        return F.cross_entropy(forward(state, sizes, tokens, rotation).flatten(0, 1).float(), target.flatten())

    run = torch.compile(loss_of) if compiled else loss_of

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = run()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def make_transformers_step(folder: str, tokens: Any, target: Any, rate: float) -> Callable[[], torch.Tensor]:
    """Return a step of full fine-tuning of Transformers' own model, read from a folder, with fused AdamW."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").to(tokens.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0, fused=True)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = model(input_ids=tokens, labels=target, shift_labels=target, use_cache=False).loss
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


class Decoder:
    """Greedy decoding: joined weights, a cache of fixed length, and one captured graph for a step."""

    @torch.no_grad()
    def __init__(self, state: dict[str, torch.Tensor], config: dict[str, Any], batch: int, size: int) -> None:
        self.sizes = sizes = Sizes(config)
        weight = state["embedding.weight"]
        device, dtype = weight.device, weight.dtype
        self.state, self.rotation = state, make_rotation(sizes, size, device, dtype)
        self.joined = []
        for i in range(sizes.layers):
            w = {name: state[f"layers.{i}.{name}.weight"] for name in _NAMES}
            qkv = torch.cat([w["attention.query"], w["attention.key"], w["attention.value"]])
            self.joined.append((w, qkv, torch.cat([w["mlp.gate"], w["mlp.up"]])))
        shape = (sizes.layers, 2, batch, sizes.groups, size, sizes.width)
        self.cache = torch.zeros(shape, device=device, dtype=dtype)
        self.token = torch.zeros((batch, 1), device=device, dtype=torch.int64)
        self.position = torch.zeros(1, device=device, dtype=torch.int64)
        self.keys = torch.arange(size, device=device)
        self._run()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._run()

    def _run(self) -> None:
        sizes, token, position = self.sizes, self.token, self.position
        x = F.embedding(token, self.state["embedding.weight"])
        b, _, c = x.shape
        cos, sin = (part[position] for part in self.rotation)
        seen = (self.keys <= position)[None, None, None]
        for (w, qkv, gate_up), cache in zip(self.joined, self.cache, strict=True):
            y = F.linear(F.rms_norm(x, (c,), w["attention_norm"], sizes.epsilon), qkv)
            y = y.view(b, 1, -1, sizes.width).transpose(1, 2)
            q, k, v = y.split([sizes.heads, sizes.groups, sizes.groups], 1)
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            cache[0].index_copy_(2, position, k)
            cache[1].index_copy_(2, position, v)
            q = q.reshape(b, sizes.groups, sizes.heads // sizes.groups, sizes.width)
            y = F.scaled_dot_product_attention(q, cache[0], cache[1], attn_mask=seen)
            x = x + F.linear(y.reshape(b, 1, -1), w["attention.output"])
            gate, up = F.linear(F.rms_norm(x, (c,), w["mlp_norm"], sizes.epsilon), gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, w["mlp.down"])
        x = F.rms_norm(x, (c,), self.state["norm.weight"], sizes.epsilon)
        token.copy_(F.linear(x, self.state["embedding.weight"]).argmax(-1))
        position.add_(1)

    @torch.no_grad()
    def write(self, prompt: int, count: int) -> torch.Tensor:
        """Write tokens after a prompt that was read before: only its length counts here."""
        self.position.fill_(prompt)
        found = []
        for _ in range(count):
            self.graph.replay()
            found.append(self.token.clone())
        return torch.cat(found, 1)

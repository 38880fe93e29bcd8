"""What writing a text costs beside the loop that is written by hand on PyTorch: a small model, one token at a time.

Both keep keys and values of all positions. The likeliest tokens are the same; with ``top_k`` both draw from so many.

    python benchmarks/generation.py [--seconds 10] [--tokens 200] [--widths 128 512] [--cpu]
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hand_numpy
import hand_torch
import torch
from torch.nn import functional as F

import ember_ml
from ember_ml import nn, ops
from training import best_times

VOCABULARY, LENGTH, DEPTH, HEADS, TOP_K = 65, 1024, 4, 4, 10


def write_by_hand(model: Any, tokens: torch.Tensor, count: int, top_k: int | None) -> torch.Tensor:
    """Return the tokens with so many more."""
    model.eval()
    caches: list[Any] = [None] * len(model.blocks)
    new, found = tokens, [tokens]
    with torch.no_grad():
        for _ in range(count):
            seen = 0 if caches[0] is None else caches[0][0].shape[2]
            x = model.tokens(new) + model.places[seen : seen + new.shape[1]]
            for place, block in enumerate(model.blocks):
                b, t, c = x.shape
                shape = (b, t, 3, block.heads, c // block.heads)
                q, k, v = block.qkv(block.norm1(x)).view(shape).permute(2, 0, 3, 1, 4)
                if caches[place] is not None:
                    k, v = torch.cat([caches[place][0], k], 2), torch.cat([caches[place][1], v], 2)
                caches[place] = (k, v)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
                x = x + block.out(y.transpose(1, 2).reshape(b, t, c))
                x = x + block.down(F.gelu(block.up(block.norm2(x)), approximate=block.form))
            logits = model.head(model.norm(x[:, -1:]))[:, -1]
            if top_k is None:
                new = logits.argmax(-1, keepdim=True)
            else:
                least = torch.topk(logits, top_k).values[:, -1:]
                chances = F.softmax(logits.masked_fill(logits < least, -float("inf")), -1)
                new = torch.multinomial(chances, 1)
            found.append(new)
    return torch.cat(found, 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each line")
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--widths", type=int, nargs="*", default=[128, 512])
    parser.add_argument("--cpu", action="store_true", help="CPU time, which neighbours on the machine change less")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ember_ml.set_backend("torch")
    print(f"{'width':>6} {'choice':8} {'ember ms':>9} {'by hand':>9} {'ratio':>6}   for each token")
    for width in options.widths:
        ops.random.seed(0)
        model = nn.blocks.LanguageModel(VOCABULARY, width, DEPTH, HEADS, length=LENGTH, tied=False)
        state: dict[str, Any] = model.state_dict()
        hand = hand_torch.Transformer(VOCABULARY, LENGTH, width, DEPTH, HEADS)
        names = hand_numpy.transformer_names(state)
        hand.load_state_dict({key: state[names[key]] for key in hand.state_dict()})
        prompt, count = torch.tensor([[1, 2, 3]]), options.tokens
        written: Any = model.generate(prompt, 50, 0.0)
        assert torch.equal(written, write_by_hand(hand, prompt, 50, None))
        for choice, temperature, top_k in (("greedy", 0.0, None), ("top-k", 1.0, TOP_K)):
            runs: dict[str, Any] = {
                "ember": partial(model.generate, prompt, count, temperature, top_k),
                "hand": partial(write_by_hand, hand, prompt, count, top_k),
            }
            best = best_times(runs, options.seconds, time.process_time if options.cpu else time.perf_counter)
            ember, other = best["ember"] / count, best["hand"] / count
            print(f"{width:6} {choice:8} {ember:9.3f} {other:9.3f} {ember / other:6.2f}", flush=True)


if __name__ == "__main__":
    main()

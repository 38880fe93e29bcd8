"""What writing a text costs on a CPU beside Transformers and mlx-lm: a Llama of 100 million parameters, batch 1.

Transformers writes the model with random weights into a folder, in float32 and in the dtypes that are asked for. Each
contender opens it in one process: ours on every backend, Transformers on PyTorch, mlx-lm on MLX. They write the same
likeliest tokens in turns; the best of each is shown. ``whole`` is a call with the prompt, ``step`` a token after it.

    python benchmarks/decode.py [--who torch mlx numpy ...] [--dtypes float32 bfloat16] [--threads 1 2] [--rounds 7]
        [--prompt 32] [--new 64] [--compiled] [--tiny] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HUNDRED_MILLION: dict[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}
TINY: dict[str, Any] = {**HUNDRED_MILLION, "vocab_size": 100, "hidden_size": 96, "num_hidden_layers": 2}
BESIDE = {"torch": "transformers", "mlx": "mlx-lm", "numpy": "transformers", "jax": "transformers"}
"""Whose program runs on the same library, or on PyTorch where there is none."""


def write(folder: Path, config: dict[str, Any], dtype: str) -> None:
    """Write the model with the same random weights in each dtype."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**config)).to(getattr(torch, dtype))
    model.generation_config.eos_token_id = None
    model.save_pretrained(folder)


def open_ours(folder: Path, backend: str, compiled: bool) -> Callable[[list[int], int], list[int]]:
    """Return a function that writes by Ember ML."""
    import ember_ml
    from ember_ml import models

    ember_ml.set_backend(backend)
    model: Any = models.load(folder)

    def call(prompt: list[int], count: int) -> list[int]:
        ember_ml.set_backend(backend)  # another contender may have had its turn
        return model.generate(prompt, count, stop=[], compile=compiled)

    return call


def open_transformers(folder: Path) -> Callable[[list[int], int], list[int]]:
    """Return a function that writes by Transformers."""
    import torch
    from transformers import LlamaForCausalLM

    model: Any = LlamaForCausalLM.from_pretrained(folder, dtype="auto").eval()

    def call(prompt: list[int], count: int) -> list[int]:
        tokens = torch.tensor([prompt])
        with torch.inference_mode():
            found = model.generate(
                tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=count, do_sample=False, eos_token_id=None
            )
        return found[0, len(prompt) :].tolist()

    return call


def open_mlx_lm(folder: Path) -> Callable[[list[int], int], list[int]]:
    """Return a function that writes by mlx-lm."""
    import mlx.core as mx
    from mlx_lm.generate import generate_step
    from mlx_lm.utils import load_model

    model, _ = load_model(folder)

    def call(prompt: list[int], count: int) -> list[int]:
        return [int(token) for token, _ in generate_step(mx.array(prompt), model, max_tokens=count)]

    return call


def contenders(folder: Path, who: list[str], compiled: bool) -> dict[str, Callable[[list[int], int], list[int]]]:
    """Return the functions that write tokens, by name."""
    found: dict[str, Any] = {}
    for backend in who:
        other = BESIDE[backend]
        if other not in found:
            found[other] = (open_mlx_lm if other == "mlx-lm" else open_transformers)(folder)
        found[f"ours, {backend}"] = open_ours(folder, backend, False)
        if compiled and backend != "numpy":
            found[f"ours, {backend}, compiled"] = open_ours(folder, backend, True)
    return found


def measure(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Let all contenders take turns in this process; return a row for each."""
    import numpy as np

    if "transformers" in map(BESIDE.get, options.who):
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    config = TINY if options.tiny else HUNDRED_MILLION
    prompt = np.random.default_rng(0).integers(0, config["vocab_size"], options.prompt).tolist()
    calls = contenders(Path(options.folder), options.who, options.compiled)
    written = {name: call(prompt, options.new) for name, call in calls.items()}
    times: dict[tuple[str, str, int], float] = {}
    for _ in range(options.rounds):
        for name, call in calls.items():
            for count in (1, options.new):
                wall, cpu = time.perf_counter(), time.process_time()
                call(prompt, count)
                for clock, took in (("wall", time.perf_counter() - wall), ("cpu", time.process_time() - cpu)):
                    times[name, clock, count] = min(took, times.get((name, clock, count), took))
    first = next(iter(written.values()))
    rows: list[dict[str, Any]] = []
    for name, tokens in written.items():
        row: dict[str, Any] = {"who": name, "same_tokens": sum(a == b for a, b in zip(tokens, first, strict=True))}
        for clock in ("wall", "cpu"):
            whole, read = times[name, clock, options.new], times[name, clock, 1]
            row[f"{clock}_whole_s"] = round(whole, 4)
            row[f"{clock}_step_ms"] = round((whole - read) / (options.new - 1) * 1e3, 3)
        rows.append(row)
    by_name = {row["who"]: row for row in rows}
    for row in rows:
        parts = row["who"].split(", ")
        if parts[0] == "ours":
            other = by_name[BESIDE[parts[1]]]
            row["beside"] = other["who"]
            for key in ("wall_whole_s", "wall_step_ms", "cpu_step_ms"):
                row[f"ratio_{key}"] = round(row[key] / other[key], 3)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--who", nargs="*", choices=tuple(BESIDE), default=list(BESIDE))
    parser.add_argument("--dtypes", nargs="*", default=["float32"])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--compiled", action="store_true", help="compile=True too, which takes minutes at first")
    parser.add_argument("--tiny", action="store_true", help="a small model, to try the script")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        print(json.dumps(measure(options)))
        return
    config = TINY if options.tiny else HUNDRED_MILLION
    for dtype in options.dtypes:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), config, dtype)
            for threads in options.threads:
                rows = _run(folder, threads)
                _show(rows, dtype, threads, options.json)


def _run(folder: str, threads: int) -> list[dict[str, Any]]:
    """Measure in a process with so many threads, which libraries read when they are imported."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    flags = os.environ.get("XLA_FLAGS", "") + (" --xla_cpu_multi_thread_eigen=false" if threads == 1 else "")
    env = {**os.environ, **dict.fromkeys(names, str(threads)), "XLA_FLAGS": flags.strip()}
    command = [sys.executable, __file__, *sys.argv[1:], "--folder", folder]
    ran = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(ran.stdout.splitlines()[-1])


def _show(rows: list[dict[str, Any]], dtype: str, threads: int, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"dtype": dtype, "threads": threads, "rows": rows}), flush=True)
        return
    print(f"{dtype}, {threads} threads")
    print(f"{'':26} {'whole s':>8} {'step ms':>8} {'CPU ms':>8} {'ratio':>6} {'CPU':>6}  equal tokens")
    for row in rows:
        ratios = [row.get(f"ratio_{key}", 1.0) for key in ("wall_step_ms", "cpu_step_ms")]
        print(
            f"{row['who']:26} {row['wall_whole_s']:8.3f} {row['wall_step_ms']:8.2f} {row['cpu_step_ms']:8.2f} "
            f"{ratios[0]:6.2f} {ratios[1]:6.2f}  {row['same_tokens']}",
            flush=True,
        )


if __name__ == "__main__":
    main()

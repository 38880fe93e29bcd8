"""Decoding, reading and fine-tuning of a Llama on a GPU: the shape of Llama 3.2 1B, bfloat16, random weights.

Prints a line of JSON for each part; a part that fails says why, and the next one goes on. ``decode`` is one prompt of
128 tokens and 256 new ones, ``batch`` is 32 such prompts, ``prefill`` reads 4,096 tokens, ``tune`` is a step of full
fine-tuning beside one by hand and one of Transformers' model, ``hand`` is decoding by hand with a captured graph,
``profile`` names the kernels of a step, ``plain`` is decoding without ``compile=True``.

    python benchmarks/gpu_decode.py [--backend torch] [--parts decode batch ...] [--device cpu --dtype float32 --tiny]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import ember_ml
from ember_ml import models, nn, ops
from ember_ml.backend.selection import active
from ember_ml.training import Trainer, optimizers

ONE_BILLION: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128256,
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}
TINY: dict[str, Any] = {
    **ONE_BILLION,
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
PARTS = ("decode", "profile", "batch", "prefill", "hand", "tune", "plain")
PROMPT, NEW, BATCH, LONG, TUNED = 128, 256, 32, 4096, (4, 1024)


class Bench:
    """The model and what is measured of it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.config = options, dict(TINY if options.tiny else ONE_BILLION)
        self.short = 8 if options.tiny else 1
        self.rng = np.random.default_rng(0)
        with nn.empty():
            self.model: Any = models.from_config(self.config)
        for name, parameter in self.model.named_parameters().items():
            is_norm = name.endswith("norm.weight")
            shape = tuple(parameter.shape)
            parameter.value = ops.cast(ops.ones(shape) if is_norm else self.draw(shape), options.dtype)
        self.model.eval()

    def tokens(self, batch: int, length: int) -> list[list[int]]:
        return self.rng.integers(0, self.config["vocab_size"], (batch, length)).tolist()

    def draw(self, shape: tuple[int, ...]) -> Any:
        """Return a weight, drawn by the library itself on the device."""
        if self.options.backend == "torch":
            import torch

            return torch.randn(shape, device=self.options.device) * 0.02
        if self.options.backend == "jax":
            import jax

            return jax.random.normal(jax.random.key(int(self.rng.integers(2**31))), shape, "float32") * 0.02
        return ops.multiply(ops.random_normal(shape), 0.02)

    def wait(self) -> None:
        ops.synchronize()

    def best(self, call: Callable[[], Any], rounds: int) -> float:
        """Return the least time of a call in seconds, from an idle device until it is idle again."""
        times = []
        for _ in range(rounds):
            self.wait()
            start = time.perf_counter()
            call()
            self.wait()
            times.append(time.perf_counter() - start)
        return min(times)

    def _decode(self, batch: int, compiled: bool, rounds: int = 5) -> dict[str, Any]:
        prompts, count = self.tokens(batch, PROMPT // self.short), NEW // self.short
        start = time.perf_counter()
        first = self.model.generate(prompts, count, stop=[], compile=compiled)
        warm = time.perf_counter() - start
        again = self.model.generate(prompts, count, stop=[], compile=compiled)
        whole = self.best(lambda: self.model.generate(prompts, count, stop=[], compile=compiled), rounds)
        read = self.best(lambda: self.model.generate(prompts, 1, stop=[], compile=compiled), rounds)
        return {
            "batch": batch,
            "compiled": compiled,
            "tokens_per_s": round(batch * count / whole, 1),
            "tokens_per_s_after_prompt": round(batch * (count - 1) / (whole - read), 1),
            "step_ms": round((whole - read) / (count - 1) * 1e3, 4),
            "prompt_ms": round(read * 1e3, 3),
            "first_call_s": round(warm, 1),
            "repeats": first == again,
        }

    def decode(self) -> dict[str, Any]:
        return self._decode(1, True)

    def batch(self) -> dict[str, Any]:
        return self._decode(BATCH, True)

    def plain(self) -> dict[str, Any]:
        return self._decode(1, False, 1)

    def profile(self) -> dict[str, Any]:
        if self.options.backend != "torch":
            return {"left_out": "PyTorch alone"}
        from torch.profiler import ProfilerActivity, profile

        prompt, count = self.tokens(1, PROMPT // self.short)[0], NEW // self.short
        steps = 33
        self.model.generate(prompt, count, stop=[], compile=True)
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as run:
            left = iter(range(1, steps))  # of the same program, whose caches have room for all
            self.model.generate(prompt, count, stop=[], compile=True, on_tokens=lambda _: next(left, None) is None)
            self.wait()
        kernels: dict[str, list[float]] = {}
        for event in run.events() or []:
            if event.device_type.name == "CUDA":
                kernels.setdefault(event.name, []).append(event.device_time)
        found = sorted(kernels.items(), key=lambda pair: -sum(pair[1]))[:24]
        rows = [[name[:90], len(times), round(sum(times) / len(times), 2)] for name, times in found]
        return {"steps": steps - 1, "kernel, calls, mean us": rows}

    def prefill(self) -> dict[str, Any]:
        from ember_ml.transforms.compilation import Compiled

        text = ops.array(self.tokens(1, LONG // self.short), dtype="int64")
        model = self.model

        def read(text: Any) -> Any:
            hidden, state = model.hidden_states(text, None, model.initial_state(1))
            return model.logits(hidden[:, -1]), state.caches

        found: dict[str, Any] = {"tokens": LONG // self.short}
        for name, call in (("ms", read), ("compiled_ms", Compiled(read))):
            if name == "ms" and self.options.backend == "jax":
                continue
            start = time.perf_counter()
            for _ in range(2):
                call(text)
            self.wait()
            found[f"{name}_first_s"] = round(time.perf_counter() - start, 1)
            found[name] = round(self.best(lambda call=call: call(text), 10) * 1e3, 3)
        return found

    def hand(self) -> dict[str, Any]:
        if self.options.backend != "torch":
            return {"left_out": "PyTorch alone"}
        import hand_llama

        found: dict[str, Any] = {}
        for batch in (1, BATCH):
            decoder = hand_llama.Decoder(self.model.state_dict(), self.config, batch, PROMPT + NEW)
            took = self.best(lambda decoder=decoder: decoder.write(PROMPT, NEW - 1), 5)
            found[f"tokens_per_s_after_prompt_{batch}"] = round(batch * (NEW - 1) / took, 1)
            found[f"step_ms_{batch}"] = round(took / (NEW - 1) * 1e3, 4)
        return found

    def tune(self) -> dict[str, Any]:
        batch, length = (TUNED[0], TUNED[1] // self.short)
        text = ops.array(self.tokens(batch, length + 1), dtype="int64")
        tokens, target = ops.copy(text[:, :-1]), ops.copy(text[:, 1:])
        state = self.model.state_dict()
        found: dict[str, Any] = {"batch": batch, "length": length}
        calls = active().bench_calls
        assert calls is not None
        for compiled in (self.options.backend == "jax",):  # on PyTorch both as they are, since both compile for minutes
            steps = {}
            model: Any = models.from_config(self.config) if self.options.tiny else self.model
            model.load_state_dict(state)
            model.train()
            optimizer = optimizers.AdamW(1e-5, weight_decay=0.0)
            step = Trainer(model, optimizer, "sparse_categorical_crossentropy", compile=compiled)._step
            step.objective.gives_predictions = False
            steps["ember"] = lambda step=step: step((tokens, target))[0]
            if self.options.backend == "torch":
                import hand_llama

                steps["hand"] = hand_llama.make_training_step(state, self.config, tokens, target, 1e-5, compiled)
                if importlib.util.find_spec("transformers"):
                    with tempfile.TemporaryDirectory() as folder:
                        model.save(folder)
                        steps["transformers"] = hand_llama.make_transformers_step(folder, tokens, target, 1e-5)
            name = "compiled" if compiled else "eager"
            found[name] = {f"{key}_losses": [round(float(call()), 3) for _ in range(3)] for key, call in steps.items()}
            times: dict[str, list[float]] = {key: [] for key in steps}
            for _ in range(6):
                for key, call in steps.items():
                    times[key].append(self.best(lambda call=call: calls.evaluate(call()), 1) * 1e3)
            found[name].update({f"{key}_ms": round(min(values), 2) for key, values in times.items()})
            for other in times.keys() - {"ember"}:
                found[name][f"ratio_to_{other}"] = round(min(times["ember"]) / min(times[other]), 4)
        return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=("torch", "jax", "mlx"), default="torch")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--tiny", action="store_true", help="a small model and short texts, to try the script on a CPU")
    options = parser.parse_args()
    ember_ml.set_backend(options.backend)
    ops.set_default_device(options.device)
    ops.random.seed(0)
    start = time.perf_counter()
    bench = Bench(options)
    bench.wait()
    made = {"part": "model", "backend": options.backend, "parameters": bench.model.num_parameters}
    print(json.dumps({**made, "seconds": round(time.perf_counter() - start, 1)}), flush=True)
    for part in options.parts:
        start = time.perf_counter()
        try:
            found = getattr(bench, part)()
        except Exception as error:  # the other parts are measured all the same
            found = {"error": f"{type(error).__name__}: {error}"[:600], "where": traceback.format_exc()[-1500:]}
        seconds = round(time.perf_counter() - start, 1)
        print(json.dumps({"part": part, "backend": options.backend, **found, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()

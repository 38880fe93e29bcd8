"""What opening a model costs beside reading the same file with safetensors: time, and peak memory over the weights.

Writes a Llama of about ``--gigabytes`` of weights into a folder, then opens it in new processes in turns: by
``models.load``, and by ``safetensors.safe_open``, which takes every tensor for the same library, as
``safetensors.torch.load_file`` and its like do. Ours has a model afterwards, theirs a list of tensors: what it takes to
read the settings, to make the modules and to find the tensors in them again counts as ours.

Both map the file, so that opening alone reads next to nothing. Therefore each process then reads every byte of what it
opened once, within its time, and both must find the same: these are weights that one can compute with. Both read from
the system's cache of files; a disk would take many times as long for either. Each process has opened a tiny model in
the same way before, so that nothing is imported while the clock runs. Peak memory is what the process holds at most,
with pages of the file that are mapped, beyond what it held before. The best of each is shown. Linux only.

    python benchmarks/loading.py [--backends torch mlx jax numpy] [--gigabytes 1] [--rounds 7] [--dtype float32]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = {"hidden_size": 1024, "intermediate_size": 4096, "vocab_size": 32000}
FRAMEWORKS = {"torch": "pt", "mlx": "mlx", "jax": "flax", "numpy": "np"}


def write(folder: Path, layers: int, sizes: dict[str, int], dtype: str) -> int:
    """Write a model; return the bytes of its weights."""
    import ember_ml
    from ember_ml import models

    ember_ml.set_backend("numpy")
    config = {
        "model_type": "llama",
        **sizes,
        "num_hidden_layers": layers,
        "num_attention_heads": 16,
        "tie_word_embeddings": True,
    }
    models.from_config(config).to_dtype(dtype).save(folder)
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def count_layers(gigabytes: float, dtype: str) -> int:
    """Return how many layers a model of that size has."""
    width, inner = SIZES["hidden_size"], SIZES["intermediate_size"]
    numbers = gigabytes * 1e9 / (4 if dtype == "float32" else 2) - width * SIZES["vocab_size"]
    return max(round(numbers / (4 * width * width + 3 * width * inner)), 1)


def open_ours(folder: Path, backend: str) -> tuple[Any, list[Any]]:
    """Return a model and its native tensors."""
    from ember_ml import models

    model = models.load(folder)
    return model, [x.value for x in model.named_parameters().values()]


def open_theirs(folder: Path, backend: str) -> tuple[Any, list[Any]]:
    """Return the tensors that safetensors reads."""
    from safetensors import safe_open

    found = []
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, FRAMEWORKS[backend]) as file:
            found += [file.get_tensor(name) for name in file.keys()]  # noqa: SIM118 - no dictionary
    return None, found


OPENERS: dict[str, Callable[[Path, str], tuple[Any, list[Any]]]] = {"ours": open_ours, "safetensors": open_theirs}


def touch(natives: list[Any], backend: str) -> int:
    """Read every byte; return what differs where a value does."""
    import numpy as np

    total = 0
    for x in natives:
        if backend == "torch":
            import torch

            host = x.view(torch.uint8).numpy()
        elif backend == "mlx":
            import mlx.core as mx

            mx.eval(x)
            host = np.frombuffer(memoryview(x).cast("B"), np.uint8)
        else:
            host = np.asarray(x).view(np.uint8)
        total ^= int(np.bitwise_xor.reduce(host.reshape(-1).view(np.uint64)))
    return total


def held(what: str) -> int:
    """Return the bytes that the process holds now (VmRSS), or held at most (VmHWM)."""
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def measure(backend: str, how: str, folder: Path, tiny: Path) -> dict[str, float]:
    """Open the folder once in this process; return what it cost."""
    import ember_ml

    ember_ml.set_backend(backend)
    touch(OPENERS[how](tiny, backend)[1], backend)
    Path("/proc/self/clear_refs").write_text("5")  # forget the most that was held so far
    before = held("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    _kept, natives = OPENERS[how](folder, backend)
    total = touch(natives, backend)
    row = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return {**row, "bytes": held("VmHWM") - before, "total": total}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backends", nargs="*", choices=tuple(FRAMEWORKS), default=list(FRAMEWORKS))
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        backend, how, *folders = options.one
        print(json.dumps(measure(backend, how, *map(Path, folders))))
        return
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as tiny:
        write(Path(tiny), 1, dict.fromkeys(SIZES, 64), options.dtype)
        size = write(Path(folder), count_layers(options.gigabytes, options.dtype), SIZES, options.dtype)
        print(f"{size / 1e9:.2f} GB of {options.dtype}")
        print(f"{'':8} {'ours s':>7} {'safetensors s':>13} {'ratio':>6} {'CPU':>6} {'peak':>6} {'safetensors':>11}")
        for backend in options.backends:
            rows: dict[str, list[dict[str, float]]] = {how: [] for how in OPENERS}
            for _ in range(options.rounds):
                for how, found in rows.items():
                    call = [sys.executable, __file__, "--one", backend, how, folder, tiny]
                    found.append(json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout))
            assert len({row["total"] for found in rows.values() for row in found}) == 1, "they read different values"
            ours, theirs = ({key: min(row[key] for row in rows[how]) for key in rows[how][0]} for how in OPENERS)
            print(
                f"{backend:8} {ours['s']:7.3f} {theirs['s']:13.3f} {ours['s'] / theirs['s']:6.2f} "
                f"{ours['cpu_s'] / theirs['cpu_s']:6.2f} {ours['bytes'] / size:6.2f} {theirs['bytes'] / size:11.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()

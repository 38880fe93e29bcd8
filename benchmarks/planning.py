"""The estimates of ``ember-ml plan`` beside published figures of training Llama 3.

In each group the first row measures the efficiency of the device (``*``), the others are predicted with it. Sources:
Llama Team, "The Llama 3 Herd of Models" (2024), table 4; PyTorch's torchtitan, ``benchmarks/llama3_h100_202412`` and
``docs/performance.md`` (A100), the rows in bfloat16.

    python benchmarks/planning.py
"""

from __future__ import annotations

from dataclasses import dataclass

from ember_ml.distributed.planning import DEVICES, Cluster, Device, Estimate, Job, Mesh, Transformer, estimate

LLAMA_8B = Transformer(32, 4096, 14336, 32, 8, 128, 128256)
LLAMA_70B = Transformer(80, 8192, 28672, 64, 8, 128, 128256)
LLAMA_405B = Transformer(126, 16384, 53248, 128, 8, 128, 128256)
NETWORK = 50e9


@dataclass(frozen=True)
class Row:
    """A published run: ``sequences`` of each replica, tokens per second and device, GiB of a device where known."""

    model: Transformer
    mesh: Mesh
    sequence: int
    sequences: int
    micro_batch: int
    keep: str
    tokens: float
    gigabytes: float | None = None


def _llama(data: int, context: int, sequences: int, teraflops: float, sequence: int) -> Row:
    """A row of Llama 3's table, which gives FLOP/s; they are counted as here."""
    mesh = Mesh(shard=data, tensor=8, context=context, pipeline=16)
    return Row(LLAMA_405B, mesh, sequence, sequences, 1, "products", teraflops * 1e12 / LLAMA_405B.flops(sequence))


GROUPS: dict[str, tuple[Device, list[Row]]] = {
    "Llama 3 405B, H100": (
        DEVICES["h100"],
        [_llama(64, 1, 32, 430, 8192), _llama(128, 1, 16, 400, 8192), _llama(8, 16, 16, 380, 131072)],
    ),
    "torchtitan 8B, H100 of 500 W, compiled": (
        DEVICES["h100"],
        [
            Row(LLAMA_8B, Mesh(shard=8), 8192, 2, 2, "products", 6667, 77.0),
            Row(LLAMA_8B, Mesh(shard=128), 8192, 2, 2, "products", 6514, 62.0),
        ],
    ),
    "torchtitan 8B, H100 of 500 W, eager": (
        DEVICES["h100"],
        [
            Row(LLAMA_8B, Mesh(shard=8), 8192, 2, 2, "products", 5762, 82.4),
            Row(LLAMA_8B, Mesh(shard=128), 8192, 2, 2, "products", 5605, 67.0),
        ],
    ),
    "torchtitan, 64 A100": (
        DEVICES["a100"],
        [
            Row(LLAMA_8B, Mesh(shard=64), 8192, 1, 1, "products", 2973),
            Row(LLAMA_70B, Mesh(shard=64), 8192, 1, 1, "inputs", 331),
        ],
    ),
}


def predict(device: Device, row: Row, efficiency: float) -> Estimate:
    """Return the estimate of a published run."""
    cluster = Cluster(device, row.mesh.devices, NETWORK, efficiency=efficiency)
    batch = row.mesh.data * row.mesh.shard * row.sequences * row.sequence
    return estimate(row.model, cluster, Job(row.sequence, batch, row.keep), row.mesh, row.micro_batch)


def measure_efficiency(device: Device, row: Row) -> float:
    """Return the efficiency at which the estimate of ``row`` is what was published, by bisection."""
    low, high = 0.01, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if predict(device, row, middle).tokens_per_second < row.tokens else (low, middle)
    return (low + high) / 2


def main() -> None:
    """Print the table of docs/planning.md."""
    for title, (device, rows) in GROUPS.items():
        efficiency = measure_efficiency(device, rows[0])
        print(f"{title}: efficiency {efficiency:.3f}")
        for place, row in enumerate(rows):
            found = predict(device, row, efficiency)
            mark = "*" if place == 0 else f"{found.tokens_per_second / row.tokens - 1:+.1%}"
            memory = f"{found.memory / 2**30:.1f} GiB" + (f" of {row.gigabytes}" if row.gigabytes else "")
            print(
                f"  {row.mesh!s:44} {row.sequence:7}  {found.tokens_per_second:7.1f} of {row.tokens:7.1f} {mark:>7}  "
                f"{memory}  bubble {found.bubble / found.step:.1%} waiting {found.exposed / found.step:.1%}"
            )


if __name__ == "__main__":
    main()

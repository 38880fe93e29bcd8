"""Plan the training of a transformer on a cluster: the memory of a device, the bytes moved, the time of a step.

The arithmetic of ``docs/planning.md``, and nothing else: no device is needed, and none is asked. A ``Mesh`` says into
how many parts each kind of splitting divides the work; ``estimate`` says what one of them costs, ``plan`` finds those
that fit and sorts them by the time of a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from ember_ml.errors import ConfigError

__all__ = ["DEVICES", "Cluster", "Device", "Estimate", "Job", "Mesh", "Transformer", "estimate", "plan"]

BYTES_OF_STATE = 16
"""Per parameter in mixed precision: the float32 master, its gradient, and the two moments of Adam."""
BYTES_OF_LOGIT = 10
"""Per token and word: the logit in bfloat16 and float32, and its gradient in float32."""
NETWORK_SHARE = 0.8
"""What collectives reach of a link's rate."""
MEMORY_SHARE = 0.92
"""What training may use of a device's memory; the rest is the libraries', and what fragments."""


@dataclass(frozen=True)
class Transformer:
    """The sizes of a decoder that decide what it costs.

    ``layers`` blocks of ``width``, with ``heads`` of ``head_width`` for queries and ``key_heads`` for keys and values,
    and networks of ``inner`` units, gated (three matrices) or not (two). ``experts`` are the networks of a layer, of
    which each token uses ``chosen_experts``. ``is_tied``: embedding and logits share a matrix of ``vocabulary`` rows.

    Args:
        is_gated: Whether the networks are gated.

    >>> from ember_ml.distributed.planning import Transformer
    >>> llama = Transformer(32, 4096, 14336, 32, 8, 128, 128256)
    >>> llama.parameters
    8030261248
    """

    layers: int
    width: int
    inner: int
    heads: int
    key_heads: int
    head_width: int
    vocabulary: int
    is_gated: bool = True
    is_tied: bool = False
    experts: int = 1
    chosen_experts: int = 1

    def _of_layer(self, experts: int) -> int:
        attention = 2 * self.width * (self.heads + self.key_heads) * self.head_width
        router = self.width * self.experts if self.experts > 1 else 0
        network = (3 if self.is_gated else 2) * self.width * self.inner
        return attention + experts * network + router + 2 * self.width

    @property
    def layer_parameters(self) -> int:
        """Parameters of a block: attention, networks, norms."""
        return self._of_layer(self.experts)

    @property
    def parameters(self) -> int:
        """All parameters; biases and learned positions are left out."""
        words = (1 if self.is_tied else 2) * self.vocabulary * self.width
        return self.layers * self.layer_parameters + words + self.width

    def flops(self, sequence: int) -> float:
        """Floating-point operations of a token, forward and backward: 6 for each weight that multiplies it, and the
        products of attention, of which a causal mask leaves half."""
        weights = self.layers * self._of_layer(self.chosen_experts) + self.vocabulary * self.width
        return 6.0 * weights + 6.0 * self.layers * self.heads * self.head_width * sequence


@dataclass(frozen=True)
class Device:
    """An accelerator.

    Args:
        flops: FLOP/s in bfloat16.
        memory: Bytes of memory.
        link: Bytes/s to the other devices of its host, in each direction.
    """

    flops: float
    memory: float
    link: float


DEVICES: dict[str, Device] = {
    "a100": Device(312e12, 80e9, 300e9),
    "h100": Device(989e12, 80e9, 450e9),
    "h200": Device(989e12, 141e9, 450e9),
    "b200": Device(2250e12, 180e9, 900e9),
}
"""By their data sheets, without sparsity."""


@dataclass(frozen=True)
class Cluster:
    """``count`` devices, ``per_host`` on each host, with a ``network`` in bytes/s for each device.

    ``efficiency`` is the share of the device's FLOP/s that one of them reaches on large layers by itself: the one
    figure here that has to be measured. Compiled transformers on H100 reach 0.35 to 0.5.
    """

    device: Device
    count: int
    network: float
    per_host: int = 8
    efficiency: float = 0.45


@dataclass(frozen=True)
class Job:
    """Sequences of ``sequence`` tokens, ``batch_tokens`` in a step, and what of the activations is kept.

    ``keep``: "all"; "products", the results of matrix products and attention, the rest computed again; or "inputs" of
    the blocks alone, the whole block computed again.
    """

    sequence: int
    batch_tokens: int
    keep: str = "products"


@dataclass(frozen=True)
class Mesh:
    """Into how many parts each kind divides: ``data`` copies of the model, ``shard`` parts of its state (gathered layer
    by layer), ``tensor`` parts of each matrix, ``context`` parts of each sequence, ``pipeline`` stages of layers.

    >>> from ember_ml.distributed.planning import Mesh
    >>> Mesh(data=2, shard=4, tensor=8).devices
    64
    """

    data: int = 1
    shard: int = 1
    tensor: int = 1
    context: int = 1
    pipeline: int = 1

    @property
    def devices(self) -> int:
        """How many devices it takes."""
        return prod(asdict(self).values())

    def __str__(self) -> str:
        return " x ".join(f"{name} {parts}" for name, parts in asdict(self).items() if parts > 1) or "one device"


@dataclass(frozen=True)
class Estimate:
    """What a step on a mesh costs, for each device; times in seconds, sizes in bytes.

    ``moved`` are the bytes that a device sends in a step, by the kind of splitting; ``exposed`` is the time for which
    computation waits for them, ``bubble`` that for which stages wait for each other.

    Args:
        mesh: How the work is divided.
        micro_batch: Sequences that a device computes at a time.
        states: Bytes of parameters, gradients and the optimizer's state.
        gathered: Bytes of weights that are gathered from other devices.
        activations: Bytes that are kept until the backward pass.
        computing: Seconds of computing.
        tokens_per_second: Tokens that a device trains on in a second.
        utilization: The share of the device's FLOP/s: those of the model, without what is computed again.
    """

    mesh: Mesh
    micro_batch: int
    states: float
    gathered: float
    activations: float
    moved: dict[str, float]
    computing: float
    exposed: float
    bubble: float
    tokens_per_second: float
    utilization: float

    @property
    def memory(self) -> float:
        """Bytes in use at the peak."""
        return self.states + self.gathered + self.activations

    @property
    def step(self) -> float:
        """Seconds of a step."""
        return self.computing + self.exposed + self.bubble

    def row(self) -> dict[str, Any]:
        """Return it as plain data, for a table or JSON."""
        parts = {**asdict(self.mesh), **asdict(self), "memory": self.memory, "step": self.step}
        del parts["mesh"]
        return parts


def _activation_bytes(model: Transformer, keep: str) -> float:
    """Return the bytes that a token leaves in a block until the backward pass."""
    heads = (2 * model.heads + 2 * model.key_heads) * model.head_width  # queries, keys, values, their mix
    inner = model.inner * model.chosen_experts
    if keep == "inputs":
        return 2.0 * model.width
    if keep == "products":
        return 2.0 * (heads + 2 * model.width + (2 if model.is_gated else 1) * inner)
    if keep == "all":
        return 2.0 * (heads + 4 * model.width + (4 if model.is_gated else 2) * inner)
    raise ConfigError(f"keep is 'all', 'products' or 'inputs', not {keep!r}")


def estimate(model: Transformer, cluster: Cluster, job: Job, mesh: Mesh, micro_batch: int = 1) -> Estimate:
    """Return what a step costs on ``mesh``, with ``micro_batch`` sequences at a time on each device.

    Args:
        model: The sizes of the model.
        cluster: The devices.
        job: The batch, and what is kept for the backward pass.
        mesh: How the work is divided.
        micro_batch: Sequences that a device computes at a time.

    >>> from ember_ml.distributed.planning import DEVICES, Cluster, Job, Mesh, Transformer, estimate
    >>> llama = Transformer(32, 4096, 14336, 32, 8, 128, 128256)
    >>> cluster = Cluster(DEVICES["h100"], 128, 50e9)
    >>> found = estimate(llama, cluster, Job(8192, 128 * 2 * 8192), Mesh(shard=128), 2)
    >>> round(found.states / 1e9, 2), round(found.moved["shard"] / 1e9, 1)
    (1.0, 63.7)
    """
    replicas = mesh.data * mesh.shard
    rounds = job.batch_tokens / (replicas * job.sequence * micro_batch)
    if rounds < 1 or rounds != int(rounds):
        raise ConfigError(
            f"{job.batch_tokens} tokens are not a whole number of rounds: in each, {replicas} replicas take "
            f"{micro_batch} x {job.sequence}"
        )
    tokens = micro_batch * job.sequence / mesh.context  # of a device, in a round
    own_layers = model.layers / mesh.pipeline
    own = model.parameters / (mesh.tensor * mesh.pipeline)
    kept = 2.0 * own if mesh.shard == 1 else 0.0  # the copy in bfloat16
    if mesh.pipeline > 1 and mesh.shard > 1:
        kept = 6.0 * own  # gathered once for all rounds, as are the gradients
    gathered = kept or 4.0 * model.layer_parameters / mesh.tensor  # a block and the next
    in_flight = min(mesh.pipeline, rounds)
    saved = _activation_bytes(model, job.keep) * own_layers * in_flight
    working = _activation_bytes(model, "all") if job.keep != "all" else 0.0
    logits = BYTES_OF_LOGIT * model.vocabulary / mesh.tensor
    activations = tokens * ((saved + working) / mesh.tensor + logits)

    model_flops = model.flops(job.sequence) * job.batch_tokens / mesh.devices
    again = {"all": 1.0, "products": 1.0, "inputs": 4 / 3}[job.keep]
    computing = again * model_flops / (cluster.device.flops * cluster.efficiency)
    moved = _moved_bytes(model, job, mesh, tokens, rounds)
    seconds = {kind: size / _rate(cluster, mesh, kind) for kind, size in moved.items()}
    # blocks are gathered and gradients summed while others compute; the other kinds make computation wait
    hidden = seconds["data"] + seconds["shard"]
    exposed = max(0.0, hidden - computing) + seconds["tensor"] + seconds["context"] + seconds["pipeline"]
    stages = max(1, int(own_layers))  # interleaved: each device has as many stages as layers
    bubble = (computing + exposed) * (mesh.pipeline - 1) / (rounds * stages)
    step = computing + exposed + bubble
    return Estimate(
        mesh,
        micro_batch,
        BYTES_OF_STATE * own / mesh.shard,
        gathered,
        activations,
        moved,
        computing,
        exposed,
        bubble,
        job.batch_tokens / mesh.devices / step,
        model_flops / step / cluster.device.flops,
    )


def _moved_bytes(model: Transformer, job: Job, mesh: Mesh, tokens: float, rounds: float) -> dict[str, float]:
    """Return the bytes that each device sends in a step, by kind. A ring of n sends (n - 1) / n of what it gathers."""

    def ring(parts: int) -> float:
        return (parts - 1) / parts

    own = model.parameters / (mesh.tensor * mesh.pipeline)
    layers = model.layers / mesh.pipeline * rounds
    gathers = 2.0 * own * (1 if mesh.pipeline > 1 else 2 * rounds)  # in bfloat16, for forward and backward
    sums = 4.0 * own * (1 if mesh.pipeline > 1 else rounds)  # gradients, in float32
    passes = 3 if job.keep == "inputs" else 2  # forward, backward, and forward again
    slab = 2.0 * tokens * model.width
    keys = 4.0 * tokens * mesh.context * model.key_heads * model.head_width / mesh.tensor
    return {
        "data": 2.0 * ring(mesh.data) * 4.0 * own / mesh.shard,
        "shard": ring(mesh.shard) * (gathers + sums),
        "tensor": ring(mesh.tensor) * 4 * passes * layers * slab,
        "context": ring(mesh.context) * passes * layers * keys,
        "pipeline": 2.0 * rounds * slab / mesh.tensor * (mesh.pipeline > 1),
    }


def _rate(cluster: Cluster, mesh: Mesh, kind: str) -> float:
    """Return the bytes/s of a kind of splitting: a host has the parts of a tensor, then of a context, then shards."""
    inner = {
        "tensor": mesh.tensor,
        "context": mesh.tensor * mesh.context,
        "shard": mesh.tensor * mesh.context * mesh.shard,
    }
    is_inside = inner.get(kind, mesh.devices) <= cluster.per_host
    return NETWORK_SHARE * (cluster.device.link if is_inside else cluster.network)


def plan(model: Transformer, cluster: Cluster, job: Job) -> list[Estimate]:
    """Return the meshes that use all devices and fit into their memory, the fastest first.

    For each mesh the micro-batch is the largest power of two that fits; with stages it is one sequence.

    Args:
        model: The sizes of the model.
        cluster: The devices.
        job: The batch, and what is kept for the backward pass.

    >>> from ember_ml.distributed.planning import DEVICES, Cluster, Job, Transformer, plan
    >>> llama = Transformer(126, 16384, 53248, 128, 8, 128, 128256)
    >>> found = plan(llama, Cluster(DEVICES["h100"], 16384, 50e9), Job(8192, 2048 * 8192))
    >>> str(found[0].mesh)
    'shard 128 x tensor 8 x pipeline 16'
    """
    found: list[Estimate] = []
    for mesh in _meshes(model, cluster, job):
        fitting = None
        micro_batch = 1
        while mesh.data * mesh.shard * job.sequence * micro_batch <= job.batch_tokens:
            try:
                new = estimate(model, cluster, job, mesh, micro_batch)
            except ConfigError:  # the batch is not a whole number of rounds
                break
            if new.memory > MEMORY_SHARE * cluster.device.memory:
                break
            fitting = new
            if mesh.pipeline > 1:
                break
            micro_batch *= 2
        if fitting is not None:
            found.append(fitting)
    # of equally fast ones the simplest, then the smallest
    return sorted(found, key=lambda each: (round(each.step, 4), len(str(each.mesh).split(" x ")), each.memory))


def _meshes(model: Transformer, cluster: Cluster, job: Job) -> Iterator[Mesh]:
    """Yield the meshes of all devices that the sizes of model and job allow."""
    for tensor in _divisors(min(cluster.per_host, cluster.count)):
        if model.heads % tensor or model.key_heads % tensor:
            continue
        for pipeline in _divisors(cluster.count // tensor):
            if pipeline > model.layers:
                continue
            for context in _divisors(cluster.count // (tensor * pipeline)):
                if job.sequence < 8192 * context and context > 1:  # shorter parts do not fill a device
                    continue
                rest = cluster.count // (tensor * pipeline * context)
                for shard in _divisors(rest):
                    yield Mesh(rest // shard, shard, tensor, context, pipeline)


def _divisors(count: int) -> list[int]:
    return [parts for parts in range(1, count + 1) if count % parts == 0]

"""What the ranks of a test run: each job gives plain data, which the test compares."""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ember_ml import compile, distributed, get_backend, get_backend_module, nn, ops, use_backend
from ember_ml.distributed import Mesh, collectives
from ember_ml.distributed import strategy as strategies
from ember_ml.distributed.strategy import units, zero
from ember_ml.training import Trainer, callbacks, checkpoints, optimizers
from tests.distributed.collective_jobs import exchange, gradients
from tests.distributed.comparing import plain, raised
from tests.distributed.context_jobs import context
from tests.distributed.pipeline_jobs import pipeline
from tests.distributed.text_models import read_text

CURVES = ("loss", "mean_absolute_error", "val_loss", "val_mean_absolute_error")
SHARDING = ("torch", "jax")
"""The backends that split parameters over the ranks."""
STRATEGIES = ("DataParallelStrategy", "ZeroStrategy", "FullShardStrategy")


def model_and_data(width: int = 7) -> tuple[nn.Module, Any, Any]:
    """A small network with other weights on each rank, and the data of 50 batches of 8."""
    ops.seed(distributed.rank())
    model = nn.Sequential(nn.Linear(3, width), ops.tanh, nn.Linear(width, 2))
    steps = ops.reshape(ops.arange(50 * 8 * 3, dtype="float32"), (50, 8, 3))
    x = ops.sin(ops.multiply(steps, 0.7))
    return model, x, ops.stack([ops.sum(x, axis=-1), ops.cos(x[:, :, 0])], axis=-1)


def train(
    strategy: str = "DataParallelStrategy",
    rows: int = 8,
    first: int = 0,
    last: int = 50,
    start: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """Steps on the parts of each batch; the losses of the whole batches, and the parameters at the end."""
    made = getattr(strategies, strategy)()
    model, xs, ys = model_and_data()
    optimizer = optimizers.AdamW(0.01, **settings)
    made.prepare(model, optimizer)
    if start is not None:
        model.load_state_dict(start["parameters"])
        made.load_state(optimizer, start["state"], first)
    gradients_of = nn.value_and_grad(model, lambda x, y: ops.mean(ops.square(ops.subtract(model(x), y))))
    losses = []
    for step in range(first, last):
        x, y = made.distribute((xs[step][:rows], ys[step][:rows]))[made.rank]
        loss, gradients = gradients_of(x, y)
        made.apply(optimizer, model.trainable(), made.average(list(gradients.values()), weight=len(x)))
        losses.append(float(ops.item(made.mean(loss, weight=len(x)))))
    whole = made.gather_state(optimizer)
    return {
        "losses": losses,
        "parameters": {name: plain(x) for name, x in model.state_dict().items()},
        "state": {name: plain(x) for name, x in whole.items()},
        "state bytes": [nbytes(optimizer.state_dict()), nbytes(whole)],
    }


CLIPPED = {"max_norm": 0.05, "max_value": 0.02, "weight_decay": 0.1, "last": 10}

GROUPED: dict[str, Any] = {
    "groups": [{"match": r".*bias", "weight_decay": 0.0, "rate_factor": 2.0}, {"match": r"0\..*", "beta1": 0.5}],
    "weight_decay": 0.1,
    "max_norm": 0.05,
}


def variants(strategy: str) -> dict[str, Any]:
    """Training with limited gradients, on batches that do not split evenly, in groups, interrupted in the middle."""
    half = train(strategy, last=5)
    grouped = train(strategy, last=5, **GROUPED)
    return {
        "clipped": train(strategy, **CLIPPED),
        "uneven": train(strategy, rows=7, last=10) if strategy != "FullShardStrategy" else None,
        "tiny": train(strategy, rows=1, last=10) if strategy != "FullShardStrategy" else None,
        "grouped": train(strategy, first=5, last=10, start=grouped, **GROUPED),
        "half": half,
        "resumed": train(strategy, first=5, last=10, start=half),
    }


def fit(strategy: str | None, folder: str, epochs: int, rows: int = 33, is_lazy: bool = False) -> dict[str, Any]:
    """What the trainer gives, with a metric and validation, from the checkpoint in ``folder`` if there is one.

    Of 33 rows, which are weighted, some by 0, the last batch is one row: one of the processes has none.
    """
    ops.seed(distributed.rank())
    model = nn.Sequential(nn.Linear(5) if is_lazy else nn.Linear(3, 5), ops.tanh, nn.Linear(5, 1))
    x = ops.sin(ops.reshape(ops.arange(rows * 3, dtype="float32"), (rows, 3)))
    y = ops.sum(x, axis=1, keepdims=True)
    weight = ops.mod(ops.arange(rows, dtype="float32"), 7.0)
    given = [Mesh(shard=2)] if strategy == "MeshStrategy" else []
    made = None if strategy is None else getattr(strategies, strategy)(*given)
    norms = callbacks.GradientNorms(every=2, by_name=True)
    trainer = Trainer(
        model, optimizers.Adam(0.01), metrics=["mean_absolute_error"], callbacks=[norms], strategy=made, seed=3
    )
    if checkpoints.exists(folder):
        trainer.restore(folder)
    history = trainer.fit(x, y, weight=weight, epochs=epochs, batch_size=8, validation=(x, y))
    trainer.save(folder)
    return {
        "curves": {name: [list(history[name]), list(history[name].epochs)] for name in CURVES},
        "parameters": {name: plain(x) for name, x in model.state_dict().items()},
        "norms": {f"{name} {steps}": x for steps, found in norms.norms.items() for name, x in found.items()},
    }


def fits(folder: str) -> dict[str, Any]:
    """The trainer with each strategy: two epochs, and a third from the checkpoint of the two."""
    found: dict[str, Any] = {}
    for strategy in [*STRATEGIES, *["MeshStrategy"] * (get_backend() == "torch")]:
        if strategy == "FullShardStrategy" and get_backend() not in SHARDING:
            continue
        # one program of all ranks computes gradients on JAX, of one shape
        rows = 32 if strategy == "FullShardStrategy" and get_backend() == "jax" else 33
        two = fit(strategy, f"{folder}/{strategy}", 2, rows)
        found[strategy] = {"two": two, "three": fit(strategy, f"{folder}/{strategy}", 3, rows)}
    found["lazy"] = fit("DataParallelStrategy", f"{folder}/lazy", 2, is_lazy=True)
    return found


def overlap() -> dict[str, Any]:
    """Averages of gradients that begin while others are computed, beside those that begin afterwards."""
    ops.seed(distributed.rank())
    # of two messages: the first starts when the gradients of the last layers are known, the other one at the end
    model = nn.Sequential(nn.Linear(512, 64), ops.tanh, nn.Linear(64, 4500), ops.tanh, nn.Linear(4500, 3))
    model.unused = nn.Parameter(ops.ones((2,)))
    made = strategies.DataParallelStrategy()
    weight = 1.0 + distributed.rank()
    gradients_of = nn.value_and_grad(model, lambda x: ops.mean(ops.square(model(x))))
    x = ops.sin(ops.reshape(ops.arange(4 * 512, dtype="float32"), (4, 512)))
    plain_ones = list(gradients_of(x)[1].values())
    expected = collectives.average(plain_ones, weight)
    with made.overlapping(weight):
        early = list(gradients_of(x)[1].values())
    found = made.average(early, weight)
    with made.overlapping(weight):
        changed = [ops.multiply(g, 2.0) for g in gradients_of(x)[1].values()]
    doubled = made.average(changed, weight)
    collectives.finish([*found, *doubled])
    shifts, loss = [], found[0]
    stay = [(2, 2)] * 5  # which the ranks come to count upon
    for weights in (*stay, (2, 3), *stay, (0, 3), *stay, (3, 3), (2, 2)):
        weight = weights[distributed.rank()]
        factor = ops.divide(1.0, float(weight)) if weight == 0 else 1.0  # of no samples, the loss may be anything
        with made.overlapping(weight):
            loss, named = nn.value_and_grad(model, lambda x, f=factor: ops.mean(ops.square(ops.multiply(model(x), f))))(
                x
            )
        early, loss = made.average_with_loss(list(named.values()), loss, weight)
        later = collectives.average(list(named.values()), weight)
        collectives.finish([*early, *later, loss])
        shifts.append([early, later])

    held = []
    for number in range(6):
        with made.overlapping():
            left = list(gradients_of(x)[1].values())
        if number % 2:  # otherwise nobody asks for the averages
            left = made.average(left)
            collectives.finish(left)
            del left
            gc.collect()
            held.append(sum(type(value) is type(loss) for value in gc.get_objects()))

    def distance(xs: Any, ys: Any, factor: float) -> float:
        pairs = zip(xs, ys, strict=True)
        return max(float(ops.item(ops.max(ops.abs(ops.subtract(x, ops.multiply(y, factor)))))) for x, y in pairs)

    return {
        "same": distance(found, expected, 1.0),
        "doubled": distance(doubled, expected, 2.0),
        "size": max(float(ops.item(ops.max(ops.abs(g)))) for g in expected),
        "own": distance(plain_ones, expected, 1.0),
        "unused": plain(found[list(model.trainable()).index("unused")]),
        "shifted": [distance(early, later, 1.0) for early, later in shifts],
        "kept": _kept_by(loss),
        "held": held,
    }


def _kept_by(x: Any) -> int:
    """The bytes of memory that a tensor keeps from being used again, where its library tells."""
    storage, base = getattr(x, "untyped_storage", None), getattr(x, "base", None)
    return storage().nbytes() if storage is not None else (x if base is None else base).nbytes


def assigned() -> list[Any]:
    """A parameter that is split over the ranks, read after it was assigned to, and how much of it this rank holds."""
    made, model = strategies.FullShardStrategy(), nn.Linear(3, 4, bias=False)
    made.prepare(model, optimizers.Adam())
    model.weight = ops.reshape(ops.arange(12, dtype="float32"), (4, 3))
    return [plain(model.weight), model.variable("weight").nbytes]


def state_share() -> float:
    """The part of Adam's state that this rank keeps of a network whose layers do not split evenly."""
    strategy, optimizer = strategies.ZeroStrategy(), optimizers.Adam()
    model = nn.Sequential(nn.Linear(17, 31), ops.relu, nn.Linear(31, 13))
    strategy.prepare(model, optimizer)
    _stepping(strategy, model, optimizer)(ops.ones((2, 17)))
    return nbytes(optimizer.state_dict()) / nbytes(strategy.gather_state(optimizer))


def memory(strategy: str, layers: int = 16, width: int = 1024) -> dict[str, int]:
    """The bytes that parameters, gradients and optimizer state need at most in two steps, above those before.

    The variable MALLOC_MMAP_THRESHOLD_ must be set, so that the system knows at once what is no longer used.
    """
    assert "MALLOC_MMAP_THRESHOLD_" in os.environ
    x = ops.ones((1, width))
    made = getattr(strategies, strategy)()
    small = nn.Linear(width, 1)  # so that all libraries are loaded, and the processes joined
    made.prepare(small, optimizers.Adam())
    _stepping(made, small, optimizers.Adam())(x)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is used now
    before = _peak()
    ops.seed(0)
    model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(layers)])
    optimizer = optimizers.Adam()
    made.prepare(model, optimizer)
    Path("/proc/self/clear_refs").write_text("5")  # while the model was made, it was whole
    step = _stepping(made, model, optimizer)
    for _ in range(2):
        step(x)
    return {"peak": _peak() - before, "parameters": 4 * layers * width * width}


def checkpoint_memory(strategy: str, folder: str, layers: int = 16, width: int = 1024) -> dict[str, float]:
    """The peaks of memory, in sizes of all parameters, while a model is prepared, trained, saved and restored.

    Also what it takes between. The model has no values before, so that each process need only have its part.
    """
    assert "MALLOC_MMAP_THRESHOLD_" in os.environ
    x = ops.ones((4 * distributed.world_size(), width))

    def make(count: int) -> Trainer:
        with nn.empty():
            model = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(count)])
        return Trainer(model, "adam", strategy=getattr(strategies, strategy)(), progress=False)

    def fit(made: Trainer) -> None:
        made.fit(x, x, epochs=100, batch_size=len(x), max_steps=made.steps + 1)

    fit(make(1))  # so that all libraries are loaded, and the processes joined
    size, found = 4 * layers * width * width, {}
    before = 0.0

    def note(name: str) -> None:
        found[name] = (_peak() - before) / size
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from what is used now

    note("before")
    before = _peak()
    made = make(layers)
    note("made")
    fit(made)
    note("trained")
    note("before save")
    made.save(folder)
    note("saved")
    del made
    gc.collect()  # it refers to itself
    note("let go")
    made = make(layers)
    made.restore(folder)
    note("restored")
    note("after restore")
    return found


def _stepping(strategy: Any, model: nn.Module, optimizer: Any) -> Any:
    """Return a step of training on a batch of inputs, compiled where the trainer would do so."""
    gradients_of = nn.value_and_grad(model, lambda x: ops.mean(ops.square(model(x))))
    compilation = get_backend_module().compilation
    if compilation is not None and compilation.compiles_steps:
        gradients_of = compile(gradients_of)

    def step(x: Any) -> None:
        gradients = gradients_of(x)[1]
        strategy.apply(optimizer, model.trainable(), strategy.average(list(gradients.values())))

    return step


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def nbytes(tensors: dict[str, Any]) -> int:
    return sum(ops.to_numpy(x).nbytes for x in tensors.values())


def everything(folder: str) -> dict[str, Any]:
    """All jobs of one test run, so that each backend starts its processes once."""
    found: dict[str, Any] = {"exchange": exchange(), "refused": {}, "fits": fits(folder), "overlap": overlap()}
    found["gradients"], found["pipeline"] = gradients(), pipeline()
    if get_backend() == "jax":  # which compiles the steps
        found["refused"]["tensor"] = raised(read_text, "layers", {"tensor": 2})
    else:
        found["layers"] = read_text("layers", {"tensor": 2})
        found["sequence"] = {kind: read_text(kind, {"tensor": 2}, splits_sequence=True) for kind in ("layers", "gpt2")}
        found["context"] = context(folder)
    for strategy in STRATEGIES:
        if strategy == "FullShardStrategy" and get_backend() not in SHARDING:
            found["refused"]["full"] = raised(train, strategy)
        else:
            found[strategy] = {"whole": train(strategy), **variants(strategy)}
    if get_backend() in SHARDING:
        found["sharded"] = read_text("layers", {"shard": 2}, 4, f"{folder}/sharded")
        with use_backend("numpy"):  # and one process alone goes on from what both have written
            found["reopened"] = read_text("layers", None, 4, f"{folder}/sharded", is_saved=True)
        found["assigned"] = assigned()
        with pytest.MonkeyPatch.context() as patch:  # parameters of two modules fill more than one unit
            patch.setattr(units, "UNIT_BYTES", 64)
            found["in units"] = train("FullShardStrategy", last=10)
        found["refused"]["uneven"] = raised(lambda: train("FullShardStrategy", rows=7, last=1))
    with pytest.MonkeyPatch.context() as patch:  # and of ZeroStrategy more than one vector
        patch.setattr(zero, "BUCKET_BYTES", 64)
        found["in vectors"] = train("ZeroStrategy", last=10)
    found["refused"]["matrices"] = raised(strategies.ZeroStrategy().prepare, model_and_data()[0], optimizers.Muon())
    return found


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))

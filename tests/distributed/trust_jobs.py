"""What ranks do that must not go wrong in silence: data, random numbers, checkpoints, strategies of one's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ember_ml import distributed, get_backend, nn, ops
from ember_ml.distributed import collectives, heartbeat
from ember_ml.distributed import strategy as strategies
from ember_ml.training import DataLoader, Trainer, callbacks, checkpoints
from tests.distributed.comparing import plain, raised

STRATEGIES = ("DataParallelStrategy", "ZeroStrategy", "FullShardStrategy")


def data() -> tuple[Any, Any]:
    x = ops.random_normal((16, 4), seed=1)
    return x, ops.sum(x, axis=1, keepdims=True)


def trainer(strategy: Any, dropout: float = 0.0, **settings: Any) -> Trainer:
    ops.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), ops.tanh, nn.Dropout(dropout), nn.Linear(8, 1))
    return Trainer(model, "adam", strategy=strategy, progress=False, **settings)


class Own(strategies.DataParallelStrategy):
    """Gives every second row to each of two processes."""

    def distribute(self, batch: Any) -> list[Any]:
        return [tuple(part[rank::2] for part in batch) for rank in range(2)]


def own_distribute() -> list[Any]:
    """The rows that a strategy with its own way to distribute gives to the model."""
    seen: list[Any] = []

    class Rows(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            seen.append(plain(x))
            return self.layer(x)

    made = Trainer(Rows(), "sgd", strategy=Own(), compile=False, progress=False)  # the model reads values
    rows = ops.reshape(ops.arange(8, dtype="float32"), (8, 1))
    made.fit(rows, ops.zeros((8, 1)), epochs=1, batch_size=4, shuffle=False)
    return seen


def shuffled_apart() -> list[list[str]]:
    """What an iterable raises that gives each rank another order, and one that does not."""
    rank = distributed.rank()

    def batches(first: int) -> Iterator[Any]:
        for number in range(first, first + 3):
            yield ops.full((4, 4), float(number)), ops.zeros((4, 1))

    found = []
    for first in (rank, 0):
        made = trainer(strategies.DataParallelStrategy())
        found.append(raised(lambda made=made, first=first: made.fit(DataLoader(lambda: batches(first)))))
        found.append(raised(lambda made=made, first=first: made.fit(DataLoader(lambda: batches(first), prefetch=2))))
    return found


def masks() -> list[Any]:
    """Which elements this rank drops in a step, and what the program itself draws afterwards."""
    seen: list[Any] = []

    class Noisy(nn.Module):
        def __init__(self) -> None:
            self.layer, self.dropout = nn.Linear(4, 1), nn.Dropout(0.5)

        def forward(self, x: Any) -> Any:
            mask = self.dropout(ops.ones((64,)))
            seen.append([float(v > 0) for v in plain(ops.stop_gradient(mask))])
            return self.layer(x)

    ops.random.seed(0)
    made = Trainer(Noisy(), "sgd", strategy=strategies.DataParallelStrategy(), compile=False, progress=False)
    made.step(data())
    return [seen[0], plain(ops.random_uniform((3,)))]


def resumed(folder: str) -> list[Any]:
    """The losses of a run with dropout, whole and in two parts."""
    whole = trainer(strategies.DataParallelStrategy(), 0.3)
    whole.fit(*data(), epochs=4, batch_size=8)
    part = trainer(strategies.DataParallelStrategy(), 0.3)
    part.fit(*data(), epochs=2, batch_size=8)
    part.save(Path(folder) / "resumed")
    again = trainer(strategies.DataParallelStrategy(), 0.3).restore(Path(folder) / "resumed")
    again.fit(*data(), epochs=4, batch_size=8)
    return [whole.history["loss"], again.history["loss"]]


def different_folders(folder: str) -> list[Any]:
    """What restoring and resuming raise where each rank has a folder of its own, and what is left there."""
    rank, path = distributed.rank(), Path(folder) / f"own-{distributed.rank()}"
    first = trainer(strategies.DataParallelStrategy())
    first.fit(*data(), epochs=1, batch_size=8)
    first.save(path)  # which the first rank writes alone
    other = trainer(strategies.DataParallelStrategy(), callbacks=[callbacks.Checkpoint(path, resume=True)])
    found = [raised(other.restore, path), raised(lambda: other.fit(*data(), epochs=2, batch_size=8))]
    found.append(checkpoints.read(path)[1]["steps"] if rank == 0 else None)
    if rank:  # and one that is there, but another
        alone = trainer(None)
        alone.fit(*data(), epochs=2, batch_size=8)
        alone.save(path)
    return [*found, raised(other.restore, path)]


def failed_save(folder: str) -> list[Any]:
    """What saving to a place where nothing can be written raises on each rank, and that all go on together."""
    path = Path(folder) / "file"
    path.write_text("not a folder")
    made = trainer(strategies.DataParallelStrategy())
    made.fit(*data(), epochs=1, batch_size=8)
    found = raised(made.save, path / "below")
    made.fit(*data(), epochs=2, batch_size=8)
    return [found, made.steps]


def saved_beside_steps(folder: str, strategy: str) -> dict[str, Any]:
    """Checkpoints that are written while the ranks train: one that is whole, one that a rank cannot write, the next."""
    made = trainer(getattr(strategies, strategy)())
    made.fit(*data(), epochs=1, batch_size=8)
    folders = [Path(folder) / f"{strategy}-{name}" for name in ("waited", "begun")]
    made.save(folders[0])
    made.save(folders[1], wait=False)
    made.fit(*data(), epochs=2, batch_size=8)  # which waits at its end
    contents = []
    for path in folders:
        tensors, state = checkpoints.read(path)
        contents.append(
            [state["steps"], {part: {k: plain(x) for k, x in named.items()} for part, named in tensors.items()}]
        )
    made.strategy.barrier()  # before anyone writes there again
    write, name = checkpoints.write_pieces, "write_pieces"
    failing = distributed.rank() == 1
    if strategy == "DataParallelStrategy":  # the first process writes alone
        write, name, failing = checkpoints.write, "write", distributed.rank() == 0
    if failing:
        setattr(checkpoints, name, _refuse)
    made.save(folders[1], wait=False)
    made.step(data())
    error = raised(made.save, folders[1])
    kept = checkpoints.read(folders[1])[1]["steps"]
    made.strategy.barrier()
    setattr(checkpoints, name, write)
    made.save(folders[1], wait=False)
    made.step(data())
    made.finish_saving()
    files = sorted(path.name for path in folders[1].iterdir())
    return {
        "contents": contents,
        "error": error,
        "steps": [kept, checkpoints.read(folders[1])[1]["steps"]],
        "files": files,
    }


def failed_beside_steps(folder: str) -> list[Any]:
    """What a checkpoint raises that the first rank cannot write while all train, and after how many steps."""

    class SaveOnce(callbacks.Callback):
        def after_step(self, trainer: Trainer) -> None:
            if trainer.steps == 3:
                trainer.save(path, wait=False)

    path, write = Path(folder) / "beside", checkpoints.write
    often = callbacks.Checkpoint(path, every_steps=10**6)
    made = trainer(strategies.DataParallelStrategy(), callbacks=[often, SaveOnce()])
    checkpoints.write = _refuse
    found = raised(lambda: made.fit(*data(), epochs=10**6, batch_size=8, max_steps=3000))
    checkpoints.write = write
    steps = made.steps
    made.fit(*data(), epochs=10**6, batch_size=8, max_steps=steps + 2)
    return [found, steps, made.steps, checkpoints.read(path)[1]["steps"]]


def _refuse(*arguments: Any) -> Any:
    raise OSError("no space left on the device")


def logged(folder: str) -> int:
    """How many lines a log of two epochs has."""
    path = Path(folder) / "log.csv"
    made = trainer(strategies.DataParallelStrategy(), callbacks=[callbacks.CSVLog(path)])
    made.fit(*data(), epochs=2, batch_size=8)
    made.strategy.barrier()
    return len(path.read_text().splitlines())


def evaluated() -> list[Any]:
    """The results of evaluations, by two processes and by each alone, and how many rows the model of this rank saw."""
    found: list[Any] = []
    x, y = data()
    weight = ops.arange(16, dtype="float32")
    for strategy in (strategies.DataParallelStrategy(), strategies.SingleProcess()):
        rows: list[int] = []

        class Rows(nn.Module):
            def __init__(self) -> None:
                self.layer = nn.Linear(4, 1)

            def forward(self, x: Any, rows: list[int] = rows) -> Any:
                rows.append(x.shape[0])
                return self.layer(x)

        ops.random.seed(0)
        metrics = ["mean_absolute_error", "r2"]
        made = Trainer(Rows(), "sgd", metrics=metrics, strategy=strategy, compile=False, progress=False)
        made.evaluate(x, y)  # it builds the model
        rows.clear()
        results = [
            made.evaluate(x, y, batch_size=5),  # whose last batch is one sample, for one of the processes
            made.evaluate((x, y, weight), batch_size=4),
            made.evaluate([(x[:8], y[:8]), (x[8:], y[8:])]),
            made.evaluate(DataLoader((x, y), batch_size=4, shuffle=True, seed=3)),
        ]
        history = made.fit(x, y, batch_size=8, shuffle=False, validation=(x, y))
        found.append([results, history["val_loss"].epochs, sum(rows) - 16 // strategy.world_size])
    return found


def moves() -> list[int]:
    """How often the launcher hears that this rank goes on, in an evaluation of four batches and of eight."""
    made = trainer(strategies.DataParallelStrategy())
    found = []
    for size in (4, 2):
        before = heartbeat.moves()
        made.evaluate(*data(), batch_size=size)
        found.append(heartbeat.moves() - before)
    return found


def compared() -> list[list[str]]:
    """What different calls raise where calls are compared, and that equal ones compute."""
    rank = distributed.rank()
    found = [
        raised(lambda: collectives.all_reduce(ops.ones((4,), dtype="int32" if rank else "float32"))),
        raised(lambda: collectives.all_reduce(ops.ones((4 + 2 * rank,)))),
        raised(lambda: collectives.all_reduce(ops.ones((4,)), "max" if rank else "sum")),
        raised(lambda: collectives.all_gather(1.0) if rank else collectives.barrier()),
        raised(lambda: collectives.broadcast([1.0], source=rank)),
        raised(lambda: collectives.average([ops.ones((2,))] * (4 + rank))),
        raised(lambda: collectives.begin(collectives.all_gather if rank else collectives.all_to_all, ops.ones((2,)))),
        raised(lambda: collectives.make_group([[1], [0]] if rank else [[0, 1]])),
        raised(lambda: collectives.recv((6,), "float32", 0) if rank else collectives.send(ops.ones((4,)), 1)),
    ]
    if rank:
        collectives.send(ops.ones((2,)), 0)
    else:
        collectives.recv((2,), "float32", 1)
    collectives.barrier()
    return [*found, plain(collectives.all_reduce(ops.array([1.0, float(rank)])))]


def compiled() -> list[Any]:
    """The losses of parameters that are split, eager and compiled."""
    found = []
    for is_compiled in (False, True):
        made = trainer(strategies.FullShardStrategy(), compile=is_compiled)
        made.fit(*data(), epochs=2, batch_size=8)
        found.append(made.history["loss"])
    return found


def trusted(folder: str) -> dict[str, Any]:
    """All jobs of one test run."""
    return {
        "own": own_distribute(),
        "shuffled": shuffled_apart(),
        "masks": masks(),
        "resumed": resumed(folder),
        "folders": different_folders(folder),
        "failed": failed_save(folder),
        "beside": [
            saved_beside_steps(folder, strategy) for strategy in STRATEGIES[: 3 if get_backend() == "torch" else 2]
        ],
        "failed beside": failed_beside_steps(folder),
        "logged": logged(folder),
        "evaluated": evaluated(),
        "moves": moves(),
    }


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))

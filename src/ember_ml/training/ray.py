"""Train in the workers of Ray Train: tell them their places among each other, and Ray of their checkpoints.

Ray starts the workers, and starts them again after a failure: ``pip install 'ember-ml[ray]'``. A whole program is
``examples/cluster/ray_train.py``.
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ember_ml.backend.processes.rendezvous import own_address
from ember_ml.distributed import rank
from ember_ml.training.callback_base import Callback

if TYPE_CHECKING:
    from ember_ml.training.trainer import Trainer

__all__ = ["ReportToRay", "join_workers"]


def join_workers() -> None:
    """Let the workers of Ray Train compute together, on every backend; the first line of what each of them runs.

    On PyTorch a strategy would find the process group of Ray's ``TorchTrainer`` by itself.
    """
    train = _import_train()
    context = train.get_context()
    size = context.get_world_size()
    if size > 1:
        # not the port that Ray has told the workers: PyTorch listens there
        address = train.collective.broadcast_from_rank_zero(own_address())
        os.environ.update(
            EMBER_ML_RANK=str(context.get_world_rank()),
            EMBER_ML_WORLD_SIZE=str(size),
            EMBER_ML_LOCAL_RANK=str(context.get_local_rank()),
            EMBER_ML_COORDINATOR=address,
        )


class ReportToRay(Callback):
    """Save after each epoch to a folder that all workers share, and report the checkpoint and the values to Ray.

    Training begins with the checkpoint that was reported last, if there is one: after a failure Ray starts the workers
    again.

    Args:
        folder: The folder, which Ray copies to its own storage.
    """

    folder: Path

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)

    def begin(self, trainer: Trainer) -> None:
        reported = _import_train().get_checkpoint()
        if reported is not None:
            with reported.as_directory() as folder:
                trainer.restore(folder)

    def after_epoch(self, trainer: Trainer, values: dict[str, Any]) -> None:
        train = _import_train()
        trainer.save(self.folder)
        # all workers report, and one of them the checkpoint
        checkpoint = train.Checkpoint.from_directory(str(self.folder)) if rank() == 0 else None
        numbers = {name: float(value) for name, value in values.items() if not isinstance(value, list)}
        train.report({**numbers, "epoch": trainer.epoch, "steps": trainer.steps}, checkpoint=checkpoint)


def _import_train() -> Any:
    try:
        import ray.train  # pyright: ignore[reportMissingImports]
        import ray.train.collective  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError("the workers of Ray Train need Ray: pip install 'ember-ml[ray]'") from error
    return ray.train

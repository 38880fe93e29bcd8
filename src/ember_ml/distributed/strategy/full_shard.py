"""Split parameters, gradients and optimizer state over the ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ember_ml import ops
from ember_ml.backend.capabilities import Sharding
from ember_ml.backend.selection import active
from ember_ml.core.lazy_tensors import LazyTensors
from ember_ml.distributed import collectives
from ember_ml.distributed.groups import group
from ember_ml.distributed.pieces import Piece, vector_piece
from ember_ml.distributed.strategy.base import Strategy, check_built, give_all
from ember_ml.distributed.strategy.units import ShardedParameter, find_uses, plan_units
from ember_ml.distributed.strategy.zero import check_elementwise, global_square, sum_over_ranks
from ember_ml.errors import UnsupportedOp
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.variable import Variable
from ember_ml.typing import Tensor

__all__ = ["FullShardStrategy", "check_equal_weights", "find_share", "sharding_engine"]


class FullShardStrategy(Strategy):
    """Data-parallel training in which each of n processes keeps an n-th of everything (ZeRO, stage 3; FSDP).

    A parameter is whole only while it is computed with: it is gathered when the model reads it, gathered again when the
    backward pass comes to it, and its gradient goes at once to the parts, averaged. On PyTorch small
    neighbours travel together. On PyTorch and JAX: elsewhere gradients keep the parameters that they need, so that
    nothing would be saved, and so do those of JAX in a step that is not compiled. Every process must read parameters
    together with the others; ``model.state_dict()`` gives whole ones.
    """

    def __init__(self, num_devices: int | None = None) -> None:
        super().__init__(num_devices)
        self._splits: dict[str, Any] = {}

    def prepare(self, model: Module, optimizer: Any = None) -> None:
        """Give every process its part of the parameters of rank 0; those of the model are replaced."""
        check_elementwise(optimizer, model.trainable(), type(self).__name__)
        engine = sharding_engine(type(self).__name__)
        if self.world_size == 1:
            return
        check_built(model)
        give_all(list(model.named_buffers().values()))
        for unit in plan_units(find_uses(model)):
            shapes = [use.parameter.shape for use in unit]
            splits = engine.make_splits(shapes, group(), collectives)
            for use, split in zip(unit, splits, strict=True):
                use.replace(ShardedParameter(use.parameter, split, engine.recording), type(self).__name__)
        named = model.named_parameters()
        self._splits = {name: x.split for name, x in named.items() if isinstance(x, ShardedParameter)}

    def overlapping(self, weight: float | None = None) -> AbstractContextManager[Any]:
        """A block around the computation of gradients, which are averaged in it by themselves."""
        return nullcontext()

    def share_of(self, weight: float, rows: int) -> float | None:
        return None if self.world_size == 1 else find_share(type(self).__name__, weight, rows)

    def average_with_loss(
        self, gradients: Sequence[Tensor], loss: Tensor, weight: float | None = None
    ) -> tuple[Sequence[Tensor], Tensor]:
        """Return the gradients as they are, which :meth:`share_of` has weighted, and the loss of the whole batch."""
        return gradients, self.mean(loss, weight)

    def average(self, gradients: Sequence[Tensor], weight: float | None = None) -> Sequence[Tensor]:
        """Return the gradients as they are: the backward pass has averaged them, for parts of equal weight.

        Of other parts, multiply the loss by :meth:`share_of`, and give no weight here.
        """
        if self.world_size > 1:
            check_equal_weights(type(self).__name__, weight, self.num_parts)
        return gradients

    def add_squares(self, squares: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(squares) if self.world_size == 1 else sum_over_ranks(squares)

    def apply(self, optimizer: Any, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> None:
        """Update this process's parts."""
        optimizer.apply(named, gradients, None if self.world_size == 1 else global_square(optimizer, named, gradients))

    @property
    def splits_parameters(self) -> bool:
        return bool(self._splits)

    def piece_of(self, name: str, x: Tensor) -> Piece | None:
        split = self._splits.get(name)
        if split is None:
            return super().piece_of(name, x)
        has_any = split.share > 0 or (split.size == 0 and self.is_main)
        return vector_piece(x, split.shape, split.span()) if has_any else None

    def part_of(self, name: str, whole: Tensor) -> Tensor:
        split = self._splits.get(name)
        return whole if split is None else split.part_of(whole)

    def average_collected(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the gradients as they are: the backward passes have averaged them."""
        return gradients

    def gather_state(self, optimizer: Any) -> dict[str, Tensor]:
        """Return the whole state of the optimizer, as its ``state_dict`` gives it in a program of one process."""
        state = optimizer.current_tensors()
        return {
            key: self._splits[_name_in(key)].gather_whole(x) if _name_in(key) in self._splits else x
            for key, x in state.items()
        }

    def load_state(self, optimizer: Any, state: Mapping[str, Tensor], step: int) -> None:
        """Keep this process's part of a whole state of the optimizer after ``step`` updates."""
        parts = LazyTensors(state, lambda key: self.part_of(_name_in(key), ops.asarray(state[key])))
        optimizer.load_state_dict(parts, step)


def _name_in(key: str) -> str:
    """Return the name of the parameter in the key ``slot/name`` of an optimizer's state."""
    return key.partition("/")[2]


def check_equal_weights(strategy: str, weight: float | None, parts: int) -> None:
    """Raise where the parts of a batch differ in size, whose gradients the backward pass averages."""
    if weight is None:
        return
    high, low = ops.to_numpy(collectives.all_reduce(ops.asarray([weight, -weight], dtype="float32"), "max"))
    if high != -low:
        raise ValueError(
            f"{strategy} averages parts of batches of equal size, and they are {-low:g} to {high:g}: let the batch "
            f"size be a multiple of {parts}, or multiply the loss by strategy.share_of(weight, rows) before"
        )


def find_share(strategy: str, weight: float, rows: int, repeats: int = 1) -> float | None:
    """Return the weight of this process's part over the mean of all parts, of which ``repeats`` ranks each have one.

    None where all parts have the same weight. Parts with different numbers of rows raise where the engine of the active
    backend cannot compute on them.
    """
    found = ops.to_numpy(collectives.all_gather(ops.asarray([[weight, rows]], dtype="float32"))).tolist()[::repeats]
    weights, lengths = zip(*found, strict=True)
    wrong = [x for x in weights if not (math.isfinite(x) and x >= 0)]
    if wrong:  # on whichever process: all raise
        raise ValueError(f"a weight is a number from 0 up, not {wrong[0]!r}")
    if len({*lengths}) > 1 and not sharding_engine(strategy).takes_unequal_parts:
        raise ValueError(
            f"{strategy} on {active().name} computes on parts of batches of equal size, and they are "
            f"{min(lengths):g} to {max(lengths):g}: let the batch size be a multiple of {len(lengths)}, and drop the "
            "last batch if it is smaller"
        )
    total = math.fsum(weights)
    return None if len({*weights}) == 1 or not total else weight * len(weights) / total


def sharding_engine(strategy: str) -> Sharding:
    """Return the active backend's means to gather parameters again; ``UnsupportedOp`` where it has none."""
    backend = active()
    if backend.sharding is None:
        raise UnsupportedOp(
            f"{strategy} needs gradients that gather parameters again when they come to them, and those of "
            f"{backend.name} keep them whole: use ZeroStrategy, which splits the optimizer's state, or PyTorch or JAX"
        )
    return backend.sharding

"""Split the optimizer state over the ranks: each updates its part of all parameters, then they are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ember_ml import ops
from ember_ml.backend.processes.group import BUCKET_BYTES, buckets_of
from ember_ml.backend.selection import active
from ember_ml.core.lazy_tensors import LazyTensors
from ember_ml.distributed import collectives
from ember_ml.distributed.pieces import Piece, SavedTensors, vector_piece
from ember_ml.distributed.strategy.base import Strategy
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.variable import Variable, assign_all, values_of
from ember_ml.typing import Tensor

__all__ = ["ZeroStrategy", "check_elementwise", "sum_over_ranks"]


class ZeroStrategy(Strategy):
    """Data-parallel training in which each of n processes keeps an n-th of the optimizer's state (ZeRO, stage 1).

    The parameters of one dtype are long vectors, of which each rank has a part: it gets the averaged gradients of
    that part, updates it, and the parts are gathered. As many bytes travel as in :class:`DataParallelStrategy`, but on
    MLX's ring, which can only sum whole vectors. The optimizer must be elementwise: Adafactor and Muon look at whole
    matrices.
    """

    def __init__(self, num_devices: int | None = None) -> None:
        super().__init__(num_devices)
        self._vectors: dict[str, _Vector] = {}
        self._names: list[str] = []

    def prepare(self, model: Module, optimizer: Any = None) -> None:
        check_elementwise(optimizer, model.trainable(), type(self).__name__)
        super().prepare(model, optimizer)
        self._lay_out(model.trainable(), optimizer)

    def _lay_out(self, named: Mapping[str, Variable], optimizer: Any) -> None:
        groups: dict[str, dict[str, Variable]] = {}
        for name, variable in named.items():
            places = () if optimizer is None else optimizer.places_of(name, variable)
            groups.setdefault("-".join(["part/" + variable.dtype.name, *map(str, places)]), {})[name] = variable
        self._vectors, self._names = {}, list(named)
        for key, group in groups.items():
            sizes = [x.size * x.dtype.itemsize for x in group.values()]
            names = list(group)
            for number, bucket in enumerate(buckets_of([None] * len(group), sizes, BUCKET_BYTES)):
                part = {names[place]: group[names[place]] for place in bucket}
                vector = f"{key}.{number}" if number else key
                self._vectors[vector] = _Vector(part, self.rank, self.world_size)
                if optimizer is not None:
                    optimizer.place(vector, part)

    def overlapping(self, weight: float | None = None) -> AbstractContextManager[Any]:
        """A block around the computation of gradients; nothing is averaged before all are known."""
        return nullcontext()

    def average(self, gradients: Sequence[Tensor], weight: float | None = None) -> Sequence[Tensor]:
        """This rank's part of the gradients of the whole batch, one vector for each dtype of parameters."""
        if self.world_size == 1:
            return gradients
        by_name = dict(zip(self._names, gradients, strict=True))
        pending = []  # one vector is made while others travel
        for vector in self._vectors.values():
            x = vector.joined(by_name)
            if weight is None:
                pending.append(collectives.begin(collectives.reduce_scatter, x, "mean"))
            else:
                scaled = ops.multiply(x, weight) if weight else ops.zeros_like(x)
                pending.append(collectives.begin(collectives.reduce_scatter, scaled))
        if weight is None:
            return [x.wait() for x in pending]
        total = collectives.all_reduce(ops.asarray(float(weight), dtype="float32"))
        return [ops.divide(x, ops.cast(total, active().dtype_of(x))) for x in (x.wait() for x in pending)]

    def name_gradients(self, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return this rank's elements of each gradient, a vector, by the names of the parameters."""
        if self.world_size == 1:
            return super().name_gradients(named, gradients)
        found: dict[str, Tensor] = {}
        for vector, part in zip(self._vectors.values(), gradients, strict=True):
            found |= vector.elements(part)
        return {name: found[name] for name in named}

    def add_squares(self, squares: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return dict(squares) if self.world_size == 1 else sum_over_ranks(squares)

    def apply(self, optimizer: Any, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> None:
        """Update this rank's part of the parameters, and give every rank all of them."""
        if self.world_size == 1:
            optimizer.apply(named, gradients)
            return
        if list(named) != self._names:
            raise ValueError("other parameters are trained than when the strategy prepared the model: prepare it again")
        parts = {key: Variable.holding(vector.part(named)) for key, vector in self._vectors.items()}
        optimizer.apply(parts, gradients, global_square(optimizer, parts, gradients))
        pending = [collectives.begin(collectives.all_gather, part.value) for part in parts.values()]
        for whole, vector in zip(pending, self._vectors.values(), strict=True):
            vector.assign(named, whole.wait())

    def state_pieces(self, optimizer: Any) -> dict[str, Piece] | None:
        if self.world_size == 1:
            return None
        found: dict[str, Piece] = {}
        for key, part in optimizer.current_tensors().items():
            slot, _, vector = key.partition("/")
            found |= {f"{slot}/{name}": piece for name, piece in self._vectors[vector].pieces(part).items()}
        return found

    def gather_state(self, optimizer: Any) -> dict[str, Tensor]:
        """Return the whole state of the optimizer, as its ``state_dict`` gives it in a program of one process."""
        if self.world_size == 1:
            return optimizer.current_tensors()
        found: dict[str, Tensor] = {}
        for key, part in optimizer.current_tensors().items():
            slot, _, vector = key.partition("/")
            whole = self._vectors[vector].apart(collectives.all_gather(part))
            found |= {f"{slot}/{name}": x for name, x in whole.items()}
        return found

    def load_state(self, optimizer: Any, state: Mapping[str, Tensor], step: int) -> None:
        """Keep this rank's part of a whole state of the optimizer after ``step`` updates."""
        if self.world_size == 1:
            optimizer.load_state_dict(state, step)
            return
        slots = dict.fromkeys(key.partition("/")[0] for key in state)
        parts: dict[str, tuple[str, _Vector]] = {}
        for key, vector in self._vectors.items():
            for slot in slots:
                missing = [f"{slot}/{name}" for name in vector.shapes if f"{slot}/{name}" not in state]
                if not missing:
                    parts[f"{slot}/{key}"] = slot, vector
                elif slot in optimizer.slots_of(key):
                    raise ValueError(f"the state of the optimizer lacks {', '.join(missing)}")
        optimizer.load_state_dict(LazyTensors(parts, lambda key: _read_part(state, *parts[key])), step)


def _read_part(state: Mapping[str, Tensor], slot: str, vector: _Vector) -> Tensor:
    """Return this rank's part of one slot of a state; of a saved one nothing else is read."""
    if isinstance(state, SavedTensors):
        spans = {f"{slot}/{name}": span for name, span in vector.spans().items()}
        return state.read_vector(spans, vector.end - vector.start)
    return vector.part_of({name: ops.asarray(state[f"{slot}/{name}"]) for name in vector.shapes})


class _Vector:
    """Parameters of one dtype as one vector, filled up with zeros so that every rank has an equal part of it."""

    def __init__(self, named: Mapping[str, Variable], rank: int, count: int) -> None:
        self.shapes = {name: variable.shape for name, variable in named.items()}
        self.sizes = {name: variable.size for name, variable in named.items()}
        self.length = sum(self.sizes.values())
        share = -(-self.length // count)
        self.padding = share * count - self.length
        self.start, self.end = share * rank, share * (rank + 1)

    def joined(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """Return the tensors of these names, native, as one vector."""
        return self._fill([ops.reshape(tensors[name], (-1,)) for name in self.shapes], self.padding)

    def part(self, named: Mapping[str, Variable]) -> Tensor:
        """This rank's part of the vector of the variables' tensors."""
        return self.part_of(dict(zip(self.shapes, values_of([named[name] for name in self.shapes]), strict=True)))

    def part_of(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """This rank's part of the vector of ``tensors``, which is not made as a whole."""
        spans = self.spans()
        pieces = [ops.reshape(tensors[name], (-1,))[low:high] for name, (low, high) in spans.items() if low < high]
        held = sum(piece.shape[0] for piece in pieces)
        if not pieces:
            return ops.zeros((self.end - self.start,), dtype=active().dtype_of(next(iter(tensors.values()))))
        return self._fill(pieces, self.end - self.start - held)

    def spans(self) -> dict[str, tuple[int, int]]:
        """Return where this rank's part begins and ends in each tensor; of those that it has nothing of, both alike."""
        found, begin = {}, 0
        for name, size in self.sizes.items():
            low = min(max(self.start - begin, 0), size)
            found[name] = low, max(min(self.end - begin, size), low)
            begin += size
        return found

    def pieces(self, part: Tensor) -> dict[str, Piece]:
        """Return what this rank's ``part`` of the vector has of each tensor; of an empty one the first rank has all."""
        elements, found = self.elements(part), {}
        for name, (low, high) in self.spans().items():
            if low < high or (not self.sizes[name] and self.start == 0):
                found[name] = vector_piece(elements[name], self.shapes[name], (low, high - low))
        return found

    def elements(self, part: Tensor) -> dict[str, Tensor]:
        """Return the elements of each tensor that this rank's ``part`` of the vector has; none of some perhaps."""
        found, place = {}, 0
        for name, (low, high) in self.spans().items():
            found[name] = part[place : place + high - low]
            place += high - low
        return found

    @staticmethod
    def _fill(pieces: list[Tensor], padding: int) -> Tensor:
        if padding:
            pieces.append(ops.zeros((padding,), dtype=active().dtype_of(pieces[0])))
        return ops.concatenate(pieces, 0)

    def apart(self, whole: Tensor) -> dict[str, Tensor]:
        """Return the tensors by name of which ``whole`` is the vector."""
        found, begin = {}, 0
        for name, size in self.sizes.items():
            found[name] = ops.reshape(whole[begin : begin + size], self.shapes[name])
            begin += size
        return found

    def assign(self, named: Mapping[str, Variable], whole: Tensor) -> None:
        found = self.apart(whole)
        assign_all([named[name] for name in found], list(found.values()))


def check_elementwise(optimizer: Any, named: Mapping[str, Variable], strategy: str) -> None:
    """Raise where parts of parameters cannot be updated apart from each other."""
    for member in () if optimizer is None else [optimizer.member_of(name, x) for name, x in named.items()]:
        if member is not None and not member.is_elementwise:
            raise TypeError(
                f"{strategy} splits parameters over the processes, and {type(member).__name__} looks at whole "
                "matrices: use an elementwise optimizer, as AdamW, or DataParallelStrategy"
            )


def sum_over_ranks(numbers: Mapping[str, Tensor], group: Any = None) -> dict[str, Tensor]:
    """Return the sums over the ranks of numbers by name, in one message."""
    total = collectives.all_reduce(ops.stack(list(numbers.values())), group=group)
    return {name: total[place] for place, name in enumerate(numbers)}


def global_square(optimizer: Any, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> Tensor | None:
    """Return what the optimizer must know of the gradients of all ranks to limit their norm."""
    square = optimizer.square_of(named, gradients)
    return None if square is None else collectives.all_reduce(square)

"""Train one model by several processes: equal models, parts of each batch, gradients averaged over the ranks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.digests import digest_of
from ember_ml.backend.contract import Backend
from ember_ml.backend.random.generator import Generator, default_generator, streaming
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.dispatch.arguments import bring
from ember_ml.distributed import collectives
from ember_ml.distributed.groups import check_size, group, place
from ember_ml.distributed.pieces import Piece, whole_piece
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.variable import Variable, assign_all, values_of
from ember_ml.typing import Tensor

__all__ = ["DataParallelStrategy", "Parts", "SingleProcess", "Strategy", "check_built", "give_all"]


class Strategy:
    """How processes train one model together: each has the whole model and computes on its part of every batch.

    ``num_devices`` is the number of processes, by default as many as there are; asking for another number than there
    are is an error as soon as they are to work together. A subclass may do any part of this in another way.

    All methods but ``distribute`` are called by every process, in the same order.

    >>> from ember_ml import ops
    >>> from ember_ml.distributed import strategy
    >>> parts = strategy.Strategy(num_devices=2).distribute(ops.arange(4))
    >>> [ops.to_numpy(part).tolist() for part in parts]
    [[0, 1], [2, 3]]
    """

    _stream: Generator | None = None

    def __init__(self, num_devices: int | None = None) -> None:
        if num_devices is not None and not (isinstance(num_devices, int) and num_devices > 0):
            raise ValueError(f"num_devices is a number of processes from 1 up, not {num_devices!r}")
        self._wanted = num_devices

    @property
    def num_devices(self) -> int:
        """How many processes the strategy is for."""
        return self._wanted or place().world_size

    @property
    def exchanges(self) -> bool:
        """Whether something happens between the gradients and the update, so that one program cannot compute both."""
        return True

    @property
    def world_size(self) -> int:
        """How many processes there are; ``LaunchError`` where the strategy is for another number."""
        check_size(self._wanted)
        return place().world_size

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        check_size(self._wanted)
        return place().rank

    @property
    def num_parts(self) -> int:
        """Into how many parts a batch is split: as many as there are processes, unless some compute on the same one."""
        return self.num_devices

    @property
    def row_parts(self) -> int:
        """Into how many parts the rows of a batch are split: all parts, unless some have other columns of the same."""
        return self.num_parts

    @property
    def part(self) -> int:
        """Which part of each batch this process computes on, from 0."""
        return self.rank

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that writes files and shows progress."""
        return self.rank == 0

    # data

    def distribute(self, batch: Any) -> list[Any]:
        """The :attr:`row_parts` parts of ``batch``, a tensor or a tree of tensors, split along the first axis.

        They are as equal as can be: row ``i`` of ``n`` begins part ``k`` where ``i = n * k // row_parts``.
        """
        if isinstance(batch, list) and not any(hasattr(leaf, "shape") for leaf in trees.flatten(batch)[0]):
            batch = ops.convert_to_tensor(batch)  # rows of numbers, not a tree of tensors
        leaves, structure = trees.flatten(batch)
        count = self.row_parts
        parts: list[list[Any]] = [[] for _ in range(count)]
        for leaf in leaves:
            rows = ops.convert_to_tensor(leaf)
            length = len(rows)
            for number, part in enumerate(parts):
                part.append(rows[length * number // count : length * (number + 1) // count])
        return [structure(part) for part in parts]

    def shard(self, loader: Any) -> Any:
        """This process's part of the batches of ``loader``, a ``DataLoader`` or any iterable of batches.

        A strategy with a ``distribute`` of its own splits them that way. The processes compare the first batch of each
        loop over an iterable: one that each shuffles in its own order raises ``ValueError``, for samples would be lost.
        """
        if self.world_size == 1:
            return loader
        sharded = getattr(loader, "shard", None)
        if sharded is None or type(self).distribute is not Strategy.distribute:
            return Parts(self, loader)
        return sharded(self.part, self.num_parts, self.check_same_batch)

    def check_same_batch(self, digest: str) -> None:
        """Raise on every process where they have digests of different batches."""
        if len({*self.gather_plain(digest)}) > 1:
            raise ValueError(
                "the processes iterate over different batches, so that samples would be lost: an iterable that "
                "shuffles must do so by the same seed on every process, as PyTorch's DataLoader does with "
                "generator=torch.Generator().manual_seed(0)"
            )

    # random numbers

    def random_stream(self) -> AbstractContextManager[Any]:
        """A block in which this process draws numbers of its own, as for dropout of its part of a batch.

        They come from the stream that the program has when the first block begins, and the rank.
        """
        if self.world_size == 1:
            return nullcontext()
        if self._stream is None:
            self._stream = default_generator().split(self.num_parts)[self.part]
        return streaming(self._stream)

    def on_part(self) -> AbstractContextManager[Any]:
        """A block in which the model computes on this process's part of a batch, as :meth:`distribute` gives it."""
        return nullcontext()

    def gather_streams(self) -> list[dict[str, Any]]:
        """Where the streams of all processes stand, as plain data; nothing where none has been used."""
        if self.world_size == 1:
            return []
        states = self.gather_parts(None if self._stream is None else self._stream.state())
        return [] if None in states else states

    def restore_streams(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Go on from :meth:`gather_streams`; another number of parts of a batch begins new streams."""
        fits = self.world_size > 1 and len(states) == self.num_parts
        self._stream = Generator.from_state(states[self.part]) if fits else None

    # training

    def prepare(self, model: Module, optimizer: Any = None) -> None:
        """Give every process the parameters and buffers of rank 0."""
        if self.world_size == 1:
            return
        check_built(model)
        give_all(list(model.named_variables().values()))

    def average(self, gradients: Sequence[Tensor], weight: float | None = None) -> Sequence[Tensor]:
        """The gradients of the whole batch, in the form that :meth:`apply` takes, from those of this process's part.

        ``weight`` is the number of samples in the part, where the parts may differ; a part without any has weight 0.
        """
        return gradients if self.world_size == 1 else collectives.begun_average(gradients, weight)

    def share_of(self, weight: float, rows: int) -> float | None:
        """By what the loss of this process's part, of this weight, is multiplied before gradients are computed.

        None: by nothing, since :meth:`average` takes the weights into account. What the backward pass averages must
        have its weight before; :meth:`average_with_loss` takes gradients of such a loss, and the loss without it.
        """
        return None

    def average_with_loss(
        self, gradients: Sequence[Tensor], loss: Tensor, weight: float | None = None
    ) -> tuple[Sequence[Tensor], Tensor]:
        """What :meth:`average` gives, and the loss of the whole batch, a native 0-d tensor, in as few messages."""
        if type(self).average is not Strategy.average:  # in a way of its own, which is not for losses
            return self.average(gradients, weight), self.mean(loss, weight)
        if self.world_size == 1:
            return gradients, loss
        *averaged, mean = collectives.begun_average([*gradients, loss], weight)
        return averaged, ops.copy(mean)  # which is kept, and shall not keep the memory of the gradients beside it

    def name_gradients(self, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return what this process has of the gradients that :meth:`average` gave, by the names of the parameters."""
        return dict(zip(named, gradients, strict=True))

    def add_squares(self, squares: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the sums of squares of whole gradients, from those of what each process has of them."""
        return dict(squares)

    def overlapping(self, weight: float | None = None) -> AbstractContextManager[Any]:
        """A block around the computation of gradients, in which those that are known are averaged while others are not.

        Afterwards :meth:`average` takes the gradients as they came, and the same weight. Without it, the average begins
        when all gradients are known; so it does where the engine cannot work beside the computation.
        """
        return nullcontext() if self.world_size == 1 else group().overlapping(weight)

    def apply(self, optimizer: Any, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> None:
        """Let the optimizer change the parameters by what :meth:`average` gave."""
        optimizer.apply(named, gradients)
        if self.world_size > 1 and group().is_lazy:  # all ranks compute it at the same time
            collectives.finish([*values_of(list(named.values())), *optimizer.current_tensors().values()])

    def is_everywhere(self, fact: bool) -> bool:
        """Whether ``fact`` holds on every process: as that the gradients are finite, which may be spread over them."""
        if self.world_size == 1:
            return fact
        return bool(ops.item(collectives.all_reduce(ops.asarray(fact), "min")))

    def mean(self, values: Any, weight: float | None = None) -> Any:
        """The means over the processes of numbers or floating-point tensors, one or a tree of them: as of losses.

        Numbers come back as numbers. ``weight`` is as in :meth:`average`.
        """
        if self.world_size == 1:
            return values
        leaves, structure = trees.flatten(values)
        backend = active()
        natives = [bring(ops.asarray(float(x), dtype="float32") if _is_number(x) else x, backend) for x in leaves]
        found = zip(collectives.average(natives, weight), leaves, strict=True)
        return structure([ops.item(x) if _is_number(leaf) else _in_kind(x, leaf, backend) for x, leaf in found])

    def average_buffers(self, model: Module) -> None:
        """Give every process the means of the floating-point buffers: each has followed its own part of the data."""
        if self.world_size == 1:
            return
        buffers = [x for x in model.named_buffers().values() if x.dtype.kind == "float"]
        assign_all(buffers, collectives.average(values_of(buffers)))

    def gather_plain(self, value: Any) -> list[Any]:
        """Return the values of all processes, in the order of their ranks: plain data, as JSON holds it."""
        if self.world_size == 1:
            return [value]
        text = list(json.dumps(value).encode())
        length = ops.item(collectives.all_reduce(ops.asarray(len(text)), "max"))
        padded = ops.asarray(text + [32] * (length - len(text)), dtype="uint8")
        rows = ops.to_numpy(ops.reshape(collectives.all_gather(padded), (self.world_size, length)))
        return [json.loads(bytes(row.tolist())) for row in rows]

    def gather_parts(self, value: Any) -> list[Any]:
        """Return the values of the processes that compute on different parts of a batch, as :meth:`gather_plain`."""
        return self.gather_plain(value)

    def barrier(self) -> None:
        """Return when every process has called this."""
        if self.world_size > 1:
            collectives.barrier()

    # checkpoints

    @property
    def splits_parameters(self) -> bool:
        """Whether each process has a part of the parameters, and writes it to checkpoints by itself."""
        return False

    def piece_of(self, name: str, x: Tensor) -> Piece | None:
        """Return what this process writes of its ``x``, which belongs to the parameter ``name``; None: nothing."""
        return whole_piece(x) if self.is_main else None

    def state_pieces(self, optimizer: Any) -> dict[str, Piece] | None:
        """Return what this process writes of the optimizer's state, where each has a part; None where it is whole."""
        if not self.splits_parameters:
            return None
        found = {key: self.piece_of(key.partition("/")[2], x) for key, x in optimizer.current_tensors().items()}
        return {key: piece for key, piece in found.items() if piece is not None}

    def part_of(self, name: str, whole: Tensor) -> Tensor:
        """Return what this process has of a tensor that belongs to the parameter ``name``."""
        return whole

    def average_collected(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the means over the parts of batches of gradients that several batches have in common so far."""
        return self.mean(list(gradients))

    def gather_state(self, optimizer: Any) -> dict[str, Tensor]:
        """Return the whole state of the optimizer, as its ``state_dict`` gives it in a program of one process.

        It is not copied: updates may change it.
        """
        return optimizer.saved_tensors()

    def load_state(self, optimizer: Any, state: Mapping[str, Tensor], step: int) -> None:
        """Let the optimizer go on from a whole state after ``step`` updates, saved by whatever number of processes."""
        optimizer.load_state_dict(state, step)

    def lay_out(self, model: Module) -> None:
        """Put the tensors of a model, after those of a checkpoint have taken their places, to where they are used."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self._wanted is None else f'num_devices={self._wanted}'})"


class DataParallelStrategy(Strategy):
    """Every process has the whole model and optimizer; the gradients of the parts of a batch are averaged.

    After each update the parameters are equal on all processes, and what one process would have computed on the whole
    batch, but for rounding.
    """


class SingleProcess(Strategy):
    """This process trains by itself, also where others were started with it."""

    def __init__(self) -> None:
        super().__init__(1)

    @property
    def world_size(self) -> int:
        return 1

    @property
    def rank(self) -> int:
        return 0


def check_built(model: Module) -> None:
    """Raise where layers of the model have no parameters yet."""
    if any(not module.is_built for _, module in model.named_modules()):
        raise ValueError(
            "the model has layers whose sizes are unknown until the first call: call it with a batch of inputs "
            "before the strategy prepares it"
        )


def give_all(variables: Sequence[Variable]) -> None:
    """Give every process the tensors of rank 0, one after another, so that two of each never exist at once."""
    for variable in variables:
        assign_all([variable], [collectives.broadcast(*values_of([variable]))])


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float)


def _in_kind(native: Any, like: Any, backend: Backend) -> Any:
    return wrap(native, backend) if type(like) is EmberTensor else native


class Parts:
    """One process's parts of the batches of a loader or an iterable, as the strategy distributes them."""

    def __init__(self, strategy: Strategy, batches: Any) -> None:
        self._strategy, self._batches = strategy, batches

    def __iter__(self) -> Iterator[Any]:
        for number, batch in enumerate(self._batches):
            if not number and self._strategy.world_size > 1:
                self._strategy.check_same_batch(digest_of(batch))
            yield self._strategy.distribute(batch)[self._strategy.part]

    def state(self) -> dict[str, Any]:
        return self._batches.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._batches.restore(state)

    def __len__(self) -> int:
        return len(self._batches)

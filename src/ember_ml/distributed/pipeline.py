"""Models whose layers lie on several ranks, one stage behind another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ember_ml import ops
from ember_ml.backend.random.generator import Generator, default_generator, streaming
from ember_ml.core import dtypes as dt
from ember_ml.core import trees
from ember_ml.core.dtypes import as_dtype
from ember_ml.distributed import collectives
from ember_ml.distributed.groups import group as all_ranks
from ember_ml.errors import LaunchError
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.variable import keep, put_back
from ember_ml.typing import Tensor

__all__ = ["PipelineStage"]

_LONGEST = 8
"""The axes that a tensor between stages has at most."""


class PipelineStage:
    """This rank's layers of a model whose layers lie on several ranks; all ranks together compute its gradients.

    A batch goes through the stages in equal parts, so that one stage computes with a part while the next computes with
    the part before; a part's gradients go back in the same way (GPipe, Huang et al., 2019). For parts n and stages s a
    rank waits (s - 1) / (n + s - 1) of the time. A stage keeps the inputs of the parts alone, and computes its layers
    again for the gradients, with the same random numbers; the last stage computes once.

    The optimizer of each rank updates its own layers: ``optimizer.update(stage.module, gradients)``. A limit of the
    norm of gradients is one for each stage.

    Args:
        module: The layers of this rank. The first stage gets the inputs, each other what the one before gives: one
            tensor of floating-point numbers.
        loss: What the last stage computes of what its layers give and of the targets: a number for each row, whose mean
            is taken, or that mean.
        parts: Into how many parts a batch is split.
        ranks: The ranks of the stages, in their order; None: all. On MLX's ring and on JAX they must be neighbours.

    >>> from ember_ml import nn, ops
    >>> from ember_ml.distributed import PipelineStage
    >>> stage = PipelineStage(nn.Linear(2, 1), ops.mean_squared_error, parts=2)
    >>> loss, gradients = stage.loss_and_gradients(ops.ones((4, 2)), ops.ones((4, 1)))
    >>> ops.shape(loss), sorted(gradients)
    ((), ['bias', 'weight'])
    """

    module: Module
    loss: Callable[[Any, Any], Any]
    parts: int
    ranks: list[int]

    def __init__(
        self, module: Module, loss: Callable[[Any, Any], Any], parts: int = 4, ranks: Sequence[int] | None = None
    ) -> None:
        if parts < 1:
            raise ValueError(f"a batch is split into 1 part or more, not {parts}")
        group = all_ranks()
        self.module, self.loss, self.parts = module, loss, parts
        self.ranks = list(range(group.size) if ranks is None else ranks)
        if group.rank not in self.ranks:
            raise LaunchError(f"the stages are of the ranks {self.ranks}, and this is rank {group.rank}")
        self._place = self.ranks.index(group.rank)

    @property
    def is_first(self) -> bool:
        """Whether this stage gets the inputs of the model."""
        return self._place == 0

    @property
    def is_last(self) -> bool:
        """Whether this stage computes the loss."""
        return self._place == len(self.ranks) - 1

    def loss_and_gradients(self, inputs: Any, targets: Any) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a batch, and the gradients of this rank's trainable parameters by name.

        Every rank makes the call. The first uses ``inputs``, a tensor or a tree of them, the last ``targets``; others
        may give anything, such as None.
        """
        streams = [stream.state() for stream in default_generator().split(self.parts)]
        given: list[Any] = self._split(inputs) if self.is_first else [None] * self.parts
        wanted: list[Any] = self._split(targets) if self.is_last else []
        total: dict[str, Tensor] = {}
        losses: list[Tensor] = []
        upstream: list[Any] = []
        for number, stream in enumerate(streams):  # forward; the last stage has the gradients at once
            if not self.is_first:
                given[number] = self._receive(self._place - 1)
            with streaming(Generator.from_state(stream)):
                if self.is_last:
                    found, gradient = self._pull(
                        given[number], lambda y, n=number: ops.mean(self.loss(y, wanted[n])), total
                    )
                    losses.append(found)
                    upstream.append(gradient)
                else:
                    with self._keeping_buffers():  # they change when the layers are computed again
                        self._send(self.module(given[number]), self._place + 1)
        for number, stream in enumerate(streams):  # backward
            if not self.is_last:
                arrived = self._receive(self._place + 1)
                with streaming(Generator.from_state(stream)):
                    _, gradient = self._pull(given[number], lambda y, g=arrived: ops.sum(ops.multiply(y, g)), total)
                upstream.append(gradient)
            if not self.is_first:
                self._send(upstream[number], self._place - 1)
            upstream[number] = given[number] = None
        loss = ops.mean(ops.stack(losses)) if self.is_last else self._receive(self._place + 1)
        if not self.is_first:
            self._send(loss, self._place - 1)
        return loss, {name: ops.divide(x, self.parts) for name, x in total.items()}

    def _pull(self, x: Any, finish: Callable[[Any], Any], total: dict[str, Tensor]) -> tuple[Any, Any]:
        """Return a number made of what the layers give for ``x``, and its gradient; add those of parameters."""

        def compute(module: Module, value: Any) -> Any:
            return finish(module(value))

        if self.is_first:  # whose inputs may be integers
            found, gradients = ops.value_and_grad(compute)(self.module, x)
            of_input = None
        else:
            found, (gradients, of_input) = ops.value_and_grad(compute, (0, 1))(self.module, x)
        for name, gradient in gradients.items():
            total[name] = ops.add(total[name], gradient) if name in total else gradient
        return found, of_input

    @contextmanager
    def _keeping_buffers(self) -> Iterator[None]:
        trained = {id(x) for x in self.module.trainable().values()}
        kept = keep([x for x in self.module.named_variables().values() if id(x) not in trained])
        try:
            yield
        finally:
            put_back(kept)

    def _split(self, batch: Any) -> list[Any]:
        leaves, structure = trees.flatten(batch)
        rows = {ops.shape(leaf)[0] if ops.shape(leaf) else 0 for leaf in leaves}
        if len(rows) != 1 or max(rows) % self.parts or not max(rows):
            raise ValueError(
                f"a batch of {' and '.join(map(str, sorted(rows)))} rows does not split into {self.parts} equal parts"
            )
        size = max(rows) // self.parts
        return [
            structure([ops.get_item(leaf, slice(k * size, (k + 1) * size)) for leaf in leaves])
            for k in range(self.parts)
        ]

    def _send(self, x: Any, place: int) -> None:
        """Send a tensor, and before it its dtype and shape."""
        if isinstance(x, list | tuple | dict) or as_dtype(ops.dtype(x)) not in dt.FLOATS:
            raise TypeError(f"a stage gives one tensor of floating-point numbers to the next, not {type(x).__name__}")
        shape = ops.shape(x)
        if len(shape) > _LONGEST:
            raise ValueError(f"a tensor between stages has {_LONGEST} axes at most, not {len(shape)}")
        code = sorted(dtype.name for dtype in dt.FLOATS).index(as_dtype(ops.dtype(x)).name)
        head = [code, len(shape), *shape, *[0] * (_LONGEST - len(shape))]
        collectives.send(ops.array(head, dtype="int32"), self.ranks[place])
        collectives.send(x, self.ranks[place])

    def _receive(self, place: int) -> Tensor:
        source = self.ranks[place]
        code, axes, *shape = ops.to_numpy(collectives.recv((_LONGEST + 2,), "int32", source)).tolist()
        dtype = sorted(dtype.name for dtype in dt.FLOATS)[code]
        return collectives.recv(shape[:axes], dtype, source)

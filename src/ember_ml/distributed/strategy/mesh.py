"""Train on a mesh of processes, or of devices of one process, whose compiler moves what one device needs of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ember_ml import ops
from ember_ml.backend.capabilities import DeviceMesh, Sharding
from ember_ml.backend.devices import default_device
from ember_ml.backend.processes.group import Group
from ember_ml.backend.random.generator import Generator, default_generator, streaming
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.core.lazy_tensors import LazyTensors
from ember_ml.dispatch.arguments import bring
from ember_ml.distributed import collectives, context
from ember_ml.distributed.mesh import AXES, Mesh, Place
from ember_ml.distributed.pieces import Piece
from ember_ml.distributed.strategy.base import Parts, Strategy, check_built, give_all
from ember_ml.distributed.strategy.full_shard import check_equal_weights, find_share, sharding_engine
from ember_ml.distributed.strategy.units import ShardedParameter, Use, find_uses, plan_units
from ember_ml.distributed.strategy.zero import check_elementwise, sum_over_ranks
from ember_ml.distributed.tensor_parallel import MeshSplit, local_shape, split_layers
from ember_ml.distributed.tensor_plan import Layout, make_layout
from ember_ml.errors import DeviceError, UnsupportedOp
from ember_ml.nn.layers.sequence_mixing.sequence_parts import computing_on
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.variable import Variable, assign_all, values_of
from ember_ml.typing import Tensor

__all__ = ["MeshStrategy"]

_ROWS = ("data", "shard")
"""The axes of a mesh over which the rows of batches are split."""
_PARTS = ("data", "context")
"""Those along which processes have the same parameters, and gradients of different parts of a batch."""


class MeshStrategy(Strategy):
    """Training on a :class:`Mesh`: of the processes that were started, or on JAX of the devices of one process.

    Along ``data`` and ``shard`` the batch is split, along ``shard`` all parameters and the optimizer's state, along
    ``tensor`` the layers that the plan names; see ``ember_ml.distributed.tensor_plan``. Along ``context`` the sequences
    are split: the second axis of all tensors of a batch. Attention gathers the keys and values of a sequence, all other
    layers compute with one position at a time; models with others are refused (``context.POSITIONWISE``).

    Of processes, the model and the optimizer change as those of one process but for rounding, and for random numbers,
    as of dropout: the processes of one part of a batch draw the same, others their own. ``shard``
    needs PyTorch; steps with ``tensor`` or ``context`` are not compiled, so JAX needs ``Trainer(compile=False)``.

    Of devices, a step is the program for one device: the compiler divides it, and adds the sums and the gathering. So
    random numbers are those of one device too. Batches that do not split evenly, as the last one of an epoch
    perhaps, are computed whole by every device.

    Args:
        mesh: The mesh; None: all processes or devices along ``data``.
        devices: The names of the devices of one process; None: all of the kind of the default device.
        plan: Names of layers, or patterns as ``"blocks.*.up"``, with the style in which ``tensor`` splits each, before
            those of ``tensor_plan.PLAN``; or "positionwise", of layers that ``context`` may split.
        splits_sequence: Whether tensors between the layers that ``tensor`` splits, as in normalizations, are split
            along the sequence, so that each process keeps its part alone. For processes, and for models of which the
            plan says where the sequence begins to be split and is whole again. Dropout there draws the same for each
            part.
    """

    mesh: Mesh
    plan: Mapping[str, str] | None
    splits_sequence: bool
    _model: Module | None = None

    def __init__(
        self,
        mesh: Mesh | None = None,
        devices: Sequence[str] | None = None,
        plan: Mapping[str, str] | None = None,
        splits_sequence: bool = False,
    ) -> None:
        super().__init__()
        if mesh is not None and not isinstance(mesh, Mesh):
            raise TypeError(f"a MeshStrategy takes a Mesh, as Mesh(shard=2), not {mesh!r:.60}")
        if devices is not None and (isinstance(devices, str) or not devices):
            raise ValueError(f"devices are several names, as ['cuda:0', 'cuda:1'], not {devices!r}")
        self.mesh, self.plan = Mesh() if mesh is None else mesh, plan
        self.splits_sequence = splits_sequence
        self._devices = devices
        self._layout = Layout({}, {})
        self._splits: dict[str, MeshSplit] = {}
        self._groups: dict[tuple[str, tuple[str, ...]], Group] = {}

    # the mesh

    @property
    def exchanges(self) -> bool:
        """Whether something happens between the gradients and the update: of processes, not of devices."""
        return self.world_size > 1

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices of this process that compute together."""
        backend = active()
        available = backend.available_devices()
        if self._devices is None:
            kind = default_device(backend).partition(":")[0]
            return tuple(name for name in available if name.partition(":")[0] == kind)
        unknown = [name for name in self._devices if name not in available]
        if unknown:
            raise DeviceError(f"{backend.name} has no device {unknown[0]!r} here; it has {', '.join(available)}")
        return tuple(self._devices)

    @property
    def num_devices(self) -> int:
        """How many processes, or devices of one process, compute together."""
        return self.world_size if self.world_size > 1 else len(self.devices)

    @property
    def num_parts(self) -> int:
        """Into how many parts a batch is split; devices of one process have one batch together."""
        return self._full().size // self.mesh.tensor if self.world_size > 1 else 1

    @property
    def row_parts(self) -> int:
        return self.num_parts // self.mesh.context if self.world_size > 1 else 1

    @property
    def part(self) -> int:
        return self.rank // self.mesh.tensor

    @property
    def layout(self) -> dict[str, str]:
        """The styles in which the layers of the prepared model are split over ``tensor``, by name."""
        return dict(self._layout.styles)

    def _full(self) -> Mesh:
        return self.mesh.fit(self.num_devices)

    def _place(self) -> Place:
        return self._full().place(self.rank)

    def _group(self, *axes: str) -> Group:
        """Return the processes with which this one forms the part of the mesh along ``axes``."""
        key = active().key, axes
        if key not in self._groups:
            self._groups[key] = collectives.make_group(self._full().groups(axes))
        return self._groups[key]

    # data

    def distribute(self, batch: Any) -> list[Any]:
        """The parts of a batch, a tensor or a tree of tensors; of devices the whole alone, whose rows lie on them."""
        if self.world_size > 1:
            return self._distribute_over_processes(batch)
        mesh, backend = self._full(), active()
        rows = mesh.size // (mesh.context * mesh.tensor)
        leaves, structure = trees.flatten(batch)
        found = []
        for leaf in leaves:
            native = bring(leaf._array if type(leaf) is EmberTensor else leaf, backend)
            splits = bool(native.shape) and native.shape[0] % rows == 0
            parts: list[tuple[str, ...]] = [_ROWS if splits else ()]
            if len(native.shape) > 1 and native.shape[1] % mesh.context == 0:
                parts.append(("context",))
            placed = self._put(native, parts[: len(native.shape)])
            found.append(wrap(placed, backend) if type(leaf) is EmberTensor else placed)
        return [structure(found)]

    def _distribute_over_processes(self, batch: Any) -> list[Any]:
        rows, count = super().distribute(batch), self.mesh.context
        if count == 1:
            return rows
        context.check_targets(batch)
        return [context.take_positions(part, index, count) for part in rows for index in range(count)]

    def shard(self, loader: Any) -> Any:
        """This process's part of the batches of ``loader``, or over its devices all of them."""
        return super().shard(loader) if self.world_size > 1 else Parts(self, loader)

    def random_stream(self) -> AbstractContextManager[Any]:
        """A block in which the processes of one part of a batch draw the same numbers, and others their own."""
        if self.world_size == 1:
            return nullcontext()
        if self._stream is None:
            own = default_generator().split(self.num_parts)[self.part].state()
            self._stream = Generator.from_state(self.gather_parts(own)[self.part])
        return streaming(self._stream)

    def on_part(self) -> AbstractContextManager[Any]:
        """A block in which layers compute on this process's part of the sequences."""
        is_split = self.world_size > 1 and self.mesh.context > 1
        return computing_on(context.make_part(self._group("context"))) if is_split else nullcontext()

    def gather_parts(self, value: Any) -> list[Any]:
        return self.gather_plain(value)[:: self.mesh.tensor if self.world_size > 1 else 1]

    # training

    def prepare(self, model: Module, optimizer: Any = None) -> None:
        """Give each process or device its part of the parameters, buffers and state of the optimizer."""
        self._full()
        self._layout = make_layout(model, self.mesh.tensor, self.plan, self.splits_sequence)
        if self.mesh.context > 1:
            # of devices too; jax 0.10.2: gradients of the weights of a convolution whose positions are split over one
            # axis of a mesh, and repeated over another, are wrong
            context.check_positionwise(model, self.plan)
        if self.world_size > 1:
            self._prepare_process(model, optimizer)
            return
        if self.splits_sequence and self.num_devices > 1:
            raise ValueError(
                "splits_sequence is for processes: over the devices of one process the compiler decides how the "
                "tensors between layers are split"
            )
        self._model = model
        self._spread(model.named_variables())
        if optimizer is not None:
            optimizer.make_slots(model.trainable())
            self._spread(dict(zip(optimizer.current_tensors(), optimizer.slot_variables(), strict=True)))

    def _prepare_process(self, model: Module, optimizer: Any) -> None:
        if any(isinstance(x, ShardedParameter) for x in model.named_parameters().values()):
            raise ValueError("the parameters of the model are split already: prepare a model that no strategy has")
        is_sharded = self.mesh.shard > 1
        engine = sharding_engine(type(self).__name__) if is_sharded else None
        named = model.trainable() if is_sharded else {k: x for k, x in model.trainable().items() if self._is_cut(k)}
        check_elementwise(optimizer, named, type(self).__name__)
        check_built(model)
        group = self._group("tensor")
        uses = [use for use in find_uses(model) if is_sharded or self._is_cut(use.name) or self._is_summed(use)]
        given = {id(use.parameter) for use in uses}
        give_all([x for x in model.named_variables().values() if id(x) not in given])
        for unit in plan_units(uses):
            cuts = [self._layout.cuts.get(use.name) for use in unit]
            locals_ = [local_shape(use.parameter.shape, cut, group) for use, cut in zip(unit, cuts, strict=True)]
            flats = [None] * len(unit) if engine is None else self._split_flat(engine, locals_)
            for use, cut, flat in zip(unit, cuts, flats, strict=True):
                split = MeshSplit(use.parameter.shape, cut, group, flat, self._is_always_summed(use))
                recording = None if engine is None else engine.recording
                use.replace(ShardedParameter(use.parameter, split, recording), type(self).__name__)
        named_now = model.named_parameters()
        sharded = {name: x for name, x in named_now.items() if isinstance(x, ShardedParameter)}
        self._splits = {name: x.split for name, x in sharded.items()}
        splits = {id(x): x.split for x in sharded.values()}
        split_layers(model, self._layout, splits, group, self.splits_sequence)

    def _split_flat(self, engine: Sharding, shapes: Sequence[tuple[int, ...]]) -> Sequence[Any]:
        """Return how tensors of these shapes, which this process has along ``tensor``, are split along ``shard``."""
        return engine.make_splits(shapes, self._group("shard"), collectives)

    def _is_summed(self, use: Use) -> bool:
        styles = [self._layout.styles.get(path) for path, _, _ in use.places]
        return self._is_always_summed(use) or "summed" in styles

    def _is_always_summed(self, use: Use) -> bool:
        """Whether the parameter's layer computes with a part of the sequence."""
        if not self.splits_sequence or self.mesh.tensor == 1:
            return False
        whole = [path for path, style in self._layout.styles.items() if style == "whole"]
        return not any(f"{path}.".startswith(f"{above}.") for path, _, _ in use.places for above in whole)

    def _is_cut(self, name: str) -> bool:
        return name in self._layout.cuts

    def overlapping(self, weight: float | None = None) -> AbstractContextManager[Any]:
        """A block around the computation of gradients, in which those that are known are averaged over the parts."""
        is_alone = self.world_size == 1 or self._full().data == self.mesh.context == 1
        return nullcontext() if is_alone else self._group(*_PARTS).overlapping(self._weight_of_gradients(weight))

    @property
    def _shares_before(self) -> bool:
        """Whether a loss has the weight of its part before the backward pass, which mixes it with those of others.

        Along ``shard`` that pass averages gradients, and along ``context`` those of keys and values are sums.
        """
        return self.mesh.shard > 1 or self.mesh.context > 1

    def _weight_of_gradients(self, weight: float | None) -> float | None:
        """Return the weight of a part in averages after the backward pass."""
        return None if self._shares_before else weight

    def share_of(self, weight: float, rows: int) -> float | None:
        if self.world_size == 1 or not self._shares_before:
            return None
        return find_share(type(self).__name__, weight, rows if self.mesh.shard > 1 else 0, self.mesh.tensor)

    def average_with_loss(
        self, gradients: Sequence[Tensor], loss: Tensor, weight: float | None = None
    ) -> tuple[Sequence[Tensor], Tensor]:
        """Return the gradients and the loss of the whole batch, from those of this process's part."""
        return self.average(gradients, self._weight_of_gradients(weight)), self.mean(loss, weight)

    def average(self, gradients: Sequence[Tensor], weight: float | None = None) -> Sequence[Tensor]:
        """The gradients of the whole batch: averaged over ``shard`` by the backward pass, and here over the rest.

        ``weight`` is as in :class:`Strategy`; along ``shard`` and ``context`` all must be equal.
        """
        if self.world_size == 1:
            return gradients
        if self._shares_before:
            check_equal_weights(type(self).__name__, weight, self.num_parts)
        return collectives.begun_average(gradients, weight, self._group(*_PARTS))

    def apply(self, optimizer: Any, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> None:
        """Update this process's parts, or the parameters on all devices."""
        optimizer.apply(named, gradients, self._square(optimizer, named, gradients) if self.world_size > 1 else None)

    def _square(self, optimizer: Any, named: Mapping[str, Variable], gradients: Sequence[Tensor]) -> Tensor | None:
        """Return what the optimizer must know of all gradients to limit their norm."""
        if optimizer.max_norm is None:
            return None
        pairs = list(zip(named, gradients, strict=True))
        squares = []
        for is_cut in (True, False):  # each process along ``tensor`` has all of what is not cut
            chosen = {name: x for name, x in pairs if self._is_cut(name) == is_cut}
            square = optimizer.square_of({name: named[name] for name in chosen}, list(chosen.values()))
            squares.append(square if is_cut else ops.divide(square, self.mesh.tensor))
        return collectives.all_reduce(ops.add(*squares), group=self._group("shard", "tensor"))

    def add_squares(self, squares: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if self.world_size == 1:
            return dict(squares)
        # each process along ``tensor`` has all of what is not cut
        shares = {name: x if self._is_cut(name) else ops.divide(x, self.mesh.tensor) for name, x in squares.items()}
        return sum_over_ranks(shares, self._group("shard", "tensor"))

    # checkpoints

    @property
    def splits_parameters(self) -> bool:
        return bool(self._splits)

    def piece_of(self, name: str, x: Tensor) -> Piece | None:
        split = self._splits.get(name)
        if split is None:
            return super().piece_of(name, x)
        place = self._place()
        is_written = place.data == place.context == 0 and (split.cut is not None or place.tensor == 0)
        is_written &= split.share > 0 or (split.size == 0 and place.shard == 0)
        return split.piece_of(x) if is_written else None

    def part_of(self, name: str, whole: Tensor) -> Tensor:
        split = self._splits.get(name)
        return whole if split is None else split.part_of(whole)

    def average_collected(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        return gradients if self.world_size == 1 else collectives.average(gradients, group=self._group(*_PARTS))

    def gather_state(self, optimizer: Any) -> dict[str, Tensor]:
        """Return the whole state of the optimizer, as its ``state_dict`` gives it in a program of one process."""
        found = optimizer.current_tensors()
        splits = [self._splits.get(key.partition("/")[2]) for key in found]
        pairs = zip(found.items(), splits, strict=True)
        return {key: x if split is None else split.gather_whole(x) for (key, x), split in pairs}

    def load_state(self, optimizer: Any, state: Mapping[str, Tensor], step: int) -> None:
        """Let the optimizer go on from a whole state after ``step`` updates, each process or device with its part."""
        parts = LazyTensors(state, lambda key: self.part_of(key.partition("/")[2], ops.asarray(state[key])))
        super().load_state(optimizer, parts, step)
        if self._model is not None:
            self.prepare(self._model, optimizer)

    def lay_out(self, model: Module) -> None:
        if self.world_size == 1:
            self._spread(model.named_variables())

    # devices of one process

    def _spread(self, variables: Mapping[str, Variable]) -> None:
        """Lay variables, of the model or ``slot/name`` of the optimizer, over the devices."""
        for name, variable in variables.items():  # one after another: no device need have the whole model
            (value,) = values_of([variable])
            assign_all([variable], [self._put(value, self._parts_of(name, tuple(value.shape)))])

    def _parts_of(self, name: str, shape: tuple[int, ...]) -> list[tuple[str, ...]]:
        """Return over which axes of the mesh each axis of a variable is split: the longest that can be, over shard."""
        parts: list[tuple[str, ...]] = [()] * len(shape)
        cut = self._layout.cuts.get(name.rpartition("/")[2])
        if cut is not None and cut.axis < len(shape) and sum(cut.sections) == shape[cut.axis]:
            parts[cut.axis] = ("tensor",)
        counts = [self.mesh.shard * (self.mesh.tensor if names else 1) for names in parts]
        fitting = [axis for axis, length in enumerate(shape) if length and not length % counts[axis]]
        if fitting and self.mesh.shard > 1:
            longest = max(fitting, key=lambda axis: shape[axis])
            parts[longest] = ("shard", *parts[longest])
        return parts

    def _put(self, x: Tensor, parts: Sequence[Sequence[str]]) -> Tensor:
        axes = dict(zip(AXES, self._full().lengths, strict=True))
        return _engine().put(x, self.devices, axes, parts)

    def __repr__(self) -> str:
        given = f"{self.mesh!r}, devices={self._devices!r}, plan={self.plan!r}"
        return f"MeshStrategy({given}, splits_sequence={self.splits_sequence})"


def _engine() -> DeviceMesh:
    backend = active()
    if backend.device_mesh is None:
        raise UnsupportedOp(
            f"a MeshStrategy of one process needs a compiler that divides a program over devices, as JAX has, and "
            f"{backend.name} has none: start a process for each device with `ember-ml launch`, for which "
            "DataParallelStrategy is the simplest"
        )
    return backend.device_mesh

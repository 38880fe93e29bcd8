"""Train by one process on several devices: the compiler moves what one device needs of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ember_ml.backend.capabilities import DeviceMesh
from ember_ml.backend.devices import default_device
from ember_ml.backend.selection import active
from ember_ml.core import trees
from ember_ml.dispatch.arguments import bring
from ember_ml.distributed.groups import place
from ember_ml.distributed.strategy.base import Parts, SingleProcess
from ember_ml.errors import DeviceError, LaunchError, UnsupportedOp
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.ember_tensor import EmberTensor, wrap
from ember_ml.tensor.variable import Variable, assign_all, values_of
from ember_ml.typing import Tensor

__all__ = ["MeshStrategy"]


class MeshStrategy(SingleProcess):
    """Training by one process on several devices, of which each computes its part of every batch. On JAX only.

    ``devices`` are their names, by default all of the kind of the default device. Each has all parameters, buffers and
    optimizer state; with ``split_parameters`` each has a part of those that have an axis which splits evenly. A step is
    the program for one device: the compiler divides it, and adds the sums and the gathering. So the results are those
    of one device but for rounding, random numbers included. Batches that do not split evenly, as the last one of an
    epoch perhaps, are computed whole by every device.
    """

    exchanges: bool = False
    split_parameters: bool
    _model: Module | None = None

    def __init__(self, devices: Sequence[str] | None = None, split_parameters: bool = False) -> None:
        super().__init__()
        if devices is not None and (isinstance(devices, str) or not devices):
            raise ValueError(f"devices are several names, as ['cuda:0', 'cuda:1'], not {devices!r}")
        self._devices, self.split_parameters = devices, split_parameters

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices."""
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
        """How many devices compute together."""
        return len(self.devices)

    def distribute(self, batch: Any) -> list[Any]:
        """Return a list of the whole batch alone, a tensor or a tree of tensors, whose rows lie on the devices."""
        backend, engine, devices = active(), _engine(), self.devices
        leaves, structure = trees.flatten(batch)
        found = []
        for leaf in leaves:
            native = bring(leaf._array if type(leaf) is EmberTensor else leaf, backend)
            splits = bool(native.shape) and native.shape[0] % len(devices) == 0
            placed = engine.put(native, devices, 0 if splits else None)
            found.append(wrap(placed, backend) if type(leaf) is EmberTensor else placed)
        return [structure(found)]

    def shard(self, loader: Any) -> Any:
        """The batches of ``loader``, a ``DataLoader`` or any iterable of batches, over the devices."""
        return Parts(self, loader)

    def prepare(self, model: Module, optimizer: Any = None) -> None:
        """Give the devices the parameters and buffers, and the state of the optimizer."""
        if place().world_size > 1:
            raise LaunchError(
                f"MeshStrategy is for one process with several devices, and {place().started_by} started "
                f"{place().world_size} processes: use DataParallelStrategy or ZeroStrategy"
            )
        self._model = model
        self._spread(list(model.named_variables().values()))
        if optimizer is not None:
            optimizer.make_slots(model.trainable())
            self._spread(optimizer.slot_variables())

    def load_state(self, optimizer: Any, state: Mapping[str, Tensor], step: int) -> None:
        """Let the optimizer go on from a state after ``step`` updates; give the devices that and the parameters."""
        super().load_state(optimizer, state, step)
        if self._model is not None:
            self.prepare(self._model, optimizer)

    def _spread(self, variables: Sequence[Variable]) -> None:
        engine, devices = _engine(), self.devices
        axes = [self._axis_of(variable.shape) if self.split_parameters else None for variable in variables]
        found = zip(values_of(variables), axes, strict=True)
        assign_all(variables, [engine.put(x, devices, axis) for x, axis in found])

    def _axis_of(self, shape: tuple[int, ...]) -> int | None:
        """Return the longest axis that splits evenly."""
        fitting = [axis for axis, length in enumerate(shape) if length and not length % self.num_devices]
        return max(fitting, key=lambda axis: shape[axis], default=None)

    def __repr__(self) -> str:
        return f"MeshStrategy(devices={self._devices!r}, split_parameters={self.split_parameters})"


def _engine() -> DeviceMesh:
    backend = active()
    if backend.device_mesh is None:
        raise UnsupportedOp(
            f"MeshStrategy needs a compiler that divides a program over devices, as JAX has, and {backend.name} has "
            "none: start a process for each device with `ember-ml launch`, and use DataParallelStrategy"
        )
    return backend.device_mesh

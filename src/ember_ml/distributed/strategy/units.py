"""Parameters that strategies split: where each is used, and which are gathered together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.distributed import collectives
from ember_ml.nn.modules.deferred import DeferredParameter
from ember_ml.nn.modules.module import Module
from ember_ml.nn.modules.parameter import Parameter
from ember_ml.tensor.variable import own

__all__ = ["ShardedParameter", "Use", "find_uses", "plan_units"]

UNIT_BYTES = 4 * 2**20
"""Bytes of parameters that are gathered together at least: a message of less takes hardly less time."""


class ShardedParameter(Parameter):
    """A parameter of which this process holds a part; reading it gathers the whole, on every process at once.

    It starts with the value that ``parameter`` has on rank 0.
    """

    __slots__ = ("recording", "split")

    held: Any
    home: Backend
    recording: Any
    split: Any

    def __init__(self, parameter: Parameter, split: Any, recording: Any) -> None:
        self.split, self.recording, self.is_trainable = split, recording, parameter.is_trainable
        # whole here only: a model of ``nn.deferred`` or ``nn.empty`` never has all parameters in memory, so
        # ``parameter`` keeps no copy
        here = active()
        if isinstance(parameter, DeferredParameter):
            first = parameter.draw()
        else:
            first = parameter.held if parameter.home is here else own(parameter.held, here)
        whole = collectives.broadcast(first)
        self.held, self.home = split.part_of(whole), here
        split.belong_to(self)

    @property
    def value(self) -> Any:
        whole = self.split.whole_of(self.held)
        return whole if self.home is active() else own(whole, active())

    @value.setter
    def value(self, value: Any) -> None:
        self.hold(value)

    def assign(self, value: Any) -> None:
        self.hold(value)  # of which it copies a part

    def hold(self, value: Any) -> None:
        """Hold this process's part of another value."""
        backend = self.home
        self.held = self.split.part_of(value if backend.is_native(value) else own(value, backend))

    @property
    def device(self) -> str:
        """The device of this process's part, for which nothing is gathered."""
        return self.home.device_of(self.held)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.split.shape

    @property
    def size(self) -> int:
        return self.split.size

    @property
    def nbytes(self) -> int:
        """The memory that this process's part takes."""
        return self.split.share * self.dtype.itemsize


@dataclass
class Use:
    """A parameter, its first name, and the modules that have it: their paths, themselves, and the attributes."""

    parameter: Parameter
    name: str
    places: list[tuple[str, Module, str]] = field(default_factory=list)

    def replace(self, made: ShardedParameter, strategy: str) -> None:
        """Let all modules have ``made`` instead; the parameter is let go."""
        for _, module, key in self.places:
            if key not in module._variables:
                raise ValueError(
                    f"{strategy} splits parameters that are attributes of modules, and "
                    f"{type(module).__name__}.{key} is in a list or dict: use another strategy"
                )
            module._variables[key] = made
        self.parameter = made


def find_uses(model: Module) -> list[Use]:
    """Return the parameters of a model that are not split yet, each once, in the order of the modules."""
    found: dict[int, Use] = {}
    for path, module in model.named_modules():
        for key, variable in module.own_variables():
            if isinstance(variable, Parameter) and not isinstance(variable, ShardedParameter):
                use = found.setdefault(id(variable), Use(variable, f"{path}.{key}" if path else key))
                use.places.append((path, module, key))
    return list(found.values())


def plan_units(uses: Iterable[Use]) -> list[Sequence[Use]]:
    """Return which parameters are gathered together: neighbours of one dtype, until they have ``UNIT_BYTES``.

    Those of one module stay together, and those that are trained apart from those that are not, which have no gradients
    to send.
    """
    units: list[Sequence[Use]] = []
    begun: dict[tuple[Any, bool], list[Use]] = {}
    for use in uses:
        parameter = use.parameter
        unit = begun.setdefault((parameter.dtype, parameter.is_trainable), [])
        is_new_module = bool(unit) and unit[-1].places[0][1] is not use.places[0][1]
        if is_new_module and sum(x.parameter.size * x.parameter.dtype.itemsize for x in unit) >= UNIT_BYTES:
            units.append(tuple(unit))
            unit.clear()
        unit.append(use)
    return units + [tuple(unit) for unit in begun.values() if unit]

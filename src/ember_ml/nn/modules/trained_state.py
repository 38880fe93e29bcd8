"""Walk through a module once: trainable parameters, buffers, and what a compiled program depends on."""

from __future__ import annotations

from collections.abc import Hashable
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

from ember_ml.backend.selection import active
from ember_ml.core.dtypes import EmberDType
from ember_ml.nn.modules.containers import CONTAINERS, Contents, check_is_new, check_is_ours
from ember_ml.nn.modules.parameter import Buffer, Parameter
from ember_ml.tensor.variable import Variable
from ember_ml.transforms import change_counter

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module

__all__ = ["TrainedState"]


class TrainedState:
    """The trainable parameters of a module by name, its buffers, and whether it has all of them yet."""

    __slots__ = (
        "_held",
        "_key",
        "_modules",
        "_root",
        "_seen",
        "_version",
        "buffers",
        "contents",
        "is_built",
        "is_training",
        "named",
        "variables",
    )

    is_built: bool
    is_training: bool
    """Whether the module, and all in it, are set to be trained."""

    def __init__(self, module: Module) -> None:
        self._key: int | None = None
        self._held: tuple[list[Variable], Hashable] | None = None
        self._version = change_counter.count
        self.contents: list[Contents] = []
        """The lists and dicts in the modules as they are now: nobody counts how they change."""
        self._modules: list[Module] = []
        self._root = type(module).__name__
        self._seen: set[int] = set()
        self.named: dict[str, Parameter] = {}
        self.buffers: list[Buffer] = []
        self.variables: list[Variable] = []
        self.is_built = self.is_training = True
        self._add(module, "")

    def is_current(self) -> bool:
        """Return whether no module has changed since, and no element of a list or dict of modules was replaced."""
        return self._version == change_counter.count and all(map(Contents.is_current, self.contents))

    def _add(self, module: Module, prefix: str) -> None:
        """Add a module whose parts have names that start with ``prefix``."""
        seen = self._seen
        if id(module) in seen:  # a class may have an equality of its own, as a dataclass has
            return
        seen.add(id(module))
        self._modules.append(module)
        if not module.is_built:
            self.is_built = False
        if not module.training:
            self.is_training = False
        for name, variable in module.own_variables():
            if id(variable) in seen:
                continue
            seen.add(id(variable))
            self.variables.append(variable)
            if isinstance(variable, Parameter):
                if variable.is_trainable:
                    check_is_new(prefix + name, self.named, self._root)
                    self.named[prefix + name] = variable
            elif isinstance(variable, Buffer):
                self.buffers.append(variable)
        if not active().is_tracing():
            parts = module._parts_that_may_be_modules()
            module.__dict__["_walked_parts"] = parts
            containers = {name: x for name, x in parts.items() if isinstance(x, CONTAINERS)}
            for name, container in containers.items():
                check_is_ours(f"{self._root}.{prefix}{name}", container)
            self.contents += Contents.of_all(containers.values())
        for name, child in module.children():
            self._add(child, f"{prefix}{name}.")

    @property
    def key(self) -> int:
        """A number for everything but tensors that a compiled program depends on: modules, modes, names, settings."""
        if self._key is None:
            modules = tuple([(x._serial, x.training, _settings_of(x.__dict__)) for x in self._modules])
            self._key = change_counter.number_of((modules, tuple(self.named)))
        return self._key

    @property
    def held(self) -> tuple[list[Variable], Hashable]:
        """All variables and the key: one object for good."""
        if self._held is None:
            self._held = (self.variables, self.key)
        return self._held


_PLAIN = (int, float, complex, str, bytes, EmberDType, FunctionType, BuiltinFunctionType, type(None))


def _settings_of(value: Any) -> Hashable:
    """Return the values in nested containers that a program takes as constants, hashable; 1, 1.0 and True differ."""
    kind = type(value)
    if kind is dict:
        return tuple([(name, _settings_of(x)) for name, x in value.items() if name not in _NOT_SETTINGS])
    if kind is list or kind is tuple:
        return tuple([_settings_of(x) for x in value])
    return (kind, value) if isinstance(value, _PLAIN) else kind


_NOT_SETTINGS = ("_hooks", "_serial", "_variables", "_walk", "_walked_parts", "forward")

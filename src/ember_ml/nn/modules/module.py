"""Modules: functions with parameters, made of other modules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from os import PathLike
from typing import Any, Self

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.config.origin import ATTRIBUTE, Origin
from ember_ml.nn.modules import change_counter as versions
from ember_ml.nn.modules import summary as describing
from ember_ml.nn.modules.parameter import Buffer, Parameter
from ember_ml.tensor.variable import Variable
from ember_ml.transforms.captured_variables import Holder
from ember_ml.typing import DeviceLike, DTypeLike, Tensor

__all__ = ["Module"]


class Module(Holder):
    """A function with parameters: subclasses assign parameters and other modules to attributes and define ``forward``.

    Modules in lists, tuples and dicts are found as well. Reading an attribute that is a parameter or a buffer gives its
    native tensor on the active backend; assigning a tensor to it replaces its value.

    >>> from ember_ml import nn, ops
    >>> class Shift(nn.Module):
    ...     def __init__(self):
    ...         self.offset = nn.Parameter([1.0, 2.0])
    ...     def forward(self, x):
    ...         return ops.add(x, self.offset)
    >>> shift = Shift()
    >>> ops.to_numpy(shift([10.0, 20.0])).tolist()
    [11.0, 22.0]
    >>> shift
    Shift()  # 2 parameters
    """

    _variables: dict[str, Variable]
    training: bool
    """Whether the module is being trained: dropout drops, running statistics move."""
    is_built: bool = True
    """Whether the module has its parameters; layers whose sizes are left out get them at the first call."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)  # here, so that a subclass need not call __init__ of this class
        self.__dict__["_variables"] = {}
        self.__dict__["training"] = True
        versions.changed()
        self.__dict__[ATTRIBUTE] = Origin(args, kwargs)  # for the configuration that describes it
        return self

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        variable = self.__dict__["_variables"].get(name)
        if variable is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return variable.value

    def __setattr__(self, name: str, value: Any) -> None:
        variables = self.__dict__["_variables"]
        if isinstance(value, Variable):
            self.__dict__.pop(name, None)
            variables[name] = value
            versions.changed()
        elif name in variables:
            _replace(variables[name], name, value, self)
        else:
            object.__setattr__(self, name, value)
            versions.changed()

    def __delattr__(self, name: str) -> None:
        if self._variables.pop(name, None) is None:
            object.__delattr__(self, name)
        versions.changed()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_walk", "_walked_parts")}

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._variables]

    def variable(self, name: str) -> Any:
        """The :class:`Parameter` or :class:`Buffer` itself that is the attribute ``name``; assigned to an attribute of
        another module it belongs to both.

        >>> from ember_ml import nn
        >>> one, two = nn.Linear(2, 2), nn.Linear(2, 2)
        >>> two.weight = one.variable("weight")
        >>> len(nn.Sequential(one, two).parameters())
        3
        """
        if name not in self._variables:
            raise AttributeError(f"{type(self).__name__} has no parameter or buffer {name!r}")
        return self._variables[name]

    # the tree

    def children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one, or in lists, tuples and dicts that are, with their names."""
        for name, value in self._parts_that_may_be_modules().items():
            if isinstance(value, Module):
                yield name, value
            else:
                yield from _contained(name, value)

    def _parts_that_may_be_modules(self) -> dict[str, Any]:
        if active().is_tracing():  # not every tracer follows a walk through all attributes
            known = self.__dict__.get("_walked_parts")
            if known is not None:
                return known
        return {
            name: value
            for name, value in self.__dict__.items()
            if name != "_walked_parts" and (isinstance(value, Module) or type(value) in _CONTAINERS)
        }

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module, whose name is empty, and all modules in it, each once, with their names."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [("", self)]
        while stack:
            name, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            below = [(f"{name}.{key}" if name else key, child) for key, child in module.children()]
            stack += reversed(below)

    def named_variables(self) -> dict[str, Variable]:
        """All parameters and buffers by name, each once."""
        found: dict[str, Variable] = {}
        seen: set[int] = set()
        for prefix, module in self.named_modules():
            for name, variable in module._variables.items():
                if id(variable) not in seen:
                    seen.add(id(variable))
                    found[f"{prefix}.{name}" if prefix else name] = variable
        return found

    def named_parameters(self) -> dict[str, Parameter]:
        """All parameters by name, frozen ones included."""
        return {name: x for name, x in self.named_variables().items() if isinstance(x, Parameter)}

    def named_buffers(self) -> dict[str, Buffer]:
        """All buffers by name."""
        return {name: x for name, x in self.named_variables().items() if isinstance(x, Buffer)}

    def trainable(self) -> dict[str, Parameter]:
        """The parameters that training changes, by name."""
        return {name: x for name, x in self.named_parameters().items() if x.is_trainable}

    def trained_state(self) -> TrainedState:
        """What a step of training needs to know of the module; found in one walk, and again when a module changes."""
        if active().is_tracing():  # a tracer would take what is remembered for something to be guarded
            return TrainedState(self)
        found = self.__dict__.get("_walk")
        if found is None or not found.is_current():
            found = self.__dict__["_walk"] = TrainedState(self)
        return found

    def parameters(self) -> list[Parameter]:
        """All parameters, frozen ones included."""
        return list(self.named_parameters().values())

    @property
    def num_parameters(self) -> int:
        """How many numbers the parameters hold."""
        return sum(parameter.size for parameter in self.parameters())

    # modes

    def train(self, mode: bool = True) -> Self:
        """Set the module, and all in it, to be trained, or with False to be used; gives the module itself."""
        others = [module for _, module in self.named_modules() if module.training is not mode]
        for module in others:
            module.__dict__["training"] = mode
        if others:
            versions.changed()
        return self

    def eval(self) -> Self:
        """Set the module, and all in it, to be used rather than trained; gives the module itself."""
        return self.train(False)

    def freeze(self, *names: str) -> Self:
        """Let training leave the parameters as they are: all, or those whose name is or begins with one of ``names``.

        >>> from ember_ml import nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)).freeze("0")
        >>> list(model.trainable())
        ['1.weight', '1.bias']
        """
        return self._set_trainable(names, False)

    def unfreeze(self, *names: str) -> Self:
        """Let training change the parameters again: all, or those whose name is or begins with one of ``names``."""
        return self._set_trainable(names, True)

    def _set_trainable(self, names: tuple[str, ...], trainable: bool) -> Self:
        parameters = self.named_parameters()
        for wanted in names:
            if not any(_is_within(name, wanted) for name in parameters):
                raise ValueError(f"{type(self).__name__} has no parameter {wanted!r}; it has {', '.join(parameters)}")
        for name, parameter in parameters.items():
            if not names or any(_is_within(name, wanted) for wanted in names):
                parameter.is_trainable = trainable
        return self

    # values

    def state_dict(self) -> dict[str, Tensor]:
        """The tensors of all parameters and buffers by name, native to the active backend."""
        return {name: variable.value for name, variable in self.named_variables().items()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Self:
        """Take the values of parameters and buffers from tensors by name, of any backend; gives the module itself.

        Nothing is changed where a shape differs or, unless ``strict`` is False, where names are missing or unknown.
        """
        variables = self.named_variables()
        missing, unknown = [x for x in variables if x not in state], [x for x in state if x not in variables]
        if strict and (missing or unknown):
            parts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(
                unknown
            )
            raise ValueError(f"the state for {type(self).__name__} {' and '.join(parts)}")
        fitting = {name: _fitted(x, name, state[name]) for name, x in variables.items() if name in state}
        for name, native in fitting.items():
            variables[name].value = native
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write all parameters and buffers to a safetensors file, which every backend, and other programs, can load."""
        ops.save(path, self.state_dict())

    def load(self, path: str | PathLike[str], strict: bool = True) -> Self:
        """Take the values of parameters and buffers from a file that :meth:`save` wrote; gives the module itself."""
        return self.load_state_dict(ops.load(path), strict)

    def to_device(self, device: DeviceLike) -> Self:
        """Move all parameters and buffers to ``device``; gives the module itself."""
        for variable in self.named_variables().values():
            variable.value = ops.to_device(variable.value, device)
        return self

    def to_dtype(self, dtype: DTypeLike) -> Self:
        """Cast all parameters and floating-point buffers to ``dtype``; gives the module itself."""
        for variable in self.named_variables().values():
            if variable.dtype.kind == "float":
                variable.value = ops.cast(variable.value, dtype)
        return self

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call ``function`` with this module and each one in it; gives the module itself."""
        for _, module in self.named_modules():
            function(module)
        return self

    # what gradients and compiled functions need to know

    def trained_variables(self) -> dict[str, Variable]:
        state = self.trained_state()
        if not state.is_built:
            raise ValueError(f"{type(self).__name__} has layers whose sizes are unknown: call it once before")
        return dict(state.named)

    def held(self) -> tuple[list[Variable], Hashable] | None:
        state = self.trained_state()
        if not state.is_built:
            return None
        if state.key is None:
            state.key = versions.number_of((id(self), tuple(state.modes), tuple(state.named)))
        return state.variables, state.key

    # words

    def settings(self) -> dict[str, Any]:
        """What ``repr`` shows of this module besides the modules in it: attributes that are plain values."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("training", "is_built")
            and not name.startswith("_")
            and isinstance(value, int | float | str | tuple | None)
        }

    def shown(self) -> Iterator[tuple[str, Any]]:
        """What ``repr`` shows inside of this module: the modules in it, with their names."""
        return self.children()

    def summary(self) -> str:
        """A table of the modules and parameters in this module: names, kinds, shapes, numbers of parameters.

        >>> from ember_ml import nn
        >>> print(nn.Sequential(nn.Linear(2, 3)).summary())
        name      kind        shape   parameters
                  Sequential                   9
        0         Linear                       9
        0.weight  Parameter   (3, 2)           6
        0.bias    Parameter   (3,)             3
        9 parameters, 9 trainable, 36 bytes
        """
        return describing.summary(self)

    def __repr__(self) -> str:
        return describing.text(self)


class TrainedState:
    """The parameters of a module that training changes, by name, its buffers, and whether it has all of them yet."""

    __slots__ = ("buffers", "containers", "is_built", "key", "modes", "named", "seen", "variables", "version")

    is_built: bool
    version: int

    def __init__(self, module: Module) -> None:
        self.key: int | None = None  # what stands for modes and names in tables of programs
        self.version = versions.current()
        self.containers: list[tuple[Any, int]] = []
        self.named: dict[str, Parameter] = {}
        self.buffers: list[Buffer] = []
        self.variables: list[Variable] = []
        self.modes: list[bool] = []
        self.is_built = True
        self.seen: set[Any] = set()
        self.add(module, "")

    def is_current(self) -> bool:
        """Whether no module has changed since; lists and dicts tell of their changes by their lengths alone."""
        return self.version == versions.current() and all(len(held) == count for held, count in self.containers)

    def add(self, module: Module, prefix: str) -> None:
        """Take in a module whose parts have names that start with ``prefix``."""
        if module in self.seen:
            return
        seen = self.seen
        seen.add(module)
        self.modes.append(module.training)
        if not module.is_built:
            self.is_built = False
        for name, variable in module._variables.items():
            if variable in seen:
                continue
            seen.add(variable)
            self.variables.append(variable)
            if isinstance(variable, Parameter):
                if variable.is_trainable:
                    self.named[prefix + name] = variable
            elif isinstance(variable, Buffer):
                self.buffers.append(variable)
        parts = module._parts_that_may_be_modules()
        if not active().is_tracing():
            module.__dict__["_walked_parts"] = parts
        self.containers += [(x, len(x)) for x in parts.values() if type(x) is list or type(x) is dict]
        for name, child in module.children():
            self.add(child, f"{prefix}{name}.")


_CONTAINERS = (list, tuple, dict)


def _contained(name: str, values: Any) -> Iterator[tuple[str, Module]]:
    for key, value in values.items() if type(values) is dict else enumerate(values):
        if isinstance(value, Module):
            yield f"{name}.{key}", value
        elif type(value) in _CONTAINERS:
            yield from _contained(f"{name}.{key}", value)


def _is_within(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def _replace(variable: Variable, name: str, value: Any, module: Module) -> None:
    """Give a module's variable another value: a tensor of the active backend, or a recorded one, as it is."""
    if tuple(getattr(value, "shape", variable.shape)) != variable.shape:
        raise ValueError(f"{type(module).__name__}.{name} has shape {variable.shape}, not {tuple(value.shape)}")
    # a module assigns to its buffers while it is being differentiated: they keep the number, not how it was computed
    variable.assign(ops.stop_gradient(value) if isinstance(variable, Buffer) else value)


def _fitted(variable: Variable, name: str, value: Any) -> Any:
    native = ops.copy(ops.asarray(value))
    if tuple(native.shape) != variable.shape:
        raise ValueError(f"{name} has shape {variable.shape}, and the state has {tuple(native.shape)} for it")
    return ops.to_device(ops.cast(native, variable.dtype), active().device_of(variable.value))

"""Modules: functions with parameters, made of other modules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from os import PathLike
from types import FunctionType
from typing import Any, ClassVar, Self

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.config.origin import ATTRIBUTE, Origin
from ember_ml.core.dtypes import as_dtype
from ember_ml.nn.modules import summary
from ember_ml.nn.modules.containers import CONTAINERS, Contents, check_is_new, check_is_ours, find_contained
from ember_ml.nn.modules.error_paths import name_module
from ember_ml.nn.modules.hooks import Hookable, without_hooks
from ember_ml.nn.modules.loading import are_equal, fit, match_names
from ember_ml.nn.modules.parameter import Buffer, Parameter
from ember_ml.nn.modules.trained_state import TrainedState
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var
from ember_ml.tensor.variable import Variable
from ember_ml.transforms import change_counter
from ember_ml.transforms.captured_variables import Holder
from ember_ml.transforms.loop_state import constant
from ember_ml.typing import DeviceLike, DTypeLike, Tensor

__all__ = ["Module"]


class Module(Hookable, Holder):
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
    ignored_in_states: ClassVar[tuple[str, ...]] = ()
    """Names in states of other libraries that this module does not need."""
    is_built: bool = True
    """Whether the module has its parameters; layers whose sizes are left out get them at the first call."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)  # set up here, so that a subclass need not call __init__ of this class
        attributes = self.__dict__
        attributes["_variables"] = {}
        attributes["training"] = True
        attributes["_serial"] = change_counter.count_change()
        attributes[ATTRIBUTE] = Origin(args, kwargs)  # for the configuration that describes it
        return self

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if vars(cls).get("__slots__"):
            raise TypeError(
                f"{cls.__name__} has __slots__, in which modules and settings are not found: they would neither be "
                "trained nor saved"
            )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module's result; subclasses define this."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.forward(*args, **kwargs)
        except Exception as error:
            name_module(self, error)
            raise

    def __getattr__(self, name: str) -> Any:
        variable = self.__dict__["_variables"].get(name)
        if variable is None:
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)  # a property that has failed: raise its own error
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return variable.value

    def __setattr__(self, name: str, value: Any) -> None:
        variables = self.__dict__["_variables"]
        if type(value) in _PLAIN and name not in variables and name not in _METHODS:  # most are
            object.__setattr__(self, name, value)
            change_counter.count_change()
        elif getattr(getattr(type(self), name, None), "fset", None) is not None:  # a property decides what it keeps
            object.__setattr__(self, name, value)
        elif isinstance(value, Variable):
            self.__dict__.pop(name, None)
            variables[name] = value
            change_counter.count_change()
        elif name in variables:
            _replace(variables[name], name, value, self)
        else:
            if name in _METHODS and (isinstance(value, Holder) or not callable(value)):
                raise AttributeError(
                    f"{name} is a method of nn.Module: {type(self).__name__} needs another name for it"
                )
            check_is_ours(f"{type(self).__name__}.{name}", value)
            object.__setattr__(self, name, value)
            change_counter.count_change()

    def __delattr__(self, name: str) -> None:
        if self._variables.pop(name, None) is None:
            object.__delattr__(self, name)
        change_counter.count_change()

    def __getstate__(self) -> dict[str, Any]:
        state = without_hooks(self.__dict__)
        return {name: value for name, value in state.items() if name not in _OF_ONE_OBJECT}

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._variables]

    def variable(self, name: str) -> Any:
        """Return the :class:`Parameter` or :class:`Buffer` object that is the attribute ``name``.

        Assigned to an attribute of another module it belongs to both.

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
        """Yield the modules that are attributes, or in lists, tuples and dicts that are, with their names."""
        return self._modules_in(self._parts_that_may_be_modules())

    def own_variables(self) -> Iterator[tuple[str, Variable]]:
        """Return the parameters and buffers that are attributes, or in lists, tuples and dicts that are."""
        return self._variables_in(self._parts_that_may_be_modules())

    def _modules_in(self, parts: dict[str, Any]) -> Iterator[tuple[str, Module]]:
        for name, value in parts.items():
            if isinstance(value, Module):
                yield name, value
            else:
                yield from find_contained(name, value, Module)

    def _variables_in(self, parts: dict[str, Any]) -> Iterator[tuple[str, Variable]]:
        yield from self._variables.items()
        for name, value in parts.items():
            if not isinstance(value, Module):
                yield from find_contained(name, value, Variable)

    def _parts_that_may_be_modules(self) -> dict[str, Any]:
        known = self.__dict__.get("_walked_parts")
        if known is not None and active().is_tracing():  # torch.compile cannot trace a walk through all attributes
            return known
        return {
            name: value
            for name, value in self.__dict__.items()
            if type(value) not in _PLAIN  # most are: asked first, a walk takes half the time
            and name not in ("_variables", "_walked_parts")
            and isinstance(value, _PARTS)
        }

    def named_modules(self) -> Iterator[tuple[str, Module]]:
        """Yield this module, whose name is empty, and all modules in it, each once, with their names."""
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
        """Return all parameters and buffers by name, each once."""
        found: dict[str, Variable] = {}
        seen: set[int] = set()
        for name, variable in self._all_names().items():
            if id(variable) not in seen:
                seen.add(id(variable))
                found[name] = variable
        return found

    def _all_names(self) -> dict[str, Variable]:
        """Return the parameters and buffers by name; one that belongs to several modules has all its names."""
        found: dict[str, Variable] = {}
        for prefix, module, parts in self._modules_with_parts():
            for name, variable in module._variables_in(parts):
                check_is_new(prefix + name, found, type(self).__name__)
                found[prefix + name] = variable
        return found

    def _modules_with_parts(self) -> Iterator[tuple[str, Module, dict[str, Any]]]:
        """Yield what :meth:`named_modules` does, with the names of parts begun, and the parts: looked for once."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [("", self)]
        while stack:
            prefix, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            parts = module._parts_that_may_be_modules()
            yield prefix, module, parts
            if parts:
                stack += reversed([(f"{prefix}{name}.", child) for name, child in module._modules_in(parts)])

    def named_parameters(self) -> dict[str, Parameter]:
        """Return all parameters by name, frozen ones included."""
        return {name: x for name, x in self.named_variables().items() if isinstance(x, Parameter)}

    def named_buffers(self) -> dict[str, Buffer]:
        """Return all buffers by name."""
        return {name: x for name, x in self.named_variables().items() if isinstance(x, Buffer)}

    def trainable(self) -> dict[str, Parameter]:
        """Return the parameters that training changes, by name."""
        return {name: x for name, x in self.named_parameters().items() if x.is_trainable}

    def trained_state(self) -> TrainedState:
        """Return the trainable parameters, buffers and modes; cached until a module changes."""
        if active().is_tracing():  # a tracer would guard the cache
            return TrainedState(self)
        found = self.__dict__.get("_walk")
        if found is None or not found.is_current():
            found = self.__dict__["_walk"] = TrainedState(self)
        return found

    def parameters(self) -> list[Parameter]:
        """Return all parameters, frozen ones included."""
        return list(self.named_parameters().values())

    @property
    def num_parameters(self) -> int:
        """The number of elements of all parameters."""
        return sum(parameter.size for parameter in self.parameters())

    # modes

    def train(self, mode: bool = True) -> Self:
        """Set the module, and all in it, to be trained, or with False to be used; return the module itself."""
        for _, module, _ in self._modules_with_parts():
            if module.training is not mode:
                module.__dict__["training"] = mode
                change_counter.count_change()
        return self

    def eval(self) -> Self:
        """Set the module, and all in it, to be used rather than trained; return the module itself."""
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
        self._need_sizes()
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
        """Return copies of the tensors of all parameters and buffers by name, native to the active backend.

        They stay as they are while the module is trained. A parameter that belongs to several modules has all its
        names, and one copy.

        >>> from ember_ml import nn, ops
        >>> model = nn.Linear(2, 1)
        >>> best = model.state_dict()
        >>> model.weight = ops.zeros((1, 2))
        >>> bool(ops.any(model.weight)), bool(ops.any(best["weight"])), list(best)
        (False, True, ['weight', 'bias'])
        """
        self._need_sizes()
        copies: dict[int, Tensor] = {}
        found: dict[str, Tensor] = {}
        for name, variable in self._all_names().items():
            if id(variable) not in copies:
                copies[id(variable)] = ops.copy(variable.value)
            found[name] = copies[id(variable)]
        return found

    def current_tensors(self) -> dict[str, Tensor]:
        """Return the tensors of all parameters and buffers by name, each once, not copied: training may change them."""
        return {name: variable.value for name, variable in self.named_variables().items()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> Self:
        """Take the values of parameters and buffers from tensors by name, of any backend; return the module itself.

        A parameter that belongs to several modules is found under any of its names; under several, they must be equal.
        Nothing is changed where a shape differs or, unless ``strict`` is False, where names are missing or unknown.
        """
        self._need_sizes()
        fitting: dict[Variable, tuple[str, Any]] = {}
        for name, variable in match_names(self, state, strict).items():
            first, native = fitting.setdefault(variable, (name, fit(variable, name, state[name])))
            if first != name and not are_equal(native, fit(variable, name, state[name])):
                raise ValueError(f"{first} and {name} are one parameter here, and differ in the state")
        for variable, (_, native) in fitting.items():
            variable.hold(native)
        return self

    def _need_sizes(self) -> None:
        """Raise where a layer has no parameters yet: what is done to all parameters would pass it over."""
        for name, module in self.named_modules():
            if not module.is_built:
                place = f"{name} ({type(module).__name__})" if name else type(module).__name__
                raise ValueError(
                    f"the sizes of {place} are unknown: give them, or call {type(self).__name__} once before"
                )

    def _ignores(self, name: str) -> bool:
        """Return whether a name in a state belongs to a value of other libraries that the module does not need."""
        path, _, last = name.rpartition(".")
        return any(last in module.ignored_in_states for prefix, module in self.named_modules() if prefix == path)

    def save(self, path: str | PathLike[str]) -> None:
        """Write all parameters and buffers to a safetensors file, which every backend, and other programs, can load."""
        self._need_sizes()
        ops.save(path, self.current_tensors())

    def load(self, path: str | PathLike[str], strict: bool = True) -> Self:
        """Take the values of parameters and buffers from a file that :meth:`save` wrote; return the module itself."""
        return self.load_state_dict(ops.load(path), strict)

    def to_device(self, device: DeviceLike) -> Self:
        """Move all parameters and buffers to ``device``; return the module itself."""
        self._need_sizes()
        for variable in self.named_variables().values():
            variable.hold(ops.to_device(variable.value, device))
        return self

    def to_dtype(self, dtype: DTypeLike) -> Self:
        """Cast all parameters and floating-point buffers to ``dtype``; return the module itself."""
        self._need_sizes()
        if as_dtype(dtype).kind not in ("float", "complex"):
            raise TypeError(f"parameters are floating-point tensors, and cannot become {as_dtype(dtype)}")
        for variable in self.named_variables().values():
            if variable.dtype.kind == "float":
                variable.hold(ops.cast(variable.value, dtype))
        return self

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call ``function`` with this module and each one in it; return the module itself."""
        for _, module in self.named_modules():
            function(module)
        return self

    # gradients and compiled functions

    def trained_variables(self) -> dict[str, Variable]:
        state = self.trained_state()
        if not state.is_built:
            raise ValueError(f"{type(self).__name__} has layers whose sizes are unknown: call it once before")
        return dict(state.named)

    def held(self) -> tuple[list[Variable], Hashable] | None:
        state = self.trained_state()
        return state.held if state.is_built else None

    def uncounted(self) -> Sequence[Contents]:
        return self.trained_state().contents

    # repr and summary

    def repr_settings(self) -> dict[str, Any]:
        """Return the attributes that ``repr`` shows besides the modules: plain values, and the names of functions."""
        return {
            name: value.__name__ if isinstance(value, FunctionType) else value
            for name, value in self.__dict__.items()
            if name not in ("training", "is_built", "forward")
            and not name.startswith("_")
            and isinstance(value, int | float | str | tuple | FunctionType | None)
        }

    def repr_parts(self) -> Iterator[tuple[str, Any]]:
        """Return the modules that ``repr`` shows inside of this one, with their names."""
        return self.children()

    def count_flops(self, *args: Any, **kwargs: Any) -> int | None:
        """Return how many floating-point operations a call with these arguments takes, for :meth:`summary`.

        None, unless a subclass defines it: then they are counted op by op.
        """
        return None

    def summary(self, *args: Any, **kwargs: Any) -> str:
        """Return a table of the modules and parameters in this module: names, kinds, shapes, numbers of parameters.

        With arguments for the model, of which a tuple of integers stands for a tensor of that shape, it has the outputs
        of each layer in one forward pass in evaluation mode: their shapes, the floating-point operations in it, and the
        bytes of its outputs, summed over calls. Products and convolutions are counted, a multiplication and an addition
        as two.

        >>> from ember_ml import nn
        >>> model = nn.Sequential(nn.Linear(2, 3))
        >>> model.summary()
        name      kind        shape   parameters
                  Sequential                   9
        0         Linear                       9
        0.weight  Parameter   (3, 2)           6
        0.bias    Parameter   (3,)             3
        9 parameters, 9 trainable, 36 bytes
        >>> model.summary((5, 2))
        name  kind        output  parameters  FLOPs  output bytes
              Sequential  (5, 3)           9     60            60
        0     Linear      (5, 3)           9     60            60
        9 parameters, 9 trainable, 36 bytes, 60 FLOPs
        """
        if not args and not kwargs:
            return summary.tabulate(self)
        from ember_ml.nn.inspection.survey import survey  # it is written with modules

        return survey(self, args, kwargs)

    def __repr__(self) -> str:
        return summary.describe(self)

    def _repr_html_(self) -> str:
        """Return a table for notebooks: a row for each module and variable."""
        return summary.write_html(self)


def _is_within(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def _replace(variable: Variable, name: str, value: Any, module: Module) -> None:
    """Set a module's variable; a native tensor of the active backend and a recorded one are not converted."""
    if not hasattr(value, "shape"):
        value = ops.asarray(value)
        if value.dtype != variable.dtype and as_dtype(value.dtype).kind == variable.dtype.kind:
            value = ops.cast(value, variable.dtype)  # Python numbers have no dtype of their own
    if tuple(value.shape) != variable.shape:
        raise ValueError(f"{type(module).__name__}.{name} has shape {variable.shape}, not {tuple(value.shape)}")
    if isinstance(variable, Parameter) and as_dtype(value.dtype).kind not in ("float", "complex"):
        raise TypeError(f"{type(module).__name__}.{name} is a Parameter: a floating-point tensor, not {value.dtype}")
    if isinstance(variable, Buffer):
        # a module assigns to its buffers while it is being differentiated: keep the value without its graph
        inner = value._array if type(value) is EmberTensor else value
        value = constant(inner if type(inner) is Var else value)
    variable.assign(value)


_PLAIN = frozenset({bool, int, float, str, type(None), FunctionType, Origin})
"""Types of attributes that hold no modules."""
_PARTS = (Module, *CONTAINERS)
_OF_ONE_OBJECT = ("_serial", "_walk", "_walked_parts")
"""Attributes that a copy does not share."""
_METHODS = frozenset(name for base in Module.__mro__[:-1] for name, value in vars(base).items() if callable(value))

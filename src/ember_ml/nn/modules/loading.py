"""Give the parameters and buffers of a module the values that a state has for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml.tensor.variable import Variable

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module

__all__ = ["are_equal", "fit", "load_in_turn", "match_names", "match_saved"]


def match_names(module: Module, state: Collection[str], strict: bool) -> dict[str, Variable]:
    """Return the parameters and buffers that a state with these names has values for, by its names.

    ``ValueError`` where it lacks some or has others, if it is to be ``strict``.
    """
    names = module._all_names()
    given = {name: variable for name, variable in names.items() if name in state}
    loaded = {id(variable) for variable in given.values()}
    missing = [name for name, variable in module.named_variables().items() if id(variable) not in loaded]
    unknown = [name for name in state if name not in names and not module._ignores(name)]
    if strict and (missing or unknown):
        parts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        raise ValueError(f"the state for {type(module).__name__} {' and '.join(parts)}")
    return given


def fit(variable: Variable, name: str, value: Any) -> Any:
    """Return a copy of ``value``, the state's ``name``, with the dtype and on the device of ``variable``."""
    native = ops.copy(ops.asarray(value))
    _check_shape(variable, name, tuple(native.shape))
    return ops.to_device(ops.cast(native, variable.dtype), variable.device)


def _check_shape(variable: Variable, name: str, shape: tuple[int, ...]) -> None:
    if shape != variable.shape:
        raise ValueError(f"{name} has shape {variable.shape}, and the state has {shape} for it")


def are_equal(x: Any, y: Any) -> bool:
    """Return whether two tensors of one shape are equal."""
    return ops.item(ops.all(ops.equal(x, y)))


def match_saved(
    module: Module, state: Mapping[str, Any], shapes: Mapping[str, tuple[Any, tuple[int, ...]]]
) -> dict[Variable, str]:
    """Return all parameters and buffers with the names of their values in ``state``, which is read one by one.

    Names and ``shapes``, each with a dtype, are checked as by ``load_state_dict``, and ``ValueError`` raised: so that
    :func:`load_in_turn` need keep no old values to go back to.
    """
    found: dict[Variable, str] = {}
    for name, variable in match_names(module, state, strict=True).items():
        _check_shape(variable, name, shapes[name][1])
        first = found.setdefault(variable, name)
        if first != name and not are_equal(state[first], state[name]):
            raise ValueError(f"{first} and {name} are one parameter here, and differ in the state")
    return found


def load_in_turn(matched: Mapping[Variable, str], state: Mapping[str, Any]) -> None:
    """Give each variable its value, and let the old one go before the next is read; see :func:`match_saved`."""
    for variable, name in matched.items():
        variable.hold(fit(variable, name, state[name]))

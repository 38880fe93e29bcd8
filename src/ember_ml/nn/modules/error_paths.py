"""Say in an error which module of a model it came from, as ``h.3.mlp.up (Linear)``.

Modules do not know their names. While an error leaves the modules, from the inner ones to the outer ones, each of them
knows the name of the one below; where no error is raised, nothing is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ember_ml.errors import EmberError

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module

__all__ = ["name_module"]

_NAMED = (ValueError, TypeError, IndexError, OverflowError, NotImplementedError)


class _Path:
    """Where an error came from: the names up to the module that it has reached, and its text without them."""

    __slots__ = ("kind", "module", "names", "text")

    def __init__(self, module: Module, text: str) -> None:
        self.module, self.kind, self.text = module, type(module).__name__, text
        self.names: list[str] = []

    def __reduce__(self) -> Any:
        return type(None), ()  # an error that is sent to another process leaves the model behind


def name_module(module: Module, error: Exception) -> None:
    """Put the path of the module that raised ``error`` in front of its text, as far as ``module`` knows it.

    Errors of a program's own classes are left as they are.
    """
    if not (type(error) in _NAMED or isinstance(error, EmberError)) or len(error.args) != 1:
        return
    path: _Path | None = error.__dict__.get("_module_path")
    if path is None:
        if isinstance(error.args[0], str):
            error.__dict__["_module_path"] = _Path(module, error.args[0])
        return
    name = next((name for name, child in module.children() if child is path.module), None)
    path.module = module
    if name is not None:
        path.names.insert(0, name)
        error.args = (f"{'.'.join(path.names)} ({path.kind}): {path.text}",)

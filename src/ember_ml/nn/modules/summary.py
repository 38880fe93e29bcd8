"""Modules in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module

__all__ = ["summary", "text"]


def text(module: Module) -> str:
    """A module and the modules in it, one to a line, with the numbers of their parameters."""
    is_built = all(part.is_built for _, part in module.named_modules())
    count = f"  # {_counted(module)}" if is_built else "  # sizes unknown until the first call"
    return _text(module).replace("\n", f"{count}\n", 1) if "\n" in _text(module) else _text(module) + count


def _text(module: Any) -> str:
    if not hasattr(module, "shown"):  # a function among the modules
        return getattr(module, "__name__", repr(module))
    settings = [f"{name}={value!r}" for name, value in module.settings().items()]
    below = [f"  ({name}): {_text(child)}".replace("\n", "\n  ") for name, child in module.shown()]
    head = f"{type(module).__name__}({', '.join(settings)}"
    return "\n".join([head, *below, ")"]) if below else f"{head})"


def _counted(module: Module) -> str:
    count = module.num_parameters
    return f"{count:,} parameter{'' if count == 1 else 's'}"


def summary(module: Module) -> str:
    """A table of a module's parts."""
    rows: list[tuple[str, str, str, str]] = [("name", "kind", "shape", "parameters")]
    for prefix, part in module.named_modules():
        rows.append((prefix, type(part).__name__, "", f"{part.num_parameters:,}" if part.is_built else "unknown"))
        for name, variable in part._variables.items():
            full = f"{prefix}.{name}" if prefix else name
            rows.append((full, _kind(variable), str(variable.shape), f"{variable.size:,}"))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{name:{widths[0]}}  {kind:{widths[1]}}  {shape:{widths[2]}}  {count:>{widths[3]}}"
        for name, kind, shape, count in rows
    ]
    variables = module.named_variables().values()
    trained = sum(parameter.size for parameter in module.trainable().values())
    size = sum(variable.nbytes for variable in variables)
    return "\n".join([*lines, f"{_counted(module)}, {trained:,} trainable, {size:,} bytes"])


def _kind(variable: Any) -> str:
    frozen = getattr(variable, "is_trainable", True) is False
    return f"{type(variable).__name__}{', frozen' if frozen else ''}"

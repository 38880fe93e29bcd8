"""Print modules: their ``repr`` and their summary."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module

__all__ = ["Summary", "count_in_words", "describe", "lay_out", "tabulate", "write_html"]


class Summary(str):
    """A text whose ``repr`` is itself, so that a notebook or the Python prompt shows the table."""

    def __repr__(self) -> str:
        return str(self)


def describe(module: Module) -> str:
    """Return the ``repr``: a module and the modules in it, one to a line, with the numbers of their parameters."""
    is_built = all(part.is_built for _, part in module.named_modules())
    count = f"  # {count_in_words(module)}" if is_built else "  # sizes unknown until the first call"
    if is_built and not module.parameters() and not any(module.children()):  # such as an activation
        count = ""
    first, *others = _describe_part(module).split("\n")
    return "\n".join([first + count, *others])


def _describe_part(module: Any) -> str:
    if not hasattr(module, "repr_parts"):  # a function among the modules
        return getattr(module, "__name__", repr(module))
    settings = ", ".join([f"{name}={value!r}" for name, value in module.repr_settings().items()])
    below = [f"({name}): {_describe_part(child)}" for name, child in module.repr_parts()]
    if not below:
        return f"{type(module).__name__}({settings})"
    lines = "\n".join([settings, *below] if settings else below).replace("\n", "\n  ")
    return f"{type(module).__name__}(\n  {lines}\n)"


def count_in_words(module: Module) -> str:
    """Return the number of parameters as a text."""
    count = module.num_parameters
    return f"{count:,} parameter{'' if count == 1 else 's'}"


def tabulate(module: Module) -> Summary:
    """Return a table of a module's parts."""
    return Summary("\n".join([*lay_out(_list_parts(module), 3), _sum_up(module)]))


def write_html(module: Module) -> str:
    """Return the same table for notebooks."""
    head, *rows = _list_parts(module)
    lines = [f"<tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table><p>{_sum_up(module)}</p>"


def _list_parts(module: Module) -> list[tuple[str, str, str, str]]:
    """Return a row for each module and variable, below a row of titles."""
    rows: list[tuple[str, str, str, str]] = [("name", "kind", "shape", "parameters")]
    for prefix, part in module.named_modules():
        rows.append((prefix, type(part).__name__, "", f"{part.num_parameters:,}" if part.is_built else "unknown"))
        for name, variable in part.own_variables():
            full = f"{prefix}.{name}" if prefix else name
            rows.append((full, _name_kind(variable), str(variable.shape), f"{variable.size:,}"))
    return rows


def _sum_up(module: Module) -> str:
    trained = sum(parameter.size for parameter in module.trainable().values())
    size = sum(variable.nbytes for variable in module.named_variables().values())
    return f"{count_in_words(module)}, {trained:,} trainable, {size:,} bytes"


def lay_out(rows: Sequence[Sequence[str]], texts: int) -> list[str]:
    """Return the rows of a table as lines; the first ``texts`` columns begin at the left, the others are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ["<" if place < texts else ">" for place in range(len(widths))]
    return [
        "  ".join([f"{cell:{side}{width}}" for cell, side, width in zip(row, aligned, widths, strict=True)]).rstrip()
        for row in rows
    ]


def _name_kind(variable: Any) -> str:
    frozen = getattr(variable, "is_trainable", True) is False
    return f"{type(variable).__name__}{', frozen' if frozen else ''}"

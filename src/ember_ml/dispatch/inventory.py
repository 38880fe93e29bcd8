"""The inventory: every op, and how each backend computes it, read from the declarations and the bodies themselves."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ember_ml.backend.contract import Backend, ByDType
from ember_ml.core import dtypes as dt
from ember_ml.dispatch.declare import OPS, Op
from ember_ml.dispatch.describe import write_signature
from ember_ml.dispatch.gaps import ANY

__all__ = ["DERIVED", "MISSING", "NATIVE", "OWN", "PLAIN", "Entry", "Gap", "families", "gaps", "inventory"]

NATIVE, OWN, DERIVED, PLAIN, MISSING = "native", "own", "derived", "plain", "missing"
"""How a backend computes an op: with the library's own function, with a body that we wrote, with the body that every
backend shares, as a plain function that needs no backend, or not at all."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One op in the inventory."""

    op: str
    family: str
    kind: str
    rule: str
    signature: str
    aliases: tuple[str, ...]
    status: dict[str, str]
    """How each backend computes it."""
    uses: int
    """How often the package itself calls it: what its layers, losses and solvers stand on comes first."""
    corrected: dict[str, tuple[str, ...]]
    """The dtypes for which a backend replaces the library's function by a body of its own."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that a backend cannot do: an op, a dtype, or one dtype of one op; and why."""

    backend: str
    op: str
    dtype: str
    reason: str


def inventory(backends: Iterable[Any]) -> list[Entry]:
    """Every declared op in alphabetic order, with its status on each of the backend modules given."""
    backends = tuple(backends)
    return [_entry(OPS[name], backends) for name in sorted(OPS)]


@cache
def count_uses() -> Counter[str]:
    """Return how often the source of the package calls each name of ``ops``, examples in docstrings included."""
    folder = Path(__file__).parents[1]
    calls = re.compile(r"\bops\.(\w+)\(")
    return Counter(name for path in folder.rglob("*.py") for name in calls.findall(path.read_text(encoding="utf-8")))


def families() -> tuple[str, ...]:
    """The families of ops, as the files that declare them are named."""
    return tuple(sorted({op.family for op in OPS.values()}))


def _entry(op: Op, backends: tuple[Any, ...]) -> Entry:
    return Entry(
        op=op.name,
        family=op.family,
        kind="plain" if op.is_plain else "derived" if op.derived else "primitive",
        rule=op.rule.name,
        signature=write_signature(op.signature, width=sys.maxsize),
        aliases=op.aliases,
        status={backend.name: _status(op, backend) for backend in backends},
        uses=sum(count_uses()[name] for name in (op.name, *op.aliases)),
        corrected={backend.name: found for backend in backends if (found := _corrected(op, backend))},
    )


def _status(op: Op, backend: Backend) -> str:
    if op.is_plain:
        return PLAIN
    if not op.has_own_body(backend):
        return DERIVED if op.derived else MISSING
    body = op.body(backend)
    native = body.native if isinstance(body, ByDType) else body
    return OWN if _is_written_by(backend, native) else NATIVE


def _is_written_by(backend: Backend, body: Any) -> bool:
    """Whether the body is Python code of the backend's own package rather than the library's function."""
    body = inspect.unwrap(getattr(body, "func", body))
    return (getattr(body, "__module__", None) or "").startswith(backend.families[0].__name__.partition(".")[0])


def _corrected(op: Op, backend: Backend) -> tuple[str, ...]:
    body = op.body(backend)
    return tuple(sorted(dtype.name for dtype in body.others)) if isinstance(body, ByDType) else ()


def gaps(backend: Backend) -> list[Gap]:
    """What the backend cannot do: the known gaps with their reasons, and whatever else its code lacks."""
    found = [Gap(backend.name, *key, reason) for key, reason in backend.gaps.items()]
    known = {(gap.op, gap.dtype) for gap in found}
    lacking = [(op.name, ANY) for op in OPS.values() if _status(op, backend) == MISSING]
    lacking += [(ANY, dtype.name) for dtype in dt.ALL if dtype not in backend.dtypes]
    return found + [Gap(backend.name, *key, "not implemented") for key in sorted(lacking) if key not in known]

"""Every name of the op table is there, once, declared, documented, and with a body on every backend."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ember_ml import dtypes, ops
from ember_ml.backend import installed_backends, load
from ember_ml.dispatch.declare import OPS
from ember_ml.dispatch.gaps import ANY
from ember_ml.dispatch.inventory import MISSING, families, gaps, inventory
from ember_ml.errors import UnsupportedDType


def _read_table() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for line in (Path(__file__).parent / "data" / "op_table.txt").read_text().splitlines():
        if line.startswith("["):
            names: list[str] = []
            sections[line.strip("[]")] = names
        elif line and not line.startswith("#"):
            names.extend(line.split())
    return sections


TABLE = _read_table()
ALIASES = sorted({name for names in TABLE.values() for name in names if "=" in name})
FUNCTIONS = sorted({name for section in TABLE.keys() - {"dtypes"} for name in TABLE[section] if "=" not in name})
DECLARED = sorted(OPS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_of_the_table_is_declared_and_flat_in_ops(name: str) -> None:
    assert name in OPS
    assert getattr(ops, name) is OPS[name].function


@pytest.mark.parametrize("pair", ALIASES)
def test_alias_is_the_op_itself(pair: str) -> None:
    alias, _, op = pair.partition("=")
    assert getattr(ops, alias) is getattr(ops, op)
    assert alias in OPS[op].aliases


@pytest.mark.parametrize("name", TABLE["dtypes"])
def test_dtype_of_the_table_is_in_ops(name: str) -> None:
    assert getattr(ops, name) is dtypes.as_dtype(name)


@pytest.mark.parametrize("section", ["stats", "linearalg", "signal", "image"])
def test_view_holds_the_ops_themselves(section: str) -> None:
    view = getattr(ops, section)
    for name in TABLE[f"ops.{section}"]:
        name = name.partition("=")[0]
        assert getattr(view, name) is getattr(ops, name), f"ops.{section}.{name}"


@pytest.mark.parametrize("name", DECLARED)
def test_op_is_documented(name: str) -> None:
    text = inspect.getdoc(OPS[name].declaration) or ""
    summary = text.partition("\n\n")[0]
    assert summary.endswith("."), f"ops.{name}: the first paragraph must be one sentence that states the result"
    assert re.search(rf"(>>>|\.\.\.) .*\b{name}\b", text), f"ops.{name}: its docstring needs an example that calls it"


@pytest.mark.parametrize("name", DECLARED)
def test_op_is_annotated(name: str) -> None:
    signature = OPS[name].signature
    untyped = [p.name for p in signature.parameters.values() if p.annotation is inspect.Parameter.empty]
    assert not untyped, f"ops.{name}: no annotation for {untyped}"
    assert signature.return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize("backend_name", installed_backends())
def test_every_op_has_a_body(backend_name: str) -> None:
    missing = [entry.op for entry in inventory([load(backend_name)]) if entry.status[backend_name] == MISSING]
    assert not missing


@pytest.mark.parametrize("backend_name", installed_backends())
def test_every_body_serves_a_declared_op(backend_name: str) -> None:
    """A function that no declaration names and no other code uses would never run."""
    families = load(backend_name).families
    folder = Path(inspect.getfile(families[0])).parent
    words = Counter(re.findall(r"\w+", "\n".join(path.read_text() for path in folder.glob("*.py"))))
    unused = {
        f"{family.__name__}.{name}"
        for family in families
        for name, value in vars(family).items()
        if callable(value) and getattr(value, "__module__", "") == family.__name__
        if name not in OPS and words[name] == 1
    }
    assert not unused


@pytest.mark.parametrize("backend_name", installed_backends())
def test_no_gap_without_a_reason(backend_name: str) -> None:
    assert [gap for gap in gaps(load(backend_name)) if gap.reason == "not implemented"] == []


_GAPS = [(name, op, dtype) for name in installed_backends() for op, dtype in load(name).gaps]


@pytest.mark.parametrize("key", [pytest.param(key, id="-".join(key)) for key in _GAPS])
def test_known_gap_is_still_true(key: tuple[str, str, str]) -> None:
    backend_name, op, dtype = key
    if op == ANY:
        assert dtypes.as_dtype(dtype) not in load(backend_name).dtypes
        return
    before = ops.get_backend()
    ops.set_backend(backend_name)
    try:
        x: Any = ops.ones((4, 4), dtype=dtype)
        others = {"fftconvolve": (x,), "resample": (8,), "polar": (x,)}.get(op, ())
        with pytest.raises(UnsupportedDType):
            getattr(ops, op)(x, *others)
    finally:
        ops.set_backend(before)


def test_families_are_named_alike_on_both_sides() -> None:
    for name in installed_backends():
        files = {family.__name__.rsplit(".", 1)[-1] for family in load(name).families}
        primitive_families = {op.family for op in OPS.values() if not op.derived and not op.is_plain}
        assert primitive_families <= files
    assert set(families()) == {op.family for op in OPS.values()}


def test_what_an_op_remembers_is_bounded(backend: str) -> None:
    kinds = ("int8", "int16", "int32", "float16", "float32", "uint8")
    tensors = [ops.ones((), dtype=kind) for kind in kinds]
    results = {str(ops.dtype(ops.clip(*given))) for given in product(tensors, repeat=3)}
    assert results == {"int8", "int16", "int32", "float16", "float32", "uint8"}
    assert all(0 < len(memory) <= 64 for memory in OPS["clip"].settled.values())

"""A backend from another package, found by its entry point, is a backend like any other."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import selection as backends
from ember_ml.backend.contract import ByDType
from ember_ml.backend.loading import ENTRY_POINT_GROUP, check_backend
from ember_ml.dispatch.declare import OPS
from ember_ml.dispatch.inventory import inventory
from ember_ml.errors import BrokenBackend, UnknownBackend, UnsupportedDType, UnsupportedOp
from ember_ml.nn.tensor import EmberTensor

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party_backend"


def _install(folder: Path, name: str, value: str) -> None:
    """What pip writes for a package with such an entry point."""
    info = folder / f"{name}_backend-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-backend\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{name} = {value}\n")


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The example package, installed for one test as its pyproject.toml says."""
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    ((name, value),) = points[ENTRY_POINT_GROUP].items()
    _install(tmp_path, name, value)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    before = ember_ml.get_backend()
    ember_ml.set_backend("counting")
    module = importlib.import_module("counting_backend")
    module.calls.clear()
    yield module
    ember_ml.set_backend(before)
    backends._loaded.pop("counting", None)
    backends._owners.pop(module.tensor_type, None)


def test_it_is_listed_and_active(counting: Any) -> None:
    assert backends.backend_names()[-1] == "counting"
    assert "counting" in backends.installed_backends()
    assert ember_ml.get_backend() == "counting"
    assert ember_ml.get_backend_module() is counting


def test_it_computes(counting: Any) -> None:
    x = ops.add([1.0, 2.0], 3.0)
    assert type(x) is counting.Counted
    assert x.dtype == np.float32
    assert ops.sqrt(ops.add(x, x)).tolist() == pytest.approx([8.0**0.5, 10.0**0.5])
    assert counting.calls == {"add": 2, "sqrt": 1}


def test_tensors_of_other_backends_come_over_and_go_back(counting: Any) -> None:
    theirs = np.array([1, 2, 3], dtype=np.int64)
    mine = ops.multiply(theirs, 2)
    assert type(mine) is counting.Counted
    with ember_ml.use_backend("numpy"):
        back = ops.add(mine, 1)
    assert type(back) is np.ndarray
    assert back.tolist() == [3, 5, 7]


def test_portable_tensors_follow(counting: Any) -> None:
    ember_ml.set_backend("numpy")
    x = ember_ml.EmberTensor([1.0, 2.0])
    ember_ml.set_backend("counting")
    assert type(ops.multiply(x, x)) is ember_ml.EmberTensor
    assert counting.calls == {"multiply": 1}


def test_derived_ops_work_without_a_body(counting: Any) -> None:
    derived = next(entry for entry in inventory([counting]) if entry.op == "ravel")
    assert derived.status == {"counting": "derived"}
    assert ops.ravel([[1.0, 2.0], [3.0, 4.0]]).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert counting.calls == {"reshape": 1}


def test_the_example_fulfils_the_whole_contract(counting: Any) -> None:
    check_backend(counting, "counting")


def test_it_has_gradients_by_the_rules_of_ember_ml(counting: Any) -> None:
    gradient = ops.grad(lambda x: ops.sum(ops.multiply(ops.sqrt(x), x)))(ops.array([1.0, 4.0]))
    assert type(gradient) is counting.Counted
    assert ops.to_numpy(gradient).tolist() == [1.5, 3.0]
    assert ops.item(ops.grad(ops.grad(lambda x: ops.multiply(ops.multiply(x, x), x)))(2.0)) == 12.0
    variable = EmberTensor([1.0, 2.0], requires_grad=True)
    (variable * variable).sum().backward()
    assert variable.grad is not None
    assert variable.grad.tolist() == [2.0, 4.0]


def test_ops_that_it_lacks_say_so(counting: Any) -> None:
    with pytest.raises(UnsupportedOp, match=r"ops\.sin .*'counting'"):
        ops.sin([1.0])


def test_dtypes_that_it_lacks_say_so(counting: Any) -> None:
    with pytest.raises(UnsupportedDType, match=r"counting.*complex64"):
        ops.add(1j, 2.0)


def test_inventory_says_what_it_has(counting: Any) -> None:
    statuses = {entry.op: entry.status["counting"] for entry in inventory([counting])}
    assert statuses["add"] == "own"
    assert statuses["sin"] == "missing"
    assert statuses.keys() == OPS.keys()


def test_plugin_that_fails_to_import_is_a_broken_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "failing", "failing_backend")
    (tmp_path / "failing_backend.py").write_text("raise OSError('no such device')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(BrokenBackend, match=r"failing_backend.*no such device"):
        ember_ml.set_backend("failing")
    assert "failing_backend" not in sys.modules


def test_plugin_that_is_incomplete_is_a_broken_backend(counting: Any, tmp_path: Path) -> None:
    _install(tmp_path, "incomplete", "incomplete_backend")
    (tmp_path / "incomplete_backend.py").write_text(
        "import counting_backend\n"
        "globals().update({k: v for k, v in vars(counting_backend).items() if not k.startswith('__')})\n"
        "name = key = 'incomplete'\n"
        "del dtype_of\n"
    )
    with pytest.raises(BrokenBackend, match=r"'incomplete' does not fulfil the contract.*: dtype_of is missing$"):
        ember_ml.set_backend("incomplete")
    assert ember_ml.get_backend() == "counting"


def test_body_with_a_misspelt_name_is_a_broken_backend(counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def subtrakt(x: Any, y: Any) -> Any:
        return x - y

    monkeypatch.setattr(subtrakt, "__module__", counting.bodies.__name__)
    monkeypatch.setattr(counting.bodies, "subtrakt", subtrakt, raising=False)
    monkeypatch.delattr(counting.bodies, "subtract", raising=False)
    backends._loaded.pop("counting")
    with pytest.raises(BrokenBackend, match=r"counting_backend\.bodies\.subtrakt.*name it subtract"):
        ember_ml.set_backend("counting")


def test_removed_plugin_is_unknown() -> None:
    with pytest.raises(UnknownBackend, match="counting"):
        ember_ml.set_backend("counting")


# ── a body that raises runs once


def _wrong() -> tuple[Any, Any]:
    """Return two vectors that cannot be added."""
    return ops.convert_to_tensor([1.0, 2.0]), ops.convert_to_tensor([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: ops.add(x, y),
        lambda x, y: ops.add(EmberTensor(x), EmberTensor(y)),
        lambda x, y: EmberTensor(x) + EmberTensor(y),
        lambda x, y: ops.add(x, [1.0, 2.0, 3.0]),
        lambda x, y: ops.grad(lambda t: ops.sum(ops.add(t, y)))(x),
        lambda x, y: ops.grad(lambda t: ops.sum(t + y))(x),
        lambda x, y: ops.grad(lambda t: ops.sum(ops.add(t, [1.0, 2.0, 3.0])))(x),
        lambda x, y: ops.grad(lambda t: ops.sum(t + EmberTensor(y)))(EmberTensor(x)),
    ],
    ids=[
        "native",
        "portable",
        "operator",
        "list",
        "recorded",
        "recorded +",
        "recorded list",
        "recorded portable",
    ],
)
@pytest.mark.parametrize("in_scope", [False, True])
def test_body_that_raises_runs_once(counting: Any, call: Any, in_scope: bool) -> None:
    if in_scope:
        ember_ml.set_backend("numpy")
    with ember_ml.use_backend("counting") if in_scope else nullcontext():
        x, y = _wrong()
        counting.calls.clear()
        with pytest.raises(ValueError, match=r"ops\.add\(x=float32\(2,\), y=float32\(3,\)\) on counting"):
            call(x, y)
    assert counting.calls == {"add": 1}


def test_general_body_runs_after_the_native_one_refused(counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def refuse(x: Any) -> Any:
        done.append("native")
        raise TypeError("not this one")

    def accept(x: Any) -> Any:
        done.append("general")
        return x

    op = OPS["sqrt"]
    for table in (op.bodies, op.codes):
        table.pop("counting", None)
    monkeypatch.setattr(counting.bodies, "sqrt", ByDType(refuse, general=accept))
    try:
        ember_ml.set_backend("counting")
        x = ops.convert_to_tensor([4.0])
        assert ops.sqrt(x).tolist() == [4.0]
        assert done == ["native", "general"]
    finally:
        for table in (op.bodies, op.codes):
            table.pop("counting", None)

"""Loading refuses a backend that does not fulfil the contract, and says what is wrong with it."""

from __future__ import annotations

import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ember_ml.backend.loading import check_backend, installed_backends
from ember_ml.backend.selection import load
from ember_ml.errors import BrokenBackend


def _changed(lacks: str = "", **others: Any) -> ModuleType:
    """The NumPy backend under another name, without one attribute and with others."""
    made = ModuleType("broken")
    vars(made).update({name: value for name, value in vars(load("numpy")).items() if not name.startswith("__")})
    vars(made).update({"name": "broken", "key": "broken", **others})
    vars(made).pop(lacks, None)
    return made


def _refuse(module: ModuleType, *said: str) -> None:
    with pytest.raises(BrokenBackend) as caught:
        check_backend(module, "broken")
    assert all(text in str(caught.value) for text in ("the backend 'broken'", "contract.Backend", *said))


@pytest.mark.parametrize("name", installed_backends())
def test_installed_backends_fulfil_the_contract(name: str) -> None:
    check_backend(load(name), name)


def test_a_complete_one_is_accepted() -> None:
    check_backend(_changed(), "broken")


@pytest.mark.parametrize("name", ["to_host", "is_tracing", "dtypes", "weak_dtypes", "translate", "gaps", "is_tape"])
def test_a_missing_attribute_is_named(name: str) -> None:
    _refuse(_changed(name), f"{name} is missing")


def test_a_capability_must_be_named_even_if_there_is_none() -> None:
    _refuse(_changed("compilation"), "compilation is missing (compilation = None where there is none)")


def test_a_misspelt_capability_is_found() -> None:
    module = _changed("optimizer_kernels", optimiser_kernels=None)
    _refuse(module, "optimizer_kernels is missing; is optimiser_kernels a misspelling of it?")


def test_an_incomplete_capability_is_found() -> None:
    _refuse(_changed(laziness=SimpleNamespace(evaluate=print, unchecked=print)), "laziness: start is missing")
    _refuse(_changed(optimizer_kernels=SimpleNamespace(is_in_place=True, takes_halves=True, kernel={})), "kernels is")
    gradients = vars(load("torch")).get("gradients") if "torch" in installed_backends() else None
    check_backend(_changed(gradients=gradients), "broken")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("tensor_type", "ndarray", "tensor_type must be a class"),
        ("families", [], "families must be a tuple of modules"),
        ("dtypes", {"float32": "float32"}, "dtypes must be a dict from the dtypes of ember_ml"),
        ("weak_dtypes", set(), "weak_dtypes must be a frozenset"),
        ("is_native", None, "is_native must be a function, and is None"),
        ("is_tape", True, "is_tape must be False"),
    ],
)
def test_an_attribute_of_the_wrong_kind_is_named(name: str, value: Any, said: str) -> None:
    _refuse(_changed(**{name: value}), said)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    _refuse(_changed("cast", tensor_type=1, families=None), "cast is missing", "tensor_type must", "families must")


def test_the_name_is_the_registered_one() -> None:
    _refuse(_changed(name="other"), "registered as 'broken', and calls itself 'other'")


def test_checking_takes_less_than_a_hundredth_of_a_second() -> None:
    backend, taken = load("numpy"), []
    for _ in range(5):
        start = time.perf_counter()
        check_backend(backend, "numpy")
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.01


@pytest.mark.skipif("torch" not in installed_backends(), reason="the compiler is PyTorch's")
def test_loading_torch_does_not_import_its_compiler() -> None:
    program = "import sys, ember_ml; ember_ml.set_backend('torch'); print('torch._dynamo' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"

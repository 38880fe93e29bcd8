"""The examples in the docstrings run, and print the same, on every backend."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from importlib.util import find_spec
from typing import Any

import pytest

import ember_ml
from ember_ml.backend import backend_names, installed_backends
from ember_ml.dispatch.declare import OPS
from ember_ml.tensor import EmberTensor

_FINDER = doctest.DocTestFinder()
_OP_DOCUMENTATION = {op.declaration.__doc__ for op in OPS.values()}


def _modules() -> list[str]:
    """Every module of the library but the backends' own, and those of libraries that are not installed."""
    found = [module.name for module in pkgutil.walk_packages(ember_ml.__path__, "ember_ml.", onerror=lambda name: None)]
    found = [name for name in found if not name.endswith("__main__")]  # importing one runs the command
    own = tuple(f"ember_ml.backend.{name}" for name in backend_names())
    own += tuple(f"ember_ml.array_api.{name}" for name in backend_names() if name not in installed_backends())
    own += () if find_spec("starlette") else ("ember_ml.models.serving.app",)
    return ["ember_ml", *(name for name in found if not name.startswith(own))]


def _is_op(test: doctest.DocTest) -> bool:
    return test.docstring in _OP_DOCUMENTATION


def _run(examples: list[doctest.DocTest]) -> None:
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in examples:
        runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)


def _examples_of(thing: Any, name: str) -> list[doctest.DocTest]:
    """The examples of an object, whichever module it came from."""
    return [test for test in _FINDER.find(thing, name, module=False, globs={}) if test.examples]


@pytest.mark.parametrize("name", sorted(OPS))
def test_examples_of_op(name: str, backend: str) -> None:
    examples = _examples_of(OPS[name].declaration, f"ops.{name}")
    assert examples, f"ops.{name} has no example"
    _run(examples)


@pytest.mark.parametrize("name", _modules())
def test_examples_of_module(name: str, backend: str) -> None:
    """All but the ops, which have a test each, and which some modules show under the same or another name."""
    found = _FINDER.find(importlib.import_module(name), name)
    _run([test for test in found if test.examples and not _is_op(test)])


def test_examples_of_the_portable_tensor(backend: str) -> None:
    _run(_examples_of(EmberTensor, "EmberTensor"))

"""Variables whose tensors a program has: whoever reads or writes one ends the loan of all."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.tensor.variable import Loan, Variable, assign_all, keep, put_back, values_of

READERS: list[Callable[[Variable], Any]] = [
    lambda x: x.value,
    lambda x: x.held,
    lambda x: x.home,
    lambda x: x.shape,
    lambda x: x.dtype,
    lambda x: x.device,
    lambda x: x.size,
    lambda x: keep([x]),
    lambda x: values_of([x]),
    lambda x: ops.add(x, 1.0),
    copy.deepcopy,
    pickle.dumps,
    repr,
]


def lend() -> tuple[Variable, Variable, Loan]:
    """Return two variables, 1 and 2, whose tensors are in a loan, where they have become 3 and 4."""
    variables = [Variable(ops.array([1.0])), Variable(ops.array([2.0]))]
    loan = Loan(variables, active())
    loan.open(variables)
    loan.values = [ops.array([3.0]), ops.array([4.0])]
    return variables[0], variables[1], loan


def numbers(*variables: Variable) -> list[float]:
    return [float(ops.to_numpy(x)[0]) for x in variables]


@pytest.mark.parametrize("read", READERS)
def test_reading_one_gives_all_back(backend: str, read: Callable[[Variable], Any]) -> None:
    one, two, loan = lend()
    read(one)
    assert loan.values is None
    assert numbers(one, two) == [3.0, 4.0]
    assert one.home is active()


def test_writing_one_gives_the_others_back(backend: str) -> None:
    one, two, loan = lend()
    one.assign(ops.array([5.0]))
    assert loan.values is None
    assert numbers(one, two) == [5.0, 4.0]
    one, two, loan = lend()
    assign_all([two], [ops.array([6.0])])
    assert loan.values is None
    assert numbers(one, two) == [3.0, 6.0]
    one, two, loan = lend()
    kept = keep([one])
    loan.open([one, two])
    put_back(kept)
    assert loan.values is None
    assert numbers(one, two) == [3.0, 4.0]


def test_a_copy_of_a_lent_variable_has_its_tensor(backend: str) -> None:
    for make in (copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))):
        one, _, _ = lend()
        made = make(one)
        one.assign(ops.array([7.0]))
        assert numbers(made) == [3.0]


def test_variables_elsewhere_are_not_lent(backend: str) -> None:
    other = next((name for name in ember_ml.backend.installed_backends() if name != backend), None)
    if other is None:
        pytest.skip("the variable of another backend, and one is installed")
    with ember_ml.use_backend(other):
        elsewhere = Variable(ops.array([1.0]))
    here = Variable(ops.array([2.0]))
    loan = Loan([here, elsewhere], active())
    loan.open([here, elsewhere])
    assert loan.values is None
    assert numbers(here, elsewhere) == [2.0, 1.0]


def test_a_lent_variable_dies_at_once(backend: str) -> None:
    gc.disable()
    try:
        one, two, loan = lend()
        found = weakref.ref(one)
        del one
        assert found() is None
        assert numbers(two) == [4.0]
        assert loan.values is None
    finally:
        gc.enable()


def test_other_attributes_are_missing(backend: str) -> None:
    one, _, loan = lend()
    with pytest.raises(AttributeError, match="Variable has no attribute 'holds'"):
        one.holds  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
    assert loan.values is not None


def test_few_write_the_tensor_of_a_variable_themselves() -> None:
    """They read it before, or close its loan: a write that the loan does not see is lost at the next step."""
    source = Path(ember_ml.__file__).parent
    files = [path for path in source.rglob("*.py") if re.search(r"\w\.held(, \w+\.home)? = ", path.read_text())]
    assert sorted(str(path.relative_to(source).as_posix()) for path in files) == [
        "distributed/strategy/units.py",
        "nn/gradients.py",
        "nn/layers/channel_mixing/mixture.py",
        "nn/modules/deferred.py",  # before anybody has its value
        "tensor/variable.py",
        "training/interrupts.py",  # of another kind
        "transforms/captured_variables.py",
        "transforms/gradients.py",
        "transforms/repetition.py",
    ]


def test_variables_are_made_by_their_own_functions() -> None:
    """Whoever writes one that holds nothing, and was never lent, asks for a loan that is not there, as ZeRO did."""
    source = Path(ember_ml.__file__).parent
    assert [path.name for path in source.rglob("*.py") if "Variable.__new__(" in path.read_text()] == []

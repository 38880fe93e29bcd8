"""What gradient rules declare to read is what is kept for them: no less, and no more."""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.autodiff.recorder import Outline
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import float32
from ember_ml.dispatch.declare import OPS, gradient

RULES = [(op.name, name, rule) for op in OPS.values() for name, rule in op.gradients.items() if rule is not None]


def names_read(function: Callable[..., Any]) -> set[str]:
    """The parameters that the code of ``function`` reads."""
    code = function.__code__
    found = set(code.co_cellvars)
    for step in dis.get_instructions(code):
        if step.opname.startswith("LOAD"):
            found |= set(step.argval) if isinstance(step.argval, tuple) else {step.argval}
    return found & set(code.co_varnames[: code.co_argcount] + code.co_cellvars)


@pytest.mark.parametrize(("rule"), [rule for _, _, rule in RULES], ids=[f"{op}-{name}" for op, name, _ in RULES])
def test_a_rule_reads_all_that_it_declares(rule: Callable[..., Any]) -> None:
    code = rule.__code__
    assert set(code.co_varnames[1 : code.co_argcount]) <= names_read(rule)


def test_a_vjp_reads_all_that_it_declares() -> None:
    ember_ml.set_backend("numpy")
    for _, vjp in active().tape_kernels.vjps.values():
        code = vjp.__code__
        assert set(code.co_varnames[2 : code.co_argcount]) <= names_read(vjp), vjp


def test_ops_refuse_an_outline(backend: str) -> None:
    with pytest.raises(TypeError, match="Outline"):
        ops.add(Outline((2,), float32), 1.0)


def test_a_rule_that_reads_what_the_op_has_not() -> None:
    with pytest.raises(TypeError, match=r"a gradient rule of ops\.sin reads y"):
        gradient(ops.sin, x=lambda g, y: g)
    assert OPS["sin"].gradients["x"].__code__.co_varnames[:2] == ("g", "x")


def test_values_that_no_rule_reads_are_freed() -> None:
    """Sums and reshapes keep shapes alone, on the only backend whose memory the tape holds."""
    import weakref

    ember_ml.set_backend("numpy")
    held: list[Any] = []

    def f(x: Any) -> Any:
        y = ops.add(x, 1.0)
        held.append(weakref.ref(y.value))
        y = ops.reshape(y, (-1,))
        loss = ops.sum(y)
        del y
        held.append(held[0]() is None)
        return loss

    ops.grad(f)(ops.ones((4, 4)))
    assert held[1] is True

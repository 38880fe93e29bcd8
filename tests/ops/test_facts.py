"""Facts of tensors and dtypes: what they say, on every backend alike."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import dtypes as dt
from ember_ml import ops
from ember_ml.backend import installed_backends, load
from ember_ml.nn.tensor import EmberTensor
from tests.reference.facts import any_array, float_facts, integer_facts, joined_shape, shape_groups

EVERY_BACKEND = pytest.mark.parametrize("name", installed_backends())
DTYPES = sorted(dt.ALL, key=lambda dtype: dtype.name)
SOME = st.sampled_from(DTYPES)


@EVERY_BACKEND
@given(data=st.data())
def test_facts_of_a_tensor(name: str, data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from([dtype for dtype in DTYPES if dtype in load(name).dtypes]))
    host = data.draw(any_array(dtype.name))
    with ember_ml.use_backend(name):
        for x in (ops.asarray(host), EmberTensor(host)):
            assert ops.is_tensor(x)
            assert (ops.shape(x), ops.ndim(x), ops.size(x)) == (host.shape, host.ndim, host.size)
            assert ops.dtype(x) is dtype
            back = ops.to_numpy(x)
            assert (back.dtype, back.shape, back.tobytes()) == (host.dtype, host.shape, host.tobytes())
            if host.size == 1:
                got, want = ops.item(x), host.item()
                assert got == want or (math.isnan(got) and math.isnan(want))
            else:
                with pytest.raises(ValueError, match="one element"):
                    ops.item(x)
    assert not ops.is_tensor(host.tolist())


@given(st.integers(1, 3).flatmap(shape_groups))
def test_broadcast_shapes_agrees_with_numpy(shapes: tuple[tuple[int, ...], ...]) -> None:
    assert ops.broadcast_shapes(*shapes) == joined_shape(*shapes)


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        ops.broadcast_shapes((2, 3), (2,))


@given(SOME, SOME)
def test_promotion_is_a_join(a: dt.EmberDType, b: dt.EmberDType) -> None:
    """The common dtype does not depend on the order, holds both, and nothing smaller does."""
    try:
        both = ops.result_type(a, b)
    except TypeError:
        assert {a.kind, b.kind} == {"int", "uint"}
        assert dt.uint64 in (a, b)
        assert not ops.can_cast(a, b)
        return
    assert ops.result_type(b, a) is both
    assert ops.can_cast(a, both)
    assert ops.can_cast(b, both)
    assert ops.can_cast(a, b) == (both is b)
    smaller = [
        c for c in DTYPES if c is not both and ops.can_cast(a, c) and ops.can_cast(b, c) and ops.can_cast(c, both)
    ]
    assert smaller == []


@given(SOME, st.sampled_from([True, 1, 1.0, 1j]))
def test_python_numbers_are_weak(dtype: dt.EmberDType, number: complex) -> None:
    found = ops.result_type(dtype, number)
    order = ("bool", "int", "float", "complex")
    rank = order.index(dtype.kind.removeprefix("u"))
    if rank >= order.index(type(number).__name__):
        assert found is dtype
    else:
        assert found.kind == type(number).__name__


@EVERY_BACKEND
@given(a=SOME, b=SOME)
def test_result_type_is_what_ops_compute(name: str, a: dt.EmberDType, b: dt.EmberDType) -> None:
    held = load(name).dtypes
    with ember_ml.use_backend(name):
        try:
            both = ops.result_type(a, b)
        except TypeError:
            return
        if a in held and b in held and both in held:
            x, y = ops.ones(2, dtype=a), ops.ones(2, dtype=b)
            assert ops.result_type(x, y) is both
            assert ops.dtype(ops.concatenate([x, y])) is both


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in ("float", "complex")], ids=str)
def test_limits_of_floats(dtype: dt.EmberDType) -> None:
    found: Any = ops.finfo(dtype)
    assert (found.bits, found.eps, found.max, found.min, found.smallest_normal) == float_facts(dtype.name)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in ("int", "uint")], ids=str)
def test_limits_of_integers(dtype: dt.EmberDType) -> None:
    found: Any = ops.iinfo(dtype)
    assert (found.bits, found.max, found.min) == integer_facts(dtype.name)


@given(SOME)
def test_kinds_of_dtypes(dtype: dt.EmberDType) -> None:
    parts = {
        "bool": "bool",
        "int": "signed integer",
        "uint": "unsigned integer",
        "float": "real floating",
        "complex": "complex floating",
    }
    assert [kind for kind in parts.values() if ops.isdtype(dtype, kind)] == [parts[dtype.kind]]
    assert ops.isdtype(dtype, "integral") == (dtype.kind in ("int", "uint"))
    assert ops.isdtype(dtype, "numeric") == (dtype.kind != "bool")
    assert ops.isdtype(dtype, dtype)
    assert ops.isdtype(dtype, ("bool", "numeric"))

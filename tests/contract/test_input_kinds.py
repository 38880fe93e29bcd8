"""Every op that takes tensors: portable, native and Python inputs agree, inside and outside scopes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import dtypes, nn, ops
from ember_ml.backend import installed_backends
from ember_ml.dispatch.declare import OPS
from ember_ml.dispatch.gaps import gap_reason
from ember_ml.nn.tensor import EmberTensor
from tests.reference import close, is_array
from tests.reference.images import OPS_OF_IMAGES
from tests.reference.table import SPECS

INSTALLED = installed_backends()
RANDOM = ("sampling", "choices")
UNLIKE = {"empty", "empty_like", "from_dlpack"}  # their values are anything; it takes no Python data
NAMES = sorted(name for name in SPECS if OPS[name].roles and OPS[name].family not in RANDOM and name not in UNLIKE)


def _dtype_for(backend: str, name: str) -> str | None:
    """Return a dtype that the op computes and that Python's numbers have here, or None."""
    rule, module = OPS[name].rule, ember_ml.backend.load(backend)
    for dtype in (dtypes.float32, dtypes.int64, dtypes.complex64, dtypes.bool_):
        if dtype in rule.domain and dtype in module.dtypes and not gap_reason(module, name, dtype.name):
            return dtype.name
    return None


def _convert(value: Any, make: Callable[[Any], Any]) -> Any:
    if is_array(value):
        return make(value)
    return [_convert(item, make) for item in value] if isinstance(value, list) else value


def _as_python(array: Any) -> Any:
    """Return the numbers of ``array`` as Python has them; where that would lose shape or dtype, the array."""
    kept = array.size and array.dtype.name in ("float32", "bool", "int64", "complex64")
    return array.tolist() if kept else array


def _call(name: str, arguments: dict[str, Any], make: Callable[[Any], Any]) -> list[Any]:
    converted = {key: _convert(value, make) for key, value in arguments.items()}
    got = getattr(ops, name)(*converted.pop("*", []), **converted)
    return list(got) if isinstance(got, tuple | list) else [got]


def _check_equal(got: list[Any], wanted: list[Any], what: str) -> None:
    """Compare values to a few units in the last place: how a library rounds depends on where in memory numbers are."""
    assert len(got) == len(wanted), what
    for x, y in zip(map(ops.to_numpy, got), map(ops.to_numpy, wanted), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape), what
        finite = abs(y)[abs(y) < float("inf")]
        assert repr(x.tolist()) == repr(y.tolist()) or close(x, y, 16.0, finite.max(initial=0)) is None, what


@pytest.mark.long_with(*OPS_OF_IMAGES)
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
@pytest.mark.parametrize("backend", INSTALLED)
@pytest.mark.parametrize("name", NAMES)
def test_portable_native_and_python_inputs_agree(backend: str, name: str, inside: bool) -> None:
    # made anew for each case: Hypothesis 6.170 links the settings of all cases of one function into a chain
    @settings(max_examples=max(2, settings.default.max_examples // 10))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        _check_inputs(backend, name, inside, data)

    check()


def _check_inputs(backend: str, name: str, inside: bool, data: st.DataObject) -> None:
    dtype = _dtype_for(backend, name)
    if dtype is None:
        return
    module = ember_ml.backend.load(backend)
    arguments = SPECS[name].draw(data.draw, dtype)
    before = ember_ml.get_backend()
    ember_ml.set_backend(next((other for other in INSTALLED if other != backend), backend) if inside else backend)
    try:
        with warnings.catch_warnings(), ember_ml.use_backend(backend) if inside else nullcontext():
            warnings.simplefilter("ignore", RuntimeWarning)
            native = _call(name, arguments, ops.asarray)
            assert all(type(x) is module.tensor_type for x in native), "native inputs"
            portable = _call(name, arguments, EmberTensor)
            if any(is_array(x) or isinstance(x, list) for x in arguments.values()):
                assert all(type(x) is EmberTensor for x in portable), "portable inputs"
                assert [x.dtype for x in portable] == [ops.dtype(x) for x in native], "portable inputs"
            _check_equal(portable, native, "portable inputs")
            plain = _call(name, arguments, _as_python)
            assert all(type(x) is module.tensor_type for x in plain), "Python inputs"
            _check_equal(plain, native, "Python inputs")
    finally:
        ember_ml.set_backend(before)


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
def test_ops_take_parameters_as_tensors(backend: str, inside: bool) -> None:
    parameter = nn.Parameter(ops.asarray([1.0, 2.0]))
    with ember_ml.use_backend(backend) if inside else nullcontext():
        x = ops.asarray([3.0, 4.0])
        results = [
            (ops.add(parameter, x), [4.0, 6.0]),
            (ops.multiply(x, parameter), [3.0, 8.0]),
            (ops.negative(parameter), [-1.0, -2.0]),
            (ops.concatenate([parameter, x]), [1.0, 2.0, 3.0, 4.0]),
            (ops.where([True, False], parameter, x), [1.0, 4.0]),
            (ops.grad(lambda y: ops.sum(ops.multiply(parameter, y)))(x), [1.0, 2.0]),
        ]
    for got, wanted in results:
        assert ops.to_numpy(got).tolist() == wanted
    assert ops.add(EmberTensor(x), parameter).tolist() == [4.0, 6.0]
    assert ops.shape(parameter) == (2,)
    assert ops.to_numpy(parameter).tolist() == [1.0, 2.0]

"""Every declared op, on every backend and in every dtype that it claims, against an independent reference."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import dtypes, ops
from ember_ml.backend import installed_backends
from ember_ml.dispatch.declare import OPS
from ember_ml.dispatch.gaps import gap_reason
from tests.reference import close, is_array, widen
from tests.reference.images import OPS_OF_IMAGES
from tests.reference.table import SPECS


def _claimed(backend: str, name: str) -> list[str]:
    """The dtypes that the op computes on the backend: its rule's domain and what it lifts, less what is a known gap."""
    rule = OPS[name].rule
    admitted = set(rule.domain)
    if rule.lift:
        admitted |= dtypes.INTEGERS if not rule.lift_bool else dtypes.INTEGERS | dtypes.BOOL
    loaded = ember_ml.backend.load(backend)
    return sorted(d.name for d in admitted if d in loaded.dtypes and not gap_reason(loaded, name, d.name))


def _brought(value: Any) -> Any:
    if is_array(value):
        return ops.asarray(value)
    return [_brought(item) for item in value] if isinstance(value, list) else value


def check_call(backend: str, name: str, dtype: str, data: st.DataObject) -> None:
    spec = SPECS[name]
    arguments = spec.draw(data.draw, dtype)
    wide = {key: widen(value) for key, value in arguments.items()} if spec.widens else dict(arguments)
    starred = wide.pop("*", [])
    brought = {key: _brought(value) for key, value in arguments.items()}
    got = getattr(ops, name)(*brought.pop("*", []), **brought)
    results = got if isinstance(got, tuple | list) else (got,)
    assert all(type(result) is ember_ml.backend.load(backend).tensor_type for result in results)
    if spec.fault is not None:
        fault = spec.fault([ops.to_numpy(result) for result in results], *starred, **wide)
        assert fault is None, f"ops.{name} in {dtype} on {backend}: {fault}; {arguments}"
        return
    assert spec.reference is not None
    want = spec.reference(*starred, **wide)
    scale = spec.scale(*starred, **wide) if spec.scale else None
    wanted = want if isinstance(want, tuple | list) else (want,)
    assert len(results) == len(wanted)
    for result, expected in zip(results, wanted, strict=True):
        difference = close(ops.to_numpy(result), expected, spec.ulps, scale)
        assert difference is None, f"ops.{name} in {dtype} on {backend}: {difference}; {arguments}"


@pytest.mark.long_with(*OPS_OF_IMAGES)
@pytest.mark.parametrize("backend", installed_backends())
@pytest.mark.parametrize("name", sorted(SPECS))
def test_op_agrees_with_its_reference(backend: str, name: str) -> None:
    @given(data=st.data())  # for each case anew: Hypothesis nests the runs of one function, up to Python's limit
    def check(data: st.DataObject) -> None:
        _check_all_dtypes(backend, name, data)

    check()


def _check_all_dtypes(backend: str, name: str, data: st.DataObject) -> None:
    ember_ml.set_backend(backend)  # not a scope: inside one the hot path does not run
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for dtype in _claimed(backend, name):
            check_call(backend, name, dtype, data)

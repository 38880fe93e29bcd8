"""Every op under ``vmap`` against the loop that ``vmap`` stands for: any of its tensors mapped, along any axis."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends, load
from ember_ml.dispatch.declare import INDEX, MASK, OPS, TENSOR, VALUE
from ember_ml.dispatch.gaps import gap_reason
from tests.reference import as_array, close_stack, is_array, stack_samples
from tests.reference.table import SPECS

LENGTH = 3
CELLS = 8
MAPPED_ROLES = (TENSOR, INDEX, MASK, VALUE)

# The shape of the result depends on the values, which no backend knows of all samples at once.
BY_VALUE = {
    "argpartition",  # the order within a part is nobody's promise
    "digitize",  # whether edges descend
    "lstsq",  # residuals are there by the rank
    *("argwhere", "bincount", "nonzero", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
    "empty_like",
    *("to_numpy", "item", "shape", "ndim", "size", "dtype", "is_tensor", "tolist"),
}
# Elements exchanged or changed alone would leave the domain: definite, triangular or sorted arguments, equal operands.
SCALED = {"cholesky", "solve_triangular", "cho_solve", "searchsorted", "digitize", "histogram", "eigh", "eigvalsh"}


def _mapped_parameters(name: str, arguments: dict[str, Any]) -> list[str]:
    roles = {OPS[name].parameters[index]: role for index, role in OPS[name].roles}
    return [key for key, value in arguments.items() if is_array(value) and roles.get(key) in MAPPED_ROLES]


def _dtypes(backend: str, name: str) -> list[str]:
    admitted = {dtype.name for dtype in OPS[name].rule.domain} & {"float32", "int32", "bool", "complex64"}
    return sorted(dtype for dtype in admitted if not gap_reason(load(backend), name, dtype)) or ["float32"]


def _loop(function: Any, samples: list[list[Any]]) -> list[list[Any]] | None:
    """Return the results of each call as arrays, or None where one raises or the shapes differ."""
    found = []
    for sample in samples:
        try:
            results = function(*map(ops.asarray, sample))
            found.append([ops.to_numpy(result) for result in _parts(results)])
        except (ValueError, TypeError, IndexError, ArithmeticError, NotImplementedError):
            return None
    if any([part.shape for part in one] != [part.shape for part in found[0]] for one in found):
        return None
    return found


def _parts(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]


def _check(backend: str, name: str, dtype: str, data: st.DataObject) -> None:
    arguments = SPECS[name].draw(data.draw, dtype)
    starred = arguments.pop("*", None)
    for key in {"dim_size", "num_segments"} & set(OPS[name].parameters):  # not to be read from mapped indices
        arguments[key] = CELLS if arguments.get(key) is None else arguments[key]
    candidates = _mapped_parameters(name, arguments)
    if starred is not None or not candidates:
        return
    chosen = [key for key in candidates if data.draw(st.booleans())] or [candidates[0]]
    axes = {key: data.draw(st.integers(0, arguments[key].ndim)) if key in chosen else None for key in candidates}
    seed = data.draw(st.integers(0, 2**32 - 1))
    stacked = {key: stack_samples(arguments[key], LENGTH, axes[key], seed, name in SCALED) for key in candidates}
    rest = {key: value for key, value in arguments.items() if key not in candidates}
    rest = {
        key: [ops.asarray(v) if is_array(v) else v for v in value] if isinstance(value, list) else value
        for key, value in rest.items()
    }

    def function(*tensors: Any) -> Any:
        return getattr(ops, name)(**dict(zip(candidates, tensors, strict=True)), **rest)

    samples = [
        [stacked[key] if axes[key] is None else stacked[key].take(i, axes[key]) for key in candidates]
        for i in range(LENGTH)
    ]
    wanted = _loop(function, [[as_array(x) for x in sample] for sample in samples])
    if wanted is None:
        return
    mapped = ops.vmap(function, in_axes=tuple(axes[key] for key in candidates))
    got = _parts(mapped(*(ops.asarray(stacked[key]) for key in candidates)))
    assert len(got) == len(wanted[0])
    for place, result in enumerate(got):
        slack = 0.1 if "normalization" in name else 0.0  # nearly equal elements leave nothing but rounding
        fault = close_stack(ops.to_numpy(result), [one[place] for one in wanted], slack)
        assert fault is None, f"ops.{name} in {dtype} on {backend}, axes {axes}: {fault}; {arguments}"


@pytest.mark.parametrize("backend", installed_backends())
@pytest.mark.parametrize("name", sorted(SPECS.keys() - BY_VALUE))
def test_vmap_agrees_with_the_loop(backend: str, name: str) -> None:
    @settings(max_examples=max(4, settings.default.max_examples // 5))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        _check_all_dtypes(backend, name, data)

    check()


def _check_all_dtypes(backend: str, name: str, data: st.DataObject) -> None:
    ember_ml.set_backend(backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for dtype in _dtypes(backend, name):
            _check(backend, name, dtype, data)

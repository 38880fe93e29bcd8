"""Map random ops over samples, any of their tensors along any axis, and compare with the loop that ``vmap`` stands for.

``python -m tests.fuzz.vmaps mlx 1000 0`` runs 1,000 cases from seed 0 on MLX, each of ``CALLS`` calls of one op with
native or portable tensors. The arguments come from the references of the ops. It prints how many calls were mapped and
compared: those whose loop raises are not, nor those without a tensor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import load
from ember_ml.dispatch.declare import INDEX, MASK, OPS, TENSOR, VALUE
from ember_ml.dispatch.gaps import gap_reason
from ember_ml.nn.tensor import EmberTensor
from tests.fuzz.watchdog import counts, main
from tests.reference import EPS, as_array, close_stack, is_array, largest_finite, stack_samples, widen
from tests.reference.table import SPECS

LENGTH = 3
CELLS = 8
CALLS = 20
"""Calls of a case: to start Hypothesis costs more than a call."""
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


def choose_dtypes(backend: str, name: str) -> list[str]:
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


def _error_of_terms(name: str, arguments: dict[str, Any]) -> float:
    """Return the rounding error of a result that is small beside its terms, by the scale of the op's reference."""
    spec = SPECS[name]
    dtype = next(str(value.dtype) for value in arguments.values() if is_array(value))
    if spec.scale is None or dtype not in EPS:
        return 0.1 if name == "moments_normalization" else 0.0  # nearly equal elements leave nothing but rounding
    scale = spec.scale(**{key: widen(value) for key, value in arguments.items()})
    return 2 * spec.ulps * EPS[dtype] * largest_finite(scale)


def _parts(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]


def check_call(backend: str, name: str, dtype: str, draw: Callable[[Any], Any]) -> str | None:
    """Map one call of an op with random arguments; return how it differs from the loop, or None."""
    arguments = SPECS[name].draw(draw, dtype)
    starred = arguments.pop("*", None)
    for key in {"dim_size", "num_segments"} & set(OPS[name].parameters):  # not to be read from mapped indices
        arguments[key] = CELLS if arguments.get(key) is None else arguments[key]
    candidates = _mapped_parameters(name, arguments)
    if starred is not None or not candidates:
        return None
    chosen = [key for key in candidates if draw(st.booleans())] or [candidates[0]]
    axes = {key: draw(st.integers(0, arguments[key].ndim)) if key in chosen else None for key in candidates}
    seed = draw(st.integers(0, 2**32 - 1))
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
    samples = [[as_array(x) for x in sample] for sample in samples]
    wanted = _loop(function, samples)
    if wanted is None:
        return None
    mapped = ops.vmap(function, in_axes=tuple(axes[key] for key in candidates))
    make = EmberTensor if draw(st.booleans()) else ops.asarray
    got = _parts(mapped(*(make(stacked[key]) for key in candidates)))
    counts["mapped calls"] += 1
    if len(got) != len(wanted[0]):
        return f"{len(got)} results instead of {len(wanted[0])}"
    slack = max(_error_of_terms(name, dict(zip(candidates, sample, strict=True)) | rest) for sample in samples)
    for place, result in enumerate(got):
        fault = close_stack(ops.to_numpy(result), [one[place] for one in wanted], slack)
        if fault is not None:
            return f"ops.{name} in {dtype} on {backend}, {make.__name__}, axes {axes}: {fault}; {arguments}"
    return None


def make_check(backend: str, _mode: str) -> Callable[[int], list[str]]:
    """Return a function that makes the mapped calls of a number, all of one op, and describes what is wrong."""
    ember_ml.set_backend(backend)
    names = sorted(SPECS.keys() - BY_VALUE)

    def check(number: int) -> list[str]:
        name = names[number % len(names)]
        dtypes = choose_dtypes(backend, name)
        faults: list[str] = []

        @seed(number)
        @settings(
            max_examples=CALLS,
            phases=[Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(data=st.data())
        def make_calls(data: st.DataObject) -> None:
            dtype = data.draw(st.sampled_from(dtypes))
            try:
                fault = check_call(backend, name, dtype, data.draw)
            except NotImplementedError:  # a map that the backend says it has not
                return
            if fault is not None:
                faults.append(fault)

        make_calls()
        return faults[:1]

    return check


if __name__ == "__main__":
    sys.exit(main("tests.fuzz.vmaps", make_check, ("eager",)))

"""The gradient of every op, on every backend, against central differences in float64."""

from __future__ import annotations

import random
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends, load
from tests import autodiff
from tests.autodiff.case import CASES, Case, Numbers

for _module in iter_modules(autodiff.__path__):
    if _module.name.startswith("cases"):
        import_module(f"{autodiff.__name__}.{_module.name}")

STEP = 1e-6


def _dtype(kind: str, precision: str) -> str:
    if kind == "complex":
        return "complex128" if precision == "float64" else "complex64"
    return {"int": "int64", "uint32": "uint32"}.get(kind, precision)


def _tensor(x: Any, precision: str, shift: dict[int, Any] | None = None) -> Any:
    if isinstance(x, Numbers):
        made = ops.array(x.nested(shift) if x.values else 0.0, dtype=_dtype(x.kind, precision))
        return made if x.values else ops.zeros(x.shape, dtype=_dtype(x.kind, precision))
    if isinstance(x, list) and any(isinstance(item, Numbers) for item in x):
        return [_tensor(item, precision) for item in x]
    return x


def _variables(case: Case) -> list[tuple[str, int | None, Numbers]]:
    """The tensors by which the case is differentiated: parameter, place in its list, and values."""
    found: list[tuple[str, int | None, Numbers]] = []
    for name in case.wrt:
        value = case.arguments[name]
        if isinstance(value, list):
            found += [(name, place, item) for place, item in enumerate(value)]
        else:
            found.append((name, None, value))
    return found


def _weighted(result: Any) -> Any:
    """One real number made of every float in the result, each with a weight of its own."""
    parts = list(result) if isinstance(result, list | tuple) else [result]
    rng = random.Random(7)
    total: Any = 0.0
    for part in parts:
        dtype = ops.dtype(part)
        if dtype.kind not in ("float", "complex"):
            continue
        size, device = ops.size(part), ops.get_device(part)
        real = ops.array([rng.uniform(0.5, 1.5) for _ in range(size)], dtype=dtype, device=device)
        flat = ops.reshape(part, (size,))
        if dtype.kind == "complex":
            imaginary = ops.array(
                [rng.uniform(0.5, 1.5) for _ in range(size)], dtype=dtype, device=ops.get_device(part)
            )
            total = ops.add(ops.sum(ops.multiply(ops.imag(flat), ops.real(imaginary))), total)
            flat, real = ops.real(flat), ops.real(real)
        total = ops.add(ops.sum(ops.multiply(flat, real)), total)
    return total


def _function(case: Case, precision: str) -> Any:
    """The case as a function of its variables."""
    places = [(name, place) for name, place, _ in _variables(case)]
    fixed = {name: _tensor(value, precision) for name, value in case.arguments.items()}
    call = case.call or getattr(ops, case.op)

    def function(*variables: Any) -> Any:
        arguments = {name: list(value) if isinstance(value, list) else value for name, value in fixed.items()}
        for (name, place), variable in zip(places, variables, strict=True):
            if place is None:
                arguments[name] = variable
            else:
                arguments[name][place] = variable
        starred = arguments.pop("arrays", [])  # of the ops that take any number of tensors
        return _weighted(call(*starred, **arguments))

    return function


def _differences(function: Any, variables: list[Numbers]) -> list[list[Any]]:
    """Central differences of a function of numbers, by every element; complex ones by both parts."""
    found = []
    for place, x in enumerate(variables):
        row = []
        for element in range(len(x.values)):

            def at(step: Any, place: int = place, element: int = element) -> float:
                shifts = [{element: step} if index == place else None for index in range(len(variables))]
                return ops.item(function(*(_tensor(v, "float64", s) for v, s in zip(variables, shifts, strict=True))))

            slope: Any = (at(STEP) - at(-STEP)) / (2 * STEP)
            if x.kind == "complex":
                slope += 1j * (at(1j * STEP) - at(-1j * STEP)) / (2 * STEP)
            row.append(slope)
        found.append(row)
    return found


def _close(got: list[Any], want: list[Any], tolerance: float) -> bool:
    scale = max([1.0, *(abs(value) for value in want)])
    return len(got) == len(want) and all(abs(a - b) <= tolerance * scale for a, b in zip(got, want, strict=True))


def _row(x: Any) -> list[Any]:
    return ops.to_numpy(ops.ravel(x)).tolist()


def _id(case: Case) -> str:
    return f"{case.op}-{case.label}" if case.label else case.op


def _skip(case: Case, backend: str) -> None:
    if backend in case.missing:
        pytest.skip(f"{backend} draws other numbers in float32 than those of the differences; tests of draws have them")


@pytest.fixture(scope="module")
def slopes() -> dict[Any, Any]:
    """The central differences of each case, computed once, on NumPy."""
    return {}


def _wanted(case: Case, slopes: dict[Any, Any], function_of: Any) -> list[list[Any]]:
    """The differences of what ``function_of`` makes of the case."""
    if (id(case), function_of) not in slopes:
        with ember_ml.use_backend("numpy"):
            function = function_of(case, "float64")
            slopes[id(case), function_of] = _differences(function, [x for _, _, x in _variables(case)])
    return slopes[id(case), function_of]


def _precision(backend_name: str) -> str:
    return "float32" if backend_name == "mlx" else "float64"


@pytest.mark.parametrize("case", CASES, ids=_id)
@pytest.mark.parametrize("backend_name", installed_backends())
def test_gradient_agrees_with_differences(case: Case, backend_name: str, slopes: dict[Any, Any]) -> None:
    _skip(case, backend_name)
    wanted = _wanted(case, slopes, _function)
    ember_ml.set_backend(backend_name)
    precision = _precision(backend_name)
    variables = [_tensor(x, precision) for _, _, x in _variables(case)]
    gradients = ops.grad(_function(case, precision), tuple(range(len(variables))))(*variables)
    for got, want, x in zip(gradients, wanted, variables, strict=True):
        assert type(got) is load(backend_name).tensor_type
        assert ops.shape(got) == ops.shape(x)
        assert ops.dtype(got) == ops.dtype(x)
        assert _close(_row(got), want, 1e-3 if precision == "float32" else 1e-6), (_row(got), want)


@pytest.mark.parametrize("case", CASES, ids=_id)
@pytest.mark.parametrize("backend_name", installed_backends())
def test_forward_derivative_agrees_with_differences(case: Case, backend_name: str, slopes: dict[Any, Any]) -> None:
    """The derivative along a direction, against the differences by each element times that direction."""
    _skip(case, backend_name)
    wanted = _wanted(case, slopes, _function)
    ember_ml.set_backend(backend_name)
    precision = _precision(backend_name)
    rng = random.Random(11)
    variables, directions, slope = [], [], 0.0
    for (_, _, x), row in zip(_variables(case), wanted, strict=True):
        along = [complex(rng.uniform(-1, 1), rng.uniform(-1, 1) if x.kind == "complex" else 0.0) for _ in row]
        variable = _tensor(x, precision)
        numbers = along if x.kind == "complex" else [number.real for number in along]
        made = ops.array(numbers, dtype=ops.dtype(variable)) if row else ops.zeros(0, dtype=ops.dtype(variable))
        variables.append(variable)
        directions.append(ops.reshape(made, ops.shape(variable)))
        slope += sum((complex(a).conjugate() * b).real for a, b in zip(row, along, strict=True))
    value, found = ops.jvp(_function(case, precision), tuple(variables), tuple(directions))
    assert ops.dtype(found) == ops.dtype(value)
    scale = max(1.0, *(sum(abs(a) for a in row) for row in wanted))
    assert abs(ops.item(found) - slope) <= (1e-3 if precision == "float32" else 1e-6) * scale, (ops.item(found), slope)


@pytest.mark.parametrize(
    "case", [case for case in CASES if not case.label or case.label in ("matrix", "same")], ids=_id
)
@pytest.mark.parametrize("backend_name", installed_backends())
def test_float32_stays_float32(case: Case, backend_name: str) -> None:
    _skip(case, backend_name)
    if case.op == "cast":
        pytest.skip("the case itself casts")
    ember_ml.set_backend(backend_name)
    variables = [_tensor(x, "float32") for _, _, x in _variables(case)]
    value, gradients = ops.value_and_grad(_function(case, "float32"), tuple(range(len(variables))))(*variables)
    assert ops.dtype(value) == "float32"
    for got, x in zip(gradients, variables, strict=True):
        assert ops.dtype(got) == ops.dtype(x)


@pytest.mark.parametrize("case", [case for case in CASES if case.second], ids=_id)
@pytest.mark.parametrize("backend_name", installed_backends())
def test_second_derivative_agrees_with_differences(case: Case, backend_name: str, slopes: dict[Any, Any]) -> None:
    """The derivative of one number made of the gradient, against differences of that number."""
    _skip(case, backend_name)
    wanted = _wanted(case, slopes, _function_of_gradient)
    ember_ml.set_backend(backend_name)
    precision = _precision(backend_name)
    variables = [_tensor(x, precision) for _, _, x in _variables(case)]
    found = ops.grad(_function_of_gradient(case, precision), tuple(range(len(variables))))(*variables)
    for got, want in zip(found, wanted, strict=True):
        assert _close(_row(got), want, 2e-3 if precision == "float32" else 1e-5), (_row(got), want)


def _function_of_gradient(case: Case, precision: str) -> Any:
    first = ops.grad(_function(case, precision), tuple(range(len(_variables(case)))))
    return lambda *variables: _weighted(first(*variables))

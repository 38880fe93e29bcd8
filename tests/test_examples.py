"""The programs in examples/ run on every backend, and find what they look for."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import ember_ml
from ember_ml import ops

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_a_program_prints_which_backend_computed(name: str, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    ember_ml.set_backend("numpy")
    load(name).main(["--backend", backend, "--steps", "2"])
    assert capsys.readouterr().out.startswith(f"computed by {backend}\n")


@pytest.mark.parametrize("start", [[-1.2, 1.0], [0.0, 0.0], [0.5, 0.8, 0.9, 1.1]])
def test_newton_finds_the_minimum(start: list[float], backend: str) -> None:
    example = load("rosenbrock_newton")
    path = example.newton(example.rosenbrock, ops.array(start), 40)
    value, norm, x = path[-1]
    assert norm < example.TOLERANCE
    assert value < 1e-6
    assert ops.to_numpy(x).tolist() == pytest.approx([1.0] * len(start), abs=1e-4)
    values = [row[0] for row in path]
    assert values == sorted(values, reverse=True)


def test_the_network_comes_to_solve_the_equation(backend: str) -> None:
    example = load("physics_informed")
    x = ops.linspace(0.0, 1.0, 17)
    network, losses = example.train(example.make_network(16), x, 200)
    assert losses[-1] < losses[0] / 50
    error = ops.max(ops.abs(ops.subtract(example.solution(network, x), ops.sin(ops.multiply(3.14159265, x)))))
    assert ops.item(error) < 0.03
    # the derivatives that stand in the loss, against their closed form
    cubes = example.derivative(example.derivative(lambda x: ops.power(x, 3.0)))(x)
    assert ops.to_numpy(cubes).tolist() == pytest.approx([6 * place / 16 for place in range(17)], abs=1e-5)


def test_the_gradient_through_a_training_is_that_of_its_result(backend: str) -> None:
    example = load("bilevel")
    training, validation = example.make_samples(12, seed=5), example.make_samples(50, seed=55)
    path = example.search(training, validation, -1.0, 2, 60)
    assert path[-1]["error"] < path[0]["error"]
    for row in path:
        assert row["gradient"] == pytest.approx(row["exact"], rel=2e-2)

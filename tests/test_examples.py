"""The programs in examples/ run on every backend, and find what they look for."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import ember_ml
from ember_ml import datasets, ops
from ember_ml.backend import installed_backends

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TRAINED = ("character_model", "classifier", "spectrogram", "time_series")
"""The programs that train a model."""


def run(name: str, backend: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a program prints on a backend, as briefly as it can run."""
    load(name).main(["--backend", backend, *(["--quick"] if name in TRAINED else ["--steps", "2"])])
    return capsys.readouterr().out


@pytest.mark.long_with("bilevel")
@pytest.mark.parametrize("name", sorted({path.stem for path in EXAMPLES.glob("*.py")} - {*TRAINED}))
def test_a_program_prints_which_backend_computed(name: str, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    ember_ml.set_backend("numpy")
    assert run(name, backend, capsys).startswith(f"computed by {backend}\n")


@pytest.mark.parametrize("name", TRAINED)
def test_training_prints_the_same_on_every_backend(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for backend in installed_backends():
        first, rest = run(name, backend, capsys).split("\n", 1)
        assert first == f"computed by {backend}"
        printed.append(rest)
    ember_ml.set_backend("numpy")
    number = re.compile(r"\d+\.\d+")
    for other in printed[1:]:
        assert number.split(other) == number.split(printed[0])
        found, wanted = ([float(x) for x in number.findall(text)] for text in (other, printed[0]))
        assert found == pytest.approx(wanted, rel=1e-3, abs=2e-3)  # what is printed is rounded


def test_the_classifier_learns() -> None:
    example = load("classifier")
    training, test = (tuple(part[:300] for part in datasets.digits(name)) for name in ("training", "test"))
    history = example.train(training, test, epochs=8).history
    assert history["val_accuracy"][-1] > 0.6
    assert len(example.show(training[0][0]).splitlines()) == 16


def test_the_character_model_learns_to_write() -> None:
    example = load("character_model")
    text = "one two three four five six seven eight nine ten " * 60
    alphabet = example.Alphabet(text)
    assert alphabet.decode(alphabet.encode("seven")) == "seven"
    x, y = example.samples(alphabet.encode(text))
    assert ops.to_numpy(x[:, 1:]).tolist() == ops.to_numpy(y[:, :-1]).tolist()
    trainer = example.train(alphabet.encode(text), len(alphabet.characters), epochs=30)
    written = alphabet.decode(trainer.model.generate(alphabet.encode("one two thr"), 30, temperature=0.0))
    assert written == text[:41]


def test_the_forecaster_learns() -> None:
    example = load("time_series")
    series = example.make_series(12 * example.WEEK)
    assert abs(ops.item(ops.mean(series))) < 0.5
    history = example.train(series, epochs=4).history
    assert history["loss"].epochs[-1] < 0.6 * history["loss"].epochs[0]


def test_sounds_are_what_their_kinds_say() -> None:
    """The pitch that sounds strongest, early and late in a sound, moves as its kind says."""
    example = load("spectrogram")
    sounds, kinds = example.make_sounds(40, seed=3)
    assert ops.to_numpy(kinds).tolist() == [0, 1, 2, 3] * 10
    power = ops.spectrogram(sounds, 1024, 512, ops.hann_window(1024))
    early, late = (ops.to_numpy(ops.argmax(power[:, place, 20:], -1)).tolist() for place in (1, -2))
    assert all(b > a for a, b in zip(early[1::4], late[1::4], strict=True))
    assert all(b < a for a, b in zip(early[2::4], late[2::4], strict=True))
    assert sum(abs(b - a) <= 2 for a, b in zip(early[0::4], late[0::4], strict=True)) >= 9


def test_the_classifier_of_sounds_learns() -> None:
    example = load("spectrogram")
    history = example.train(example.make_sounds(160, 1), example.make_sounds(40, 2), epochs=6).history
    assert history["val_accuracy"][-1] > 0.5


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


@pytest.mark.long_with("torch")
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


@pytest.mark.long_with("mlx")
def test_the_gradient_through_a_training_is_that_of_its_result(backend: str) -> None:
    example = load("bilevel")
    training, validation = example.make_samples(12, seed=5), example.make_samples(50, seed=55)
    path = example.search(training, validation, -1.0, 2, 60)
    assert path[-1]["error"] < path[0]["error"]
    for row in path:
        assert row["gradient"] == pytest.approx(row["exact"], rel=2e-2)

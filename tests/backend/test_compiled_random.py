"""Random numbers inside functions that a library compiles: the same bits, and a stream that goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.backend.random.generator import TracedGenerator, streaming
from ember_ml.errors import UnsupportedOp
from tests.ops.test_random import DRAWS, FEWER
from tests.reference.randomness import same_bits, ulps_apart

# the compiler of PyTorch uses what PyTorch itself has deprecated
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SHAPE = (33, 77)
ON_DEVICE = DRAWS | {
    name: FEWER[name]
    for name in ("permutation", "choice without repetition", "weighted choice", "categorical", "dropout")
}
ROUNDED = ("normal", "exponential", "laplace", "gumbel")
"""Parts of the names of those that compilers may round otherwise."""
# a trace takes seconds: the others are for the long run
FEW = ("uniform between bounds", "bernoulli", "many integers", "normal", "permutation", "choice by probability")


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    before = ember_ml.get_backend()
    ember_ml.set_backend("torch")
    yield module
    module.compiler.reset()
    ember_ml.set_backend(before)


@pytest.fixture
def mx() -> Any:
    module = pytest.importorskip("mlx.core")
    before = ember_ml.get_backend()
    ember_ml.set_backend("mlx")
    yield module
    ember_ml.set_backend(before)


def _all(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda seed: tuple(ON_DEVICE[name](SHAPE, seed) for name in names)


def _eager(names: list[str], seed: Any) -> dict[str, Any]:
    """What NumPy gives outside of any compiled function."""
    with ember_ml.use_backend("numpy"):
        return {name: ops.to_numpy(ON_DEVICE[name](SHAPE, seed)) for name in names}


def _check(names: list[str], got: tuple[Any, ...], seed: Any) -> None:
    for (name, want), result in zip(_eager(names, seed).items(), got, strict=True):
        result = ops.to_numpy(result)
        if any(part in name for part in ROUNDED):
            assert ulps_apart(result, want) <= 5, name
        else:
            assert same_bits(result, want), name


@pytest.mark.parametrize("name", FEW)
def test_torch_traces_it_whole(torch: Any, name: str) -> None:
    compiled = torch.compile(_all([name]), fullgraph=True, backend="eager")
    _check([name], compiled(17), 17)


def test_torch_compiles_what_needs_a_constant_several_times(torch: Any) -> None:
    def draw(seed: int) -> tuple[Any, ...]:
        return tuple(ops.random_uniform(3, -1.0, bound, seed=seed) for bound in (1.0, 1.0, 2.0))

    for got, want in zip(torch.compile(draw, fullgraph=True, backend="aot_eager")(17), draw(17), strict=True):
        assert same_bits(ops.to_numpy(got), ops.to_numpy(want))


@pytest.mark.long
@pytest.mark.parametrize("name", ON_DEVICE)
def test_torch_compiles_it_to_the_same_bits(torch: Any, name: str) -> None:
    compiled = torch.compile(_all([name]), fullgraph=True)
    _check([name], compiled(17), 17)
    of_state = torch.compile(lambda words: _all([name])(TracedGenerator(words)), fullgraph=True)
    words = torch.tensor(ops.Generator(17).words())
    _check([name], of_state(words), 17)


def test_mlx_compiles_words_to_the_same_bits(mx: Any) -> None:
    words = mx.array(ops.Generator(17).words(), dtype=mx.uint32)
    names = ["uniform", "bernoulli", "integers", "permutation"]
    draw = _all(names)

    def function(words: Any) -> list[Any]:
        # each with the first key of the stream
        return [ON_DEVICE[name](SHAPE, TracedGenerator(words)) for name in names]

    _check(names, tuple(mx.compile(function)(words)), 17)
    _check(names, tuple(mx.compile(lambda: list(draw(17)))()), 17)


@pytest.mark.long
@pytest.mark.parametrize("name", ON_DEVICE)
def test_mlx_compiles_it_to_the_same_bits(mx: Any, name: str) -> None:
    words = mx.array(ops.Generator(17).words(), dtype=mx.uint32)
    compiled = mx.compile(lambda words: _all([name])(TracedGenerator(words))[0])
    _check([name], (compiled(words),), 17)


# JAX 0.10: contracts the product and the sum of other bounds than 0 and 1, and those of formulas
OF_JAX = [name for name in ON_DEVICE if not any(part in name for part in (*ROUNDED, "bounds"))]


def test_jax_compiles_it_to_the_same_bits() -> None:
    """With the optimization that users get, which the other tests leave out."""
    pytest.importorskip("jax")
    program = (
        "import sys, ember_ml\n"
        "from tests.backend import test_compiled_random as tests\n"
        "ember_ml.set_backend('jax')\n"
        "for name in tests.OF_JAX:\n"
        "    tests.ops.seed(17)\n"
        "    compiled = ember_ml.compile(lambda: tests.ON_DEVICE[name](tests.SHAPE, None))\n"
        "    tests._check([name], (compiled(),), 17)\n"
        "    print(name)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | {"XLA_FLAGS": ""}, capture_output=True, text=True, check=False
    )
    assert run.stdout.splitlines() == OF_JAX, run.stderr
    assert {"uniform", "uniform float64", "integers", "bernoulli", "permutation", "choice", "dropout"} <= {*OF_JAX}


def _three_draws(x: Any, seed: Any = None) -> tuple[Any, ...]:
    first = ops.dropout(x, 0.5, seed)
    ops.random_uniform(3, seed=seed)  # its result is not used, but it is a draw
    return first, ops.random_normal(5, seed=seed), ops.random_integers((2, 3), 0, 1000, seed=seed)


def _values(results: Any) -> list[Any]:
    return [ops.to_numpy(result).tolist() for result in results]


@pytest.mark.long
@pytest.mark.parametrize("compiler", ["aot_eager", "inductor"])
def test_stream_of_the_process_goes_on_in_a_function_of_torch(torch: Any, compiler: str) -> None:
    x = torch.ones(8)
    ops.seed(31)
    want = [_values(_three_draws(x)) for _ in range(3)]
    compiled = torch.compile(_three_draws, fullgraph=True, backend=compiler)
    ops.seed(31)
    assert [_values(compiled(x)) for _ in range(3)] == want
    with streaming(ops.Generator(31)):
        assert [_values(compiled(x)) for _ in range(3)] == want
    generator = ops.Generator(31)
    assert [_values(compiled(x, generator)) for _ in range(3)] == want


@pytest.mark.parametrize("compiler", ["aot_eager", pytest.param("inductor", marks=pytest.mark.long)])
def test_torch_differentiates_dropout_in_a_compiled_function(torch: Any, compiler: str) -> None:
    compiled = torch.compile(lambda x: ops.sum(ops.square(ops.dropout(x, 0.5))), fullgraph=True, backend=compiler)
    for draw in range(2):
        generator = ops.Generator(8)
        generator.skip(draw)
        ops.seed(generator)
        x = torch.arange(1.0, 21.0, requires_grad=True)
        compiled(x).backward()
        generator = ops.Generator(8)
        generator.skip(draw)
        kept = ops.dropout(torch.ones(20), 0.5, generator)
        assert torch.equal(x.grad, 2.0 * kept * kept * x.detach())


def test_streaming_carries_a_stream_through_a_function_of_mlx(mx: Any) -> None:
    drawn: list[int] = []

    def carried(words: Any, x: Any) -> Any:
        with streaming(TracedGenerator(words)) as stream:
            result = _three_draws(x)
        drawn.append(stream.drawn)
        return result

    compiled = mx.compile(carried)
    x = mx.ones(8)
    ops.seed(31)
    want = [_values(_three_draws(x)) for _ in range(3)]
    generator = ops.Generator(31)
    for expected in want:
        words = mx.array(generator.words(), dtype=mx.uint32)
        got = [ops.to_numpy(result) for result in compiled(words, x)]
        generator.skip(drawn[0])
        assert got[0].tolist() == expected[0]
        assert got[1] == pytest.approx(expected[1], rel=1e-6)
        assert got[2].tolist() == expected[2]
    assert drawn == [4]  # traced once


def test_integer_seed_is_a_constant_in_a_compiled_function(torch: Any) -> None:
    compiled = torch.compile(lambda: ops.random_uniform(4, seed=3), fullgraph=True, backend="eager")
    assert compiled().tolist() == compiled().tolist() == ops.random_uniform(4, seed=3).tolist()


@pytest.mark.parametrize("name", ["gamma", "beta", "poisson", "binomial"])
def test_rejection_says_that_it_cannot_be_compiled(torch: Any, mx: Any, name: str) -> None:
    words = mx.array(ops.Generator(17).words(), dtype=mx.uint32)
    with pytest.raises(UnsupportedOp, match="outside of it"):
        mx.compile(lambda words: FEWER[name](SHAPE, TracedGenerator(words)))(words)
    ember_ml.set_backend("torch")
    compiled = torch.compile(lambda: FEWER[name](SHAPE, 1), fullgraph=True, backend="eager")
    with pytest.raises(Exception, match="outside of it"):
        compiled()

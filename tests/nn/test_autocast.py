"""Autocast: in which dtype ops compute inside the block, on every backend, eager and compiled, forward and backward."""

from __future__ import annotations

import operator
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import selection
from ember_ml.dispatch.autocast_policy import HALF, POLICIES, TABLE, WIDE
from ember_ml.dispatch.declare import OPS
from ember_ml.training import optimizers
from tests.nn.layer_cases import CASES

HALVES = ("bfloat16", "float16")
ROOT = Path(__file__).parents[2]


def name_of(x: Any) -> str:
    return str(ops.dtype(x))


def test_the_table_names_each_op_once_and_none_that_is_not() -> None:
    names = [name for entry in TABLE for name in entry.ops]
    assert len(names) == len(set(names)) == len(POLICIES)
    assert set(names) <= {op.name for op in OPS.values() if not op.is_plain}
    assert {POLICIES[name] for name in ("matmul", "conv", "dot_product_attention")} == {HALF}
    # what does not compute in half precision at all is given float32
    cannot = {op.name for op in OPS.values() if op.roles and op.rule.promotes and not op.rule.domain & {"float16"}}
    floats = {name for name in cannot if any(d.kind == "float" for d in OPS[name].rule.domain)}
    assert {name for name in floats if POLICIES.get(name) != WIDE} == set()


def test_the_documented_table_is_the_table() -> None:
    text = (ROOT / "docs" / "training.md").read_text()
    rows = re.findall(r"^\| (half|float32|widest) \| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    found = [(policy, subject, tuple(re.findall(r"`(\w+)`", names))) for policy, subject, names in rows]
    assert found == [tuple(entry) for entry in TABLE]


@pytest.mark.parametrize("half", HALVES)
def test_each_policy_gives_its_dtype(backend: str, half: str) -> None:
    x, h = ops.ones((2, 2)), ops.cast(ops.ones((2, 2)), half)
    with ember_ml.autocast(half):
        for a, b in ((x, x), (x, h), (h, h)):
            assert name_of(ops.matmul(a, b)) == name_of(ops.einsum("ij,jk->ik", a, b)) == half
            assert name_of(ops.linear(a, b, ops.ones((2,)))) == half
            assert name_of(ops.softmax(a)) == name_of(ops.sum(a)) == name_of(ops.exp(a)) == "float32"
            assert name_of(ops.power(a, 2)) == name_of(ops.mean_squared_error(a, b)) == "float32"
            assert name_of(ops.inv(ops.add(a, ops.eye(2)))) == "float32"
            promoted = half if a is h is b else "float32"
            assert (
                name_of(ops.add(a, b)) == name_of(ops.tensordot(a, b)) == name_of(ops.concatenate([a, b])) == promoted
            )
            assert name_of(ops.relu(a)) == name_of(ops.gelu(a)) == name_of(a)
    assert name_of(ops.matmul(x, x)) == name_of(ops.softmax(x)) == "float32"
    assert name_of(ops.softmax(h)) == half


def test_other_dtypes_are_left_alone(backend: str) -> None:
    integers = ops.array([[1, 2], [3, 4]])
    with ember_ml.autocast("bfloat16"):
        assert name_of(ops.matmul(integers, integers)) == name_of(ops.sum(integers)) == name_of(integers)
        assert ops.to_numpy(ops.matmul(integers, integers)).tolist() == [[7, 10], [15, 22]]
        if "float64" in {str(dtype) for dtype in ember_ml.backend.selection.active().dtypes}:
            wide = ops.ones((2, 2), dtype="float64")
            assert name_of(ops.matmul(wide, wide)) == name_of(ops.matmul(wide, ops.ones((2, 2)))) == "float64"
            assert name_of(ops.exp(wide)) == "float64"
        assert name_of(ops.matmul(ops.ones((2, 2), dtype="complex64"), ops.ones((2, 2)))) == "complex64"


def test_portable_tensors_and_python_data_are_cast_too(backend: str) -> None:
    x = nn.tensor.ones((2, 2))
    with ember_ml.autocast("bfloat16"):
        half = operator.matmul(x, x)
        assert name_of(half) == name_of(ops.matmul(x, [[1.0, 2.0], [3.0, 4.0]])) == "bfloat16"
        assert name_of(operator.pow(half, 2)) == name_of(ops.sum(half)) == name_of(operator.add(half, x)) == "float32"
    assert name_of(operator.matmul(x, x)) == name_of(operator.pow(x, 2)) == "float32"
    assert name_of(operator.pow(half, 2)) == "bfloat16"


def test_blocks_nest_switch_off_and_decorate(backend: str) -> None:
    x = ops.ones((2, 2))

    @ember_ml.autocast("float16")
    def product() -> str:
        return name_of(ops.matmul(x, x))

    with ember_ml.autocast("bfloat16"):
        with ember_ml.autocast(None):
            assert name_of(ops.matmul(x, x)) == "float32"
        assert product() == "float16"
        assert name_of(ops.matmul(x, x)) == "bfloat16"
        with pytest.raises(ZeroDivisionError), ember_ml.autocast("float16"):
            1 / 0  # noqa: B018
        assert name_of(ops.matmul(x, x)) == "bfloat16"
    assert product() == product() == "float16"
    assert selection.half_here() is None
    assert not selection.has_scopes
    for wrong in ("float32", "int8"):
        with pytest.raises(ValueError, match=f"bfloat16 or float16, not {wrong}"):
            ember_ml.autocast(wrong)


def test_the_block_is_of_its_thread_and_follows_a_switch_of_the_backend(backend: str) -> None:
    found: list[str] = []
    other = "numpy" if backend != "numpy" else "torch"
    with ember_ml.autocast("bfloat16"):
        thread = threading.Thread(target=lambda: found.append(name_of(ops.matmul(ops.ones((2, 2)), ops.ones((2, 2))))))
        thread.start()
        thread.join()
        layer = nn.Linear(2, 2)
        if other in ember_ml.backend.installed_backends():
            with ember_ml.use_backend(other):
                assert name_of(layer(ops.ones((2, 2)))) == "bfloat16"
            ember_ml.set_backend(other)
            assert ember_ml.get_backend() == other
            assert name_of(layer(ops.ones((2, 2)))) == "bfloat16"
            ember_ml.set_backend(backend)
        assert name_of(layer(ops.ones((2, 2)))) == "bfloat16"
        assert layer.weight.dtype == ops.ones(1).dtype
    assert found == ["float32"]


class LoRA(nn.Module):
    """A frozen layer, a low-rank change of it, a buffer and a constant."""

    def __init__(self) -> None:
        self.base = nn.Linear(8, 8).freeze()
        self.down, self.up = nn.Parameter(ops.random_normal((2, 8), seed=1)), nn.Parameter(ops.zeros((8, 2)))
        self.table = nn.Buffer(ops.linspace(0.0, 3.0, 8))

    def forward(self, x: Any) -> Any:
        x = ops.multiply(ops.add(x, self.table), ops.linspace(0.5, 1.0, 8))
        return ops.add(self.base(x), ops.linear(ops.linear(x, self.down), self.up))


@pytest.mark.parametrize("half", HALVES)
def test_own_loops_train_beside_frozen_weights_buffers_and_constants(backend: str, half: str) -> None:
    def train(dtype: str | None) -> list[float]:
        ops.random.seed(0)
        model, optimizer = LoRA(), optimizers.SGD(0.01)
        x, y = ops.random_normal((16, 8), seed=2), ops.random_normal((16, 8), seed=3)
        frozen = ops.to_numpy(model.base.weight).tolist()

        def loss_of(x: Any, y: Any) -> Any:
            with ember_ml.autocast(dtype):
                return ops.mean(ops.mean_squared_error(y, model(x)))

        step, losses = nn.value_and_grad(model, loss_of), []
        for _ in range(12):
            loss, gradients = step(x, y)
            assert gradients.keys() == {"down", "up"}
            assert {name_of(g) for g in gradients.values()} == {"float32"}
            with ember_ml.autocast(dtype):  # which the update must not see
                optimizer.update(model, gradients)
            losses.append(ops.item(loss))
        assert ops.to_numpy(model.base.weight).tolist() == frozen
        return losses

    wanted, found = train(None), train(half)
    assert wanted[-1] < wanted[0]
    assert found == pytest.approx(wanted, rel=0.02)
    assert found != wanted


SEQUENCES: dict[str, Callable[[], nn.Module]] = {
    "RNN": lambda: nn.RNN(4, 3),
    "GRU": lambda: nn.GRU(4, 3, bidirectional=True),
    "LSTM": lambda: nn.LSTM(4, 3, layers=2),
    "Attention": lambda: nn.Attention(4, 2),
    "TransformerBlock": lambda: nn.blocks.TransformerBlock(4, 2),
}


@pytest.mark.parametrize("name", [*CASES, *SEQUENCES])
def test_every_layer_computes_and_differentiates(backend: str, name: str) -> None:
    ops.random.seed(0)
    if name in CASES:
        model, x = CASES[name].given(), ops.asarray(CASES[name].input())
    else:
        model, x = SEQUENCES[name](), ops.random_normal((2, 5, 4), seed=1)

    def loss_of(x: Any, dtype: str | None) -> Any:
        with ember_ml.autocast(dtype):
            return ops.mean(ops.square(ops.sin(model(x))))

    wanted = ops.item(loss_of(x, None))
    assert ops.item(loss_of(x, "bfloat16")) == pytest.approx(wanted, rel=0.1, abs=0.02)
    if model.trainable():
        _, gradients = nn.value_and_grad(model, loss_of)(x, "bfloat16")
        _, exact = nn.value_and_grad(model, loss_of)(x, None)
        assert {name_of(g) for g in gradients.values()} == {"float32"}
        scale = max(float(abs(ops.to_numpy(g)).max()) for g in exact.values())
        for key, g in exact.items():
            assert ops.to_numpy(gradients[key]) == pytest.approx(ops.to_numpy(g), abs=0.1 * scale + 1e-3), key


@pytest.mark.parametrize("is_inside", [True, False])
def test_a_program_is_traced_once_and_has_its_own_precision(backend: str, is_inside: bool) -> None:
    ops.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), ops.gelu, nn.Linear(8, 2))
    x = ops.random_normal((3, 4), seed=1)
    runs: list[int] = []

    def compute(x: Any) -> Any:
        runs.append(1)
        if is_inside:
            with ember_ml.autocast("bfloat16"):
                return model(x), ops.softmax(model(x))
        return model(x), ops.softmax(model(x))

    program = ember_ml.compile(compute)
    for _ in range(3):
        with ember_ml.autocast(None if is_inside else "bfloat16"):
            found = program(x)
        assert [name_of(part) for part in found] == ["bfloat16", "float32"]
        assert not selection.has_scopes
    if backend in ("mlx", "jax"):  # which run Python once; PyTorch reads its code
        assert len(runs) == 1
    outside = program(x)
    assert [name_of(part) for part in outside] == (["bfloat16", "float32"] if is_inside else ["float32", "float32"])
    with ember_ml.autocast("bfloat16"):
        exact = model(x)
    assert ops.to_numpy(ops.cast(found[0], "float32")) == pytest.approx(
        ops.to_numpy(ops.cast(exact, "float32")), abs=0.05
    )


def test_what_is_computed_again_is_computed_in_the_same_dtype(backend: str) -> None:
    ops.random.seed(0)
    model = nn.Linear(4, 4)
    seen: list[str] = []

    def block(x: Any) -> Any:
        y = model(ops.tanh(model(x)))
        seen.append(name_of(y))
        return y

    def loss_of(x: Any, again: bool) -> Any:
        with ember_ml.autocast("bfloat16"):
            y = (ember_ml.checkpoint(block) if again else block)(x)
        return ops.sum(ops.cast(y, "float32"))

    x = ops.random_normal((3, 4), seed=1)
    _, wanted = nn.value_and_grad(model, loss_of)(x, False)
    _, found = nn.value_and_grad(model, loss_of)(x, True)
    assert set(seen) == {"bfloat16"}
    for name, g in wanted.items():
        assert ops.to_numpy(found[name]) == pytest.approx(ops.to_numpy(g), rel=1e-2, abs=1e-2)


def test_a_gradient_of_its_own_sees_the_block_of_its_forward_pass(backend: str) -> None:
    seen: list[str] = []

    @ember_ml.custom_gradient
    def product(x: Any) -> Any:
        y = ops.matmul(x, x)
        seen.append(name_of(y))

        def rule(g: Any) -> Any:
            seen.append(name_of(ops.matmul(ops.ones((2, 2)), ops.ones((2, 2)))))
            return ops.cast(g, "float32")

        return y, rule

    def f(x: Any) -> Any:
        with ember_ml.autocast("bfloat16"):
            y = product(x)
        return ops.sum(ops.cast(y, "float32"))

    assert name_of(ember_ml.grad(f)(ops.ones((2, 2)))) == "float32"
    assert set(seen) == {"bfloat16"}


def test_second_gradients_go_through(backend: str) -> None:
    def f(x: Any) -> Any:
        with ember_ml.autocast("bfloat16"):
            return ops.sum(ops.power(ops.matmul(x, x), 2.0))

    x = ops.array([[1.0, 0.5], [0.25, 2.0]])
    g = ember_ml.grad(lambda x: ops.sum(ember_ml.grad(f)(x)))(x)
    exact = ember_ml.grad(lambda x: ops.sum(ember_ml.grad(lambda x: ops.sum(ops.power(ops.matmul(x, x), 2.0)))(x)))(x)
    assert name_of(g) == "float32"
    assert ops.to_numpy(g) == pytest.approx(ops.to_numpy(exact), rel=0.05)

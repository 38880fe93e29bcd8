"""What JAX compiles: one program for each shape, the same random numbers, errors that say what to do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy
import pytest
from scipy import linalg

import ember_ml
from ember_ml import nn, ops
from ember_ml.errors import UnsupportedOp
from ember_ml.training import Trainer, optimizers
from tests.ops.test_random import DRAWS
from tests.reference.randomness import same_bits
from tests.subnormals import keeps_subnormals


@pytest.fixture(autouse=True)
def jax() -> Iterator[Any]:
    module = pytest.importorskip("jax")
    before = ember_ml.get_backend()
    ember_ml.set_backend("jax")
    yield module
    ember_ml.set_backend(before)


@pytest.mark.parametrize("form", ["if", "item", "int", "index", "portable"])
def test_python_cannot_decide_by_a_traced_value(form: str) -> None:
    def f(x: Any) -> Any:
        if form == "if":
            return x if ops.sum(x) > 0 else -x
        if form == "item":
            return x * ops.item(ops.sum(x))
        if form == "int":
            return x * int(ops.cast(ops.sum(x), "int64"))
        if form == "index":
            return [1.0, 2.0, 3.0][ops.cast(ops.sum(x), "int64")]
        return x if ember_ml.EmberTensor(ops.sum(x)) > 0 else -x

    with pytest.raises(UnsupportedOp, match=r"ops\.where or ops\.cond.*compile=False"):
        ember_ml.compile(f)(ops.ones(2))


def test_the_tenth_shape_is_told() -> None:
    @ember_ml.compile
    def double(x: Any) -> Any:
        return x + x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for length in (*range(1, 10), 3, 5):
            double(ops.ones(length))
    with pytest.warns(UserWarning, match="double is compiled for the 10th shape"):
        double(ops.ones(10))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_subnormal_numbers_are_what_the_note_says(dtype: str) -> None:
    least = numpy.array([numpy.finfo(dtype).smallest_normal, numpy.finfo(dtype).smallest_subnormal])
    assert ops.to_numpy(ops.multiply(ops.asarray(least), 1.0)).tolist() == [least[0], 0.0]
    assert not keeps_subnormals("jax")


@pytest.mark.parametrize("name", ["uniform float64", "bernoulli", "many integers"])
def test_random_numbers_are_those_of_numpy_and_the_stream_goes_on(name: str) -> None:
    compiled = ember_ml.compile(lambda: DRAWS[name]((3, 5), None))
    ops.seed(11)
    found = [ops.to_numpy(compiled()) for _ in range(3)]
    with ember_ml.use_backend("numpy"):
        ops.seed(11)
        wanted = [ops.to_numpy(DRAWS[name]((3, 5), None)) for _ in range(3)]
    assert all(same_bits(x, y) for x, y in zip(found, wanted, strict=True))


def test_a_function_that_draws_for_some_shapes_only() -> None:
    compiled = ember_ml.compile(lambda x: x + ops.random_uniform(ops.shape(x)) if ops.size(x) > 2 else x)
    ops.seed(5)
    assert ops.to_numpy(compiled(ops.zeros(2))).tolist() == [0.0, 0.0]
    first, second = (ops.to_numpy(compiled(ops.zeros(3))).tolist() for _ in range(2))
    ops.seed(5)
    assert [first, second] == [ops.to_numpy(ops.random_uniform(3)).tolist() for _ in range(2)]


def test_a_step_of_training_is_one_program_whose_memory_is_used_again(jax: Any) -> None:
    x, y = ops.random_normal((16, 4), seed=1), ops.ones((16, 1))
    ops.random.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), ops.tanh, nn.Linear(8, 1))
    kept, held = model.state_dict(), model.current_tensors()
    copies = {name: ops.to_numpy(value).copy() for name, value in kept.items()}
    trainer = Trainer(model, optimizers.Adam(0.01), progress=False)
    losses = trainer.fit(x, y, epochs=3, batch_size=8)["loss"]
    (program,) = trainer._step._compiled_update.programs.values()
    assert program.traced == 1
    assert all(array.is_deleted() for array in held.values())
    assert all((ops.to_numpy(kept[name]) == copies[name]).all() for name in kept)
    ops.random.seed(0)
    again = Trainer(model.load_state_dict(kept), optimizers.Adam(0.01), compile=False, progress=False)
    assert again.fit(x, y, epochs=3, batch_size=8)["loss"] == pytest.approx(losses, rel=1e-5)


@pytest.mark.parametrize(
    ("fits", "changes"),
    [
        (True, {}),
        (True, {"is_causal": False, "keys": 5}),
        (True, {"dtype": "float16", "groups": 2}),
        (False, {"dtype": "float32"}),
        (False, {"keys": 9}),
        (False, {"width": 12}),
        (False, {"width": 256}),
        (False, {"device": "cpu"}),
        (False, {"mask": True}),
        (False, {"keys": 0, "is_causal": False}),
    ],
)
def test_cudnn_attends_where_it_fits(monkeypatch: pytest.MonkeyPatch, fits: bool, changes: dict[str, Any]) -> None:
    from ember_ml.backend.jax.bodies import attention

    case = {"dtype": "bfloat16", "width": 64, "keys": 8, "groups": 4, "is_causal": True, "device": "cuda:0", **changes}
    asked: list[bool] = []
    monkeypatch.setattr(attention, "device_of", lambda x: case["device"])
    monkeypatch.setattr(attention, "_has_cudnn", lambda: True)
    monkeypatch.setattr(attention, "_by_cudnn", lambda *args: asked.append(True) or attention._by_formula(*args))
    query = ops.ones((2, 8, 4, case["width"]), dtype=case["dtype"])
    key = ops.ones((2, case["keys"], case["groups"], case["width"]), dtype=case["dtype"])
    mask = ops.ones((8, 8), dtype="bool") if "mask" in changes else None
    found = ops.dot_product_attention(query, key, key, mask=mask, is_causal=case["is_causal"])
    assert bool(asked) == fits
    assert (ops.to_numpy(ops.cast(found, "float32")) == (case["keys"] > 0)).all()  # a mean of ones


def test_numbers_that_were_made_before_are_told_by_sign_and_made_anew_once_deleted() -> None:
    x = ops.array([-0.0, 0.5])
    assert numpy.signbit(ops.to_numpy(ops.where(x > 0.3, x, -0.0))).tolist() == [True, False]
    assert numpy.signbit(ops.to_numpy(ops.where(x > 0.3, x, 0.0))).tolist() == [False, False]
    for _ in range(2):
        found = ops.positive(0.375)
        assert ops.to_numpy(ops.clip(x, 0.375, 1)).tolist() == [0.375, 0.5]
        found.delete()


def test_cudnn_does_not_push_tangents(monkeypatch: pytest.MonkeyPatch) -> None:
    from ember_ml.backend.jax.bodies import attention

    monkeypatch.setattr(attention, "device_of", lambda x: "cuda:0")
    monkeypatch.setattr(attention, "_has_cudnn", lambda: True)
    monkeypatch.setattr(attention, "_by_cudnn", None)
    x = ops.ones((1, 2, 1, 8), dtype="bfloat16")
    _, tangent = ops.jvp(lambda x: ops.dot_product_attention(x, x, x), (x,), (x,))
    assert (ops.to_numpy(ops.cast(tangent, "float32")) == 1.0).all()  # the weights sum to 1, and all values are equal


def test_solvers_compile_and_say_that_their_loops_have_no_gradient() -> None:
    rng = numpy.random.default_rng(0)
    root, b = rng.normal(size=(4, 4)), rng.normal(size=4)
    matrix = root @ root.T + 4 * numpy.eye(4)
    solve = ember_ml.compile(lambda A, b: ops.conjugate_gradient(A, b, tol=1e-12).x)
    A, right = ops.asarray(matrix), ops.asarray(b)
    assert ops.to_numpy(solve(A, right)) == pytest.approx(linalg.solve(matrix, b), rel=1e-10)
    with pytest.raises(UnsupportedOp, match="fixed number of steps"):
        ops.grad(lambda b: ops.sum(solve(A, b)))(right)

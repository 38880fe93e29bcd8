"""Looking inside a model: the NaN locator, the profile, the summary of a forward pass, on every backend."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import selection
from ember_ml.errors import NaNFound
from ember_ml.tensor import EmberTensor
from ember_ml.training import Trainer, optimizers

NAN = float("nan")


class Root(nn.Module):
    def forward(self, x: Any) -> Any:
        return ops.sqrt(ops.subtract(x, 1.0))


def model() -> nn.Sequential:
    """The root of 2 x - 1, times 3: NaN below one half, and an infinite slope there."""
    inner = nn.Sequential(nn.Identity(), Root())
    made = nn.Sequential(nn.Linear(1, 1, bias=False), inner, nn.Linear(1, 1, bias=False))
    return made.load_state_dict({"0.weight": [[2.0]], "2.weight": [[3.0]]})


def loss_of(made: nn.Module) -> Any:
    return lambda x: ops.sum(made(x))


# NaN


def test_the_forward_pass_names_layer_and_op(backend: str) -> None:
    made = model()
    with pytest.raises(NaNFound) as caught, ember_ml.find_nan(made):
        made(ops.array([[2.0], [0.25]]))
    found = caught.value
    assert (found.phase, found.layer, found.op) == ("forward", "1.1", "sqrt")
    assert str(found) == "forward: ops.sqrt in 1.1 (Root) gave NaN in 1 of 2 elements; x: float32(2, 1) from -0.5 to 3"
    assert isinstance(found, FloatingPointError)


def test_the_backward_pass_names_layer_and_op(backend: str) -> None:
    made = model()
    step = nn.value_and_grad(made, loss_of(made))
    step(ops.array([[0.5]]))  # says nothing
    with pytest.raises(NaNFound) as caught, ember_ml.find_nan(made):
        step(ops.array([[2.0], [0.5]]))
    found = caught.value
    assert (found.phase, found.layer, found.op) == ("backward", "1.1", "sqrt")
    assert "by x is not finite in 1 of 2 elements; x: float32(2, 1) from 0 to 3" in str(found)
    with ember_ml.find_nan(made, backward=False):
        step(ops.array([[0.5]]))


def test_finite_steps_pass_and_are_the_same(backend: str) -> None:
    made = model()
    step = nn.value_and_grad(made, loss_of(made))
    x = ops.array([[1.0], [2.0]])
    value, gradients = step(x)
    with ember_ml.find_nan(made):
        watched, found = step(x)
    assert ops.item(watched) == pytest.approx(ops.item(value), rel=1e-6)
    for name, gradient in gradients.items():
        assert ops.item(found[name]) == pytest.approx(ops.item(gradient), rel=1e-6)
    assert not selection.has_scopes
    assert all("forward" not in vars(module) for _, module in made.named_modules())


def test_nan_that_was_there_before_is_named(backend: str) -> None:
    made = model()
    with pytest.raises(NaNFound, match=r"ops\.linear in 0 \(Linear\) was given NaN in x") as caught:  # noqa: SIM117
        with ember_ml.find_nan(made):
            made(ops.array([[NAN]]))
    assert caught.value.layer == "0"
    made[2].weight = ops.array([[NAN]])
    with pytest.raises(NaNFound, match=r"^2\.weight has NaN in 1 of 1 elements before") as caught:  # noqa: SIM117
        with ember_ml.find_nan(made):
            pass
    assert (caught.value.phase, caught.value.layer) == ("before", "2")


def test_ops_outside_of_the_model_are_named(backend: str) -> None:
    made = model()
    with pytest.raises(NaNFound, match=r"ops\.log outside of the model gave NaN") as caught, ember_ml.find_nan(made):
        ops.log(ops.array([-1.0]))
    assert caught.value.layer is None


def test_nan_that_no_op_gave_names_the_layer(backend: str) -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            return EmberTensor([NAN])

    made = nn.Sequential(Broken())
    with pytest.raises(NaNFound, match=r"^forward: 0 \(Broken\) gave NaN in 1 elements, and no op did"):  # noqa: SIM117
        with ember_ml.find_nan(made):
            made(ops.ones(1))


def test_gradients_that_no_op_gave_are_named_where_they_come_in(backend: str) -> None:
    @ember_ml.custom_gradient
    def broken(x: Any) -> Any:
        return ops.multiply(x, 2.0), lambda upstream: ops.multiply(upstream, NAN)

    made = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    with pytest.raises(NaNFound) as caught, ember_ml.find_nan(made):
        nn.value_and_grad(made, lambda x: ops.sum(broken(made(x))))(ops.ones((3, 1)))
    found = caught.value
    assert (found.phase, found.layer, found.op) == ("backward", "1", "linear")
    assert str(found).startswith("backward: the gradient of what ops.linear in 1 (Linear) gave is not finite in 3 ele")
    assert str(found).endswith("and no op after it gave that")


def test_portable_tensors_and_backward_are_watched(backend: str) -> None:
    made = model()
    x = EmberTensor([[0.5]], requires_grad=True)

    def differentiate() -> None:
        total: EmberTensor = made(x).sum()
        total.backward()

    with pytest.raises(NaNFound) as caught, ember_ml.find_nan(made):
        differentiate()
    assert (caught.value.phase, caught.value.layer, caught.value.op) == ("backward", "1.1", "sqrt")


def test_compiled_functions_are_looked_into(backend: str) -> None:
    made = model()
    compiled = ember_ml.compile(loss_of(made))
    with pytest.raises(NaNFound, match=r"ops\.sqrt in 1\.1"), ember_ml.find_nan(made):
        compiled(ops.array([[0.25]]))


def test_the_block_is_of_its_thread(backend: str) -> None:
    made, results = model(), []

    def run() -> None:
        results.append(ops.to_numpy(made(ops.array([[0.25]]))).tolist())

    with ember_ml.find_nan(made):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(results) == 1  # it is not watched there, and raises nothing


def test_autocast_inside_is_watched(backend: str) -> None:
    made = model()
    with pytest.raises(NaNFound) as caught, ember_ml.find_nan(made), ember_ml.autocast("bfloat16"):
        made(ops.array([[0.25]]))
    assert (caught.value.layer, caught.value.op) == ("1.1", "sqrt")


@pytest.mark.parametrize("compile", [None, True])
def test_the_trainer_names_the_step_that_breaks(backend: str, compile: bool | None) -> None:
    made = model()
    trainer = Trainer(made, optimizers.SGD(1e-3), progress=False, compile=compile, debug=True)
    trainer.step((ops.array([[2.0]]), ops.array([[1.0]])))
    with pytest.raises(NaNFound, match=r"^forward: ops\.sqrt in 1\.1 \(Root\)"):
        trainer.fit(ops.array([[2.0], [0.25]]), ops.ones((2, 1)), batch_size=1, shuffle=False)
    assert trainer.steps == 2
    usual = Trainer(model(), optimizers.SGD(1e-3), progress=False)
    usual.step((ops.array([[2.0]]), ops.array([[1.0]])))
    usual.step((ops.array([[2.0]]), ops.array([[1.0]])))
    assert ops.item(made[0].weight) == pytest.approx(ops.item(usual.model[0].weight), rel=1e-6)


# the profile


class Slow(nn.Module):
    """Waits in the forward pass, and in the backward pass of what is inside."""

    def forward(self, x: Any) -> Any:
        time.sleep(0.02)

        @ops.custom_gradient
        def wait(y: Any) -> Any:
            def pull(gradient: Any) -> Any:
                time.sleep(0.03)
                return gradient

            return y, pull

        return wait(ops.multiply(x, 2.0))


def test_the_profile_times_layers_forward_and_backward(backend: str, tmp_path: Path) -> None:
    made = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Slow()), nn.Linear(2, 1))
    step = nn.value_and_grad(made, loss_of(made))
    x = ops.ones((4, 2))
    step(x)  # JAX compiles at the first call
    with ember_ml.profile(made) as found:
        step(x)
        step(x)
    times = found.layers_by_path
    assert {path: known.calls for path, known in times.items()} == {"": 2, "0": 2, "1": 2, "1.0": 2, "2": 2}
    assert {path: known.output_bytes for path, known in times.items()} == {"": 16, "0": 32, "1": 32, "1.0": 32, "2": 16}
    for path in ("", "1", "1.0"):
        assert times[path].forward >= 0.04
        assert times[path].backward >= 0.06
    for path in ("0", "2"):
        assert 0.0 < times[path].forward < times["1.0"].forward
        assert 0.0 < times[path].backward < times["1.0"].backward
    assert times[""].forward + times[""].backward <= found.seconds
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["name", "kind", "calls"]
    assert [line.split()[:2] for line in lines[2:6]] == [
        ["0", "Linear"],
        ["1", "Sequential"],
        ["1.0", "Slow"],
        ["2", "Linear"],
    ]
    assert lines[-2].startswith("outside of the model")
    assert repr(found) == str(found)
    found.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["ph"] for event in events} == {"X"}
    layers = [event for event in events if event["cat"] == "layer"]
    assert sorted(event["name"] for event in layers) == sorted(2 * ["Sequential", "0", "1", "1.0", "2"])
    inside = [event for event in events if event["cat"] == "op" and event["args"]["layer"] == "1.0"]
    assert [event["name"] for event in inside] == ["ops.multiply"] * 2
    (outer, *_) = [event for event in layers if event["name"] == "1.0"]
    assert outer["ts"] <= inside[0]["ts"]
    assert inside[0]["ts"] + inside[0]["dur"] <= outer["ts"] + outer["dur"]
    assert sum(event["dur"] for event in events if event["cat"] == "backward") >= 0.06e6


def test_a_profile_that_is_entered_again_goes_on(backend: str) -> None:
    made = nn.Sequential(nn.Linear(2, 1))
    found = ember_ml.profile(made)
    for _ in range(2):
        with found:
            made(ops.ones((1, 2)))
    assert found.layers_by_path["0"].calls == 2


# the summary


def test_the_summary_of_a_forward_pass(backend: str) -> None:
    made = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5), nn.Linear(10)
    )
    text = made.summary((2, 8, 6, 3))
    conv, last = 2 * (2 * 8 * 6 * 4) * (3 * 3 * 3), 2 * 2 * 48 * 10
    rows = {line.split()[0]: line.split() for line in text.splitlines()[2:-1]}
    assert rows["0"] == ["0", "Conv2d", "(2,", "8,", "6,", "4)", "112", f"{conv:,}", "1,536"]
    assert rows["3"] == ["3", "Flatten", "(2,", "48)", "0", "0", "384"]
    assert rows["5"] == ["5", "Linear", "(2,", "10)", "490", f"{last:,}", "80"]
    assert text.splitlines()[-1] == f"602 parameters, 602 trainable, 2,408 bytes, {conv + last:,} FLOPs"
    assert made.training
    assert made[4].training


def test_the_summary_takes_tensors_and_several_arguments(backend: str) -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            self.embedding, self.unused = nn.Embedding(5, 4), nn.Linear(2, 2)

        def forward(self, tokens: Any, scale: Any = None) -> Any:
            return {"x": self.embedding(tokens), "y": ops.matmul(scale, scale)}

    lines = Pair().summary(ops.array([1, 2, 3]), scale=(2, 2)).splitlines()
    assert lines[1].split() == ["Pair", "(3,", "4),", "(2,", "2)", "26", "16", "64"]
    assert lines[3].split() == ["unused", "Linear", "not", "called", "6", "0", "0"]


def test_flops_of_products(backend: str) -> None:
    x, y = ops.ones((2, 3, 4)), ops.ones((2, 4, 5))
    attention = [ops.ones((2, 7, 4, 8)), ops.ones((2, 9, 2, 8)), ops.ones((2, 9, 2, 8))]
    cases: list[tuple[Any, int]] = [
        (lambda: ops.matmul(x, y), 2 * 2 * 3 * 4 * 5),
        (lambda: ops.einsum("bij,bjk->bik", x, y), 2 * 2 * 3 * 4 * 5),
        (lambda: ops.einsum("...ij,...jk->...ik", x, y), 2 * 2 * 3 * 4 * 5),
        (lambda: ops.tensordot(x, y, ((2,), (1,))), 2 * 6 * 4 * 10),
        (lambda: ops.vecdot(x, x), 2 * 24),
        (lambda: ops.inner(x, x), 2 * 6 * 6 * 4),
        (lambda: ops.dot(ops.ones(4), ops.ones(4)), 8),
        (lambda: ops.dot_product_attention(*attention), 2 * 2 * (2 * 4 * 7 * 9 * 8)),
        (lambda: ops.add(x, x), 0),
        (lambda: ops.depthwise_conv(ops.ones((1, 5, 3)), ops.ones((2, 3, 2))), 2 * 4 * 6 * 2),
        (lambda: ops.separable_conv(ops.ones((1, 5, 3)), ops.ones((2, 3, 2)), ops.ones((1, 6, 7))), 96 + 2 * 4 * 7 * 6),
        (lambda: ops.conv(ops.ones((1, 5, 4)), ops.ones((2, 2, 6))), 2 * 4 * 6 * 4),
        (lambda: ops.conv_transpose(ops.ones((1, 5, 4)), ops.ones((2, 6, 4)), 2), 2 * 5 * 4 * 12),
    ]

    class Case(nn.Module):
        def forward(self, place: int) -> Any:
            return cases[place][0]()

    for place, (_, expected) in enumerate(cases):
        text = Case().summary(place)
        assert text.endswith(f" {expected:,} FLOPs"), f"case {place}: {text}"


def test_flops_of_recurrent_layers_are_those_of_their_products(backend: str) -> None:
    text = nn.LSTM(3, 4, layers=2, bidirectional=True).summary((2, 5, 3))
    per_position = 2 * 16 * (3 + 4) + 2 * 16 * (8 + 4)
    assert text.endswith(f" {2 * 10 * per_position:,} FLOPs")


def test_only_modules_are_looked_into() -> None:
    for look in (ember_ml.find_nan, ember_ml.profile):
        with pytest.raises(TypeError, match=f"{look.__name__} takes a module, not int"):
            look(3)  # type: ignore[arg-type]

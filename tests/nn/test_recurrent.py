"""RNN, GRU and LSTM against their definitions, one position after the other."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.tensor import EmberTensor
from tests.nn.checking import check_gradients, check_state_round_trip, check_switch, host, largest_difference
from tests.reference.sequences import recurrent

KINDS = {"RNN": nn.RNN, "GRU": nn.GRU, "LSTM": nn.LSTM}


def inputs(*shape: int, dtype: str = "float64") -> Any:
    return ops.random_normal(shape, dtype=dtype, seed=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("layers", "bidirectional", "bias"), [(1, False, True), (2, False, False), (2, True, True)])
def test_results_and_last_states(backend: str, kind: str, layers: int, bidirectional: bool, bias: bool) -> None:
    layer = KINDS[kind](3, 4, layers, bidirectional, bias=bias, dtype="float64")
    x, directions = inputs(2, 5, 3), 1 + bidirectional
    start = ops.random_normal((1 + (kind == "LSTM"), layers * directions, 2, 4), dtype="float64", seed=2)
    want, last = recurrent(kind, ops.to_numpy(x), host(layer), 4, layers, directions, ops.to_numpy(start))
    y, state = layer(x, state=tuple(ops.unstack(start)) if kind == "LSTM" else start[0])
    assert largest_difference(y, want) < 1e-12
    for found, expected in zip(state if kind == "LSTM" else [state], last, strict=True):
        assert largest_difference(found, expected) < 1e-12
    want, _ = recurrent(kind, ops.to_numpy(x), host(layer), 4, layers, directions)
    assert largest_difference(layer(x), want) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(backend: str, kind: str) -> None:
    layer = KINDS[kind](2, 3, layers=2, bidirectional=True, dtype="float64")
    x = inputs(2, 3, 2)
    check_gradients(layer, lambda: layer(x))


def _check_slopes(f: Any, *arguments: Any, step: float = 1e-5) -> None:
    """Compare the gradients of ``f``, in three directions, with central differences."""
    for place, found in enumerate(ember_ml.grad(f, tuple(range(len(arguments))))(*arguments)):
        for seed in range(3):
            direction = ops.random_normal(found.shape, dtype="float64", seed=seed)
            ends = []
            for sign in (step, -step):
                moved = ops.add(arguments[place], ops.multiply(direction, sign))
                ends.append(ops.item(f(*arguments[:place], moved, *arguments[place + 1 :])))
            want = (ends[0] - ends[1]) / (2 * step)
            assert ops.item(ops.sum(ops.multiply(found, direction))) == pytest.approx(want, rel=1e-6, abs=1e-8)


LAYERS: dict[str, Any] = {**KINDS, "relu": lambda *sizes, **rest: nn.RNN(*sizes, **rest, activation="relu")}


@pytest.mark.parametrize("kind", LAYERS)
def test_gradients_by_inputs_and_states(backend: str, kind: str) -> None:
    """Of the results and of the last state; then of a gradient, by what it was taken and by what it was not."""
    layer = LAYERS[kind](2, 3, layers=2, bidirectional=True, dtype="float64")
    x, start = inputs(2, 3, 2), ops.random_normal((1 + (kind == "LSTM"), 4, 2, 3), dtype="float64", seed=2)

    def loss(x: Any, start: Any) -> Any:
        y, last = layer(x, state=tuple(ops.unstack(start)) if kind == "LSTM" else start[0])
        parts = ops.concatenate(last if kind == "LSTM" else (last,))
        return ops.add(ops.sum(ops.square(parts)), ops.sum(ops.sin(y)))

    _check_slopes(loss, x, start)
    _check_slopes(lambda x, start: ops.sum(ops.square(ember_ml.grad(loss, 1)(x, start))), x, start)
    _, along = ember_ml.jvp(lambda x: loss(x, start), (x,), (ops.ones_like(x),))
    assert ops.item(along) == pytest.approx(ops.item(ops.sum(ember_ml.grad(loss)(x, start))), rel=1e-9)


def test_the_cell_of_a_subclass_is_computed(backend: str) -> None:
    class Twice(nn.RNN):
        def cell(self, from_input: Any, from_state: Any, carry: Any) -> Any:
            (h,) = super().cell(from_input, from_state, carry)
            return (ops.multiply(h, 2.0),)

    layer, x = Twice(2, 3, dtype="float64"), inputs(2, 1, 2)
    plain = nn.RNN(2, 3, dtype="float64").load_state_dict(layer.state_dict())
    for argument in (x, EmberTensor(x, requires_grad=True)):
        assert largest_difference(layer(argument), ops.multiply(plain(x), 2.0)) < 1e-12
    _, gradients = nn.value_and_grad(layer, lambda: ops.sum(layer(x)))()
    _, halves = nn.value_and_grad(plain, lambda: ops.sum(plain(x)))()
    for name in ("weight_ih_l0", "bias_hh_l0"):
        assert largest_difference(gradients[name], ops.multiply(halves[name], 2.0)) < 1e-12


def test_the_activation_may_change(backend: str) -> None:
    layer, x = nn.RNN(2, 3, dtype="float64"), inputs(2, 4, 2)
    other = nn.RNN(2, 3, activation="relu", dtype="float64").load_state_dict(layer.state_dict())
    assert largest_difference(layer(x), other(x)) > 0.1
    layer.activation = "relu"
    assert largest_difference(layer(x), other(x)) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients_in_half_precision(kind: str, backend: str) -> None:
    layer, x = KINDS[kind](2, 3, layers=2), inputs(2, 3, 2, dtype="float32")

    def slope(x: Any) -> Any:
        return ember_ml.grad(lambda x: ops.sum(ops.square(ops.cast(layer(x), "float32"))))(x)

    def loss(x: Any) -> Any:
        return ops.sum(ops.square(slope(x)))

    with ember_ml.autocast("float16"):
        found = ember_ml.grad(loss)(x)
    assert largest_difference(found, ember_ml.grad(loss)(x)) < 2e-2


def test_a_portable_state_gives_portable_tensors(backend: str) -> None:
    layer, x = nn.LSTM(2, 3), inputs(1, 2, 2, dtype="float32")
    y, (h, c) = layer(x, state=tuple(map(EmberTensor, layer.initial_state(1))))
    assert type(y) is type(h) is type(c) is EmberTensor


@pytest.mark.parametrize("kind", KINDS)
def test_two_calls_with_the_state_are_one_call(backend: str, kind: str) -> None:
    layer, x = KINDS[kind](3, 4, layers=2, dtype="float64"), inputs(2, 6, 3)
    first, state = layer(x[:, :4], state=layer.initial_state(2))
    second, _ = layer(x[:, 4:], state=state)
    assert largest_difference(ops.concatenate([first, second], axis=1), layer(x)) < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_gives_the_same_parameters_everywhere(backend: str, kind: str) -> None:
    def made() -> dict[str, Any]:
        ops.random.seed(5)
        layer = KINDS[kind](4)
        layer(inputs(1, 2, 3, dtype="float32"))
        return {name: x.tolist() for name, x in host(layer).items()}

    found = made()
    assert list(found) == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    with ember_ml.use_backend("numpy"):
        assert made() == found


@pytest.mark.parametrize("kind", KINDS)
def test_switch_and_state(backend: str, kind: str) -> None:
    layer, x = KINDS[kind](3, 4), inputs(2, 5, 3, dtype="float32")
    check_switch(backend, lambda: layer(x))
    check_state_round_trip(lambda: KINDS[kind](3, 4), lambda layer: layer(x))


def test_portable_tensors_lists_and_masks(backend: str) -> None:
    layer = nn.GRU(2, 3)
    x = [[[1.0, 2.0], [3.0, 4.0]]]
    portable = layer(nn.tensor.convert_to_tensor(x))
    assert type(portable) is EmberTensor
    assert largest_difference(portable, layer(x)) == 0.0
    masked = layer(x, mask=[[[1.0], [0.0]]])
    assert largest_difference(masked, layer([[[1.0, 2.0], [0.0, 0.0]]])) == 0.0
    assert largest_difference(layer(x, mask=[[[True], [False]]]), masked) == 0.0


def test_empty_sequences_and_batches(backend: str) -> None:
    layer = nn.LSTM(2, 3, layers=2)
    y, (h, c) = layer(ops.ones((2, 0, 2)), state=layer.initial_state(2))
    assert tuple(y.shape) == (2, 0, 3)
    assert largest_difference(h, ops.zeros((2, 2, 3))) == largest_difference(c, ops.zeros((2, 2, 3))) == 0.0
    assert tuple(layer(ops.ones((0, 4, 2))).shape) == (0, 4, 3)


def test_dropout_between_layers_in_training_only(backend: str) -> None:
    layer, x = nn.RNN(2, 8, layers=2, dropout=0.5), inputs(1, 3, 2, dtype="float32")
    assert largest_difference(layer(x), layer(x)) > 0.0
    layer.eval()
    assert largest_difference(layer(x), layer(x)) == 0.0


@pytest.mark.long
def test_compiled(backend: str) -> None:
    layer, x = nn.LSTM(2, 3), inputs(2, 2, 2, dtype="float32")
    step = nn.value_and_grad(layer, lambda x: ops.sum(ops.square(layer(x))))
    value, gradients = step(x)
    found, compiled = ember_ml.compile(step)(x)
    assert ops.item(found) == pytest.approx(ops.item(value), rel=1e-5)
    assert all(largest_difference(compiled[name], x) < 1e-5 for name, x in gradients.items())


def test_mistakes_are_explained(backend: str) -> None:
    layer = nn.LSTM(2, 3)
    with pytest.raises(ValueError, match=r"LSTM takes x of shape \(batch, length, width\), not \(2, 2\)"):
        layer(ops.ones((2, 2)))
    with pytest.raises(ValueError, match=r"the state of this LSTM is 2 tensors of shape \(1, 1, 3\)"):
        layer(ops.ones((1, 4, 2)), state=layer.initial_state(2))
    with pytest.raises(ValueError, match="the sizes of GRU are at least 1"):
        nn.GRU(3, 0)
    with pytest.raises(ValueError, match="'tanh' or 'relu', not 'sine'"):
        nn.RNN(3, 4, activation="sine")
    with pytest.raises(ValueError, match="no parameters yet"):
        nn.GRU(3).initial_state(1)

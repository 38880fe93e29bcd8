"""Options of attention, blocks and language models against their definitions; generation by any module with state."""

from __future__ import annotations

import math
from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.config import registry
from ember_ml.errors import ConfigError
from ember_ml.nn.blocks import LanguageModel, Transformer, TransformerBlock
from tests.nn.checking import check_gradients, host, largest_difference
from tests.reference.sequences import multi_head_attention, transformer_block

LENGTH, HIDDEN, HEADS = 6, 8, 4


def inputs(*shape: int, seed: int = 1) -> Any:
    return ops.random_normal(shape, dtype="float64", seed=seed)


def scatter(layer: nn.Module) -> Any:
    """Give the parameters other values than they start with: weights of ones and equal norms would hide mistakes."""
    for parameter in layer.parameters():
        parameter.value = ops.add(parameter.value, ops.random_normal(parameter.shape, 0.0, 0.3, dtype="float64"))
    return layer


def llama3_rates(width: int, base: float, factor: float, low: float, high: float, trained: int) -> list[float]:
    """The frequencies by the wavelengths that Llama 3.1 leaves, divides, or blends."""
    found = []
    for i in range(width // 2):
        rate = base ** (-2 * i / width)
        wavelength = 2 * math.pi / rate
        if wavelength < trained / high:
            found.append(rate)
        elif wavelength > trained / low:
            found.append(rate / factor)
        else:
            blend = (trained / wavelength - low) / (high - low)
            found.append((1 - blend) * rate / factor + blend * rate)
    return found


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LLAMA3 |= {"original_max_position_embeddings": 32}
ROTARY = {"rotary": True, "causal": True}
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "width": ({"width": 6}, {}),
    "biases on q, k, v alone": ({"output_bias": False}, {}),
    "qk norm": ({"qk_norm": "rms", "epsilon": 1e-2, **ROTARY}, {}),
    "qk layer norm": ({"qk_norm": "layer", "epsilon": 1e-2}, {}),
    "cap": ({"cap": 0.5, "causal": True}, {}),
    "scale": ({"scale": 0.9}, {}),
    "window": ({"window": 2, "causal": True}, {}),
    "base": ({"base": 50.0, **ROTARY}, {}),
    "llama3": ({"scaling": LLAMA3, "width": 16, **ROTARY}, {"rates": llama3_rates(16, 1e4, 8.0, 1.0, 4.0, 32)}),
    "yarn's factor": (
        {"scaling": {"rope_type": "yarn", "factor": 1.0, "attention_factor": 1.3}, **ROTARY},
        {"factor": 1.3},
    ),
    "all": ({"width": 6, "qk_norm": "rms", "cap": 2.0, "scale": 0.7, "window": 3, "output_bias": False, **ROTARY}, {}),
}


def split_options(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keyword arguments of the layer, and of the reference."""
    given, expected = OPTIONS[name]
    return given, {key: x for key, x in given.items() if key not in ("scaling", "output_bias")} | expected


@pytest.mark.parametrize("name", OPTIONS)
def test_attention(backend: str, name: str) -> None:
    given, expected = split_options(name)
    layer, x = scatter(nn.Attention(HIDDEN, HEADS, 2, **given, dtype="float64")), inputs(2, LENGTH, HIDDEN)
    assert ("output.bias" in layer.state_dict()) is given.get("output_bias", True)
    want = multi_head_attention(ops.to_numpy(x), host(layer), HEADS, 2, **expected)
    assert largest_difference(layer(x), want) < 1e-12
    if given.get("causal"):
        state, found, first = layer.initial_state(2), [], 0
        for count in (3, 1, 2):
            y, state = layer(x[:, first : first + count], state=state)
            found.append(y)
            first += count
        assert largest_difference(ops.concatenate(found, axis=1), want) < 1e-12
        assert state.seen == LENGTH
        assert state.key.shape[1] == min(LENGTH, given.get("window", LENGTH + 1) - 1)


def test_gradients_with_all_options(backend: str) -> None:
    options = split_options("all")[0]
    block = TransformerBlock(HIDDEN, HEADS, 2, norm="rms", gated=True, order="parallel", **options, dtype="float64")
    x = inputs(1, 4, HIDDEN)
    check_gradients(block, lambda: block(x))


@pytest.mark.parametrize("order", ["pre", "post", "parallel"])
def test_blocks(backend: str, order: str) -> None:
    options: dict[str, Any] = split_options("all")[0] | {"gated": True, "norm": "rms", "order": order, "epsilon": 1e-2}
    block, x = scatter(TransformerBlock(HIDDEN, HEADS, 2, **options, dtype="float64")), inputs(2, LENGTH, HIDDEN)
    expected = {key: value for key, value in options.items() if key != "output_bias"}
    want = transformer_block(ops.to_numpy(x), host(block), HEADS, 2, **expected)
    assert largest_difference(block(x), want) < 1e-12
    y, _ = block(x, state=block.initial_state(2))
    assert largest_difference(y, want) < 1e-12
    stack = Transformer(HIDDEN, 1, HEADS, 2, **options, dtype="float64")
    assert ("norm.weight" in stack.state_dict()) is (order != "post")
    stack.blocks[0].load_state_dict(block.state_dict())
    if order == "post":
        assert largest_difference(stack(x), want) < 1e-12


def test_attention_dropout_alone(backend: str) -> None:
    x = ops.random_normal((2, 4, HIDDEN))
    quiet = TransformerBlock(HIDDEN, 2, dropout=0.5, attention_dropout=0.0)
    assert (quiet.attention.dropout, quiet.drop.rate) == (0.0, 0.5)
    loud = TransformerBlock(HIDDEN, 2, attention_dropout=0.5)
    assert (loud.attention.dropout, loud.drop.rate) == (0.5, 0.0)
    assert largest_difference(loud(x), loud(x)) > 0.0
    assert largest_difference(loud.eval()(x), loud(x)) == 0.0


def test_capped_scores_with_dropped_weights(backend: str) -> None:
    """A rate of dropout that leaves nothing out takes the way on which weights can be left out."""
    options: dict[str, Any] = {"cap": 0.5, "window": 2, "causal": True}
    layer, x = nn.Attention(HIDDEN, HEADS, dropout=1e-9, dtype="float64", **options), inputs(2, LENGTH, HIDDEN)
    want = multi_head_attention(ops.to_numpy(x), host(layer), HEADS, HEADS, **options)
    assert largest_difference(layer(x), want) < 1e-8


def test_a_language_model_takes_the_options_of_its_blocks(backend: str) -> None:
    options: dict[str, Any] = {"width": 6, "qk_norm": "rms", "window": 3, "cap": 2.0, "order": "parallel"}
    model = LanguageModel(7, HIDDEN, 2, 2, logit_cap=0.3, dtype="float64", **options)
    tokens = ops.array([[3, 1, 4, 1, 5, 2]])
    logits = model(tokens)
    assert float(ops.max(ops.abs(logits))) < 0.3
    model.logit_cap = None
    assert largest_difference(ops.multiply(ops.tanh(ops.divide(model(tokens), 0.3)), 0.3), logits) < 1e-12
    want = tokens
    for _ in range(4):
        following = ops.argmax(model(want)[:, -1], -1)
        want = ops.concatenate([want, ops.expand_dims(following, 1)], axis=1)
    assert ops.to_numpy(model.generate(tokens, 4, 0.0)).tolist() == ops.to_numpy(want).tolist()


def test_learned_positions_go_on_behind_a_window(backend: str) -> None:
    model = LanguageModel(7, HIDDEN, 2, 2, length=9, window=2, dtype="float64")
    tokens = ops.array([[3, 1, 4, 1, 5, 2]])
    state, found = model.initial_state(1), []
    for place in range(6):
        logits, state = model(tokens[:, place : place + 1], state)
        found.append(logits)
    assert largest_difference(ops.concatenate(found, axis=1), model(tokens)) < 1e-12


def test_options_in_configurations(backend: str) -> None:
    config: dict[str, Any] = {
        "type": "blocks/transformer",
        "hidden": 8,
        "layers": 1,
        "heads": 2,
        "order": "post",
        "causal": True,
    }
    config |= {"rotary": True, "window": 3, "scaling": {"rope_type": "linear", "factor": 2.0}}
    made: Any = registry.build(config)
    assert (made.blocks[0].order, made.blocks[0].attention.window) == ("post", 3)
    assert made.blocks[0].attention.scaling == {"rope_type": "linear", "factor": 2.0}
    assert registry.config_of(made) == config
    with pytest.raises(ConfigError, match="windw"):
        registry.build(config | {"windw": 3})
    with pytest.raises(ConfigError, match="window"):
        registry.build(config | {"window": "three"})


def test_mistakes_are_explained(backend: str) -> None:
    with pytest.raises(ValueError, match="needs causal=True"):
        nn.Attention(8, window=2)
    with pytest.raises(ValueError, match="needs rotary=True"):
        nn.Attention(8, scaling={"rope_type": "linear", "factor": 2.0})
    with pytest.raises(ValueError, match="no scaling of rotary positions 'longer'"):
        nn.Attention(8, rotary=True, scaling={"rope_type": "longer"})
    with pytest.raises(ValueError, match="at least 1 position, not 0"):
        nn.Attention(8, causal=True, window=0)
    with pytest.raises(ValueError, match=r"above 0, not -1\.0"):
        nn.Attention(8, cap=-1.0)
    with pytest.raises(ValueError, match="'layer' or 'rms', not 'batch'"):
        nn.Attention(8, qk_norm="batch")
    with pytest.raises(ValueError, match="'pre', 'post' or 'parallel', not 'after'"):
        TransformerBlock(8, order="after")
    with pytest.raises(TypeError, match="windw"):
        Transformer(8, 1, **{"windw": 3})  # type: ignore[arg-type]


class Letters(nn.Module):
    """A recurrent language model, which carries its state as every layer does."""

    def __init__(self, cell: Any) -> None:
        self.embedding, self.cell, self.output = nn.Embedding(7, 8), cell(8, 8), nn.Linear(8, 7)
        self.drop = nn.Dropout(0.5)

    def initial_state(self, batch: int) -> Any:
        return self.cell.initial_state(batch)

    def forward(self, tokens: Any, state: Any) -> Any:
        y, state = self.cell(self.drop(self.embedding(tokens)), state=state)
        return self.output(y), state


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, lambda n, _: nn.StateSpace(n)])
def test_any_module_with_a_state_generates(backend: str, cell: Any) -> None:
    ops.random.seed(3)
    model = Letters(cell)
    found = ops.to_numpy(nn.generate(model, [[1, 2, 3], [4, 5, 6]], 5, temperature=0.0)).tolist()
    assert model.training
    model.eval()
    want = ops.array([[1, 2, 3], [4, 5, 6]])
    for _ in range(5):  # the whole text again for each token
        logits, _ = model(want, model.initial_state(2))
        want = ops.concatenate([want, ops.expand_dims(ops.argmax(logits[:, -1], -1), 1)], axis=1)
    assert found == ops.to_numpy(want).tolist()
    drawn = ops.to_numpy(nn.generate(model, [1], 8, seed=2, top_k=3, top_p=0.9)).tolist()
    with ember_ml.use_backend("numpy"):
        assert ops.to_numpy(nn.generate(model, [1], 8, seed=2, top_k=3, top_p=0.9)).tolist() == drawn


class Fixed(nn.Module):
    """A model whose logits are a row of a table, by the last token; its state counts the calls."""

    def __init__(self, table: Any) -> None:
        self.table = nn.Buffer(table)

    def initial_state(self, batch: int) -> int:
        return 0

    def forward(self, tokens: Any, state: int) -> Any:
        return ops.take(self.table, tokens, 0), state + 1


def test_top_k_and_top_p_leave_the_others_out(backend: str) -> None:
    probabilities = [0.4, 0.3, 0.2, 0.1]
    model = Fixed([[math.log(p) for p in probabilities]] * 4)
    for options, allowed in (
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.6}, {0, 1}),
        ({"top_p": 0.75}, {0, 1, 2}),
        ({"top_k": 3, "top_p": 0.5}, {0, 1}),  # of the three, 0.44 and 0.33 are the fewest that reach a half
        ({"top_k": 9}, {0, 1, 2, 3}),
    ):
        texts = nn.generate(model, [[0]] * 300, 1, seed=1, **options)  # type: ignore[arg-type]
        found = ops.to_numpy(texts)[:, 1].tolist()
        assert set(found) == allowed
        total = sum(probabilities[token] for token in allowed)
        share = found.count(0) / len(found)
        assert abs(share - probabilities[0] / total) < 4 * math.sqrt(0.25 / len(found))


def test_tokens_that_end_a_text(backend: str) -> None:
    """Each token is followed by the next one."""
    model = Fixed([[10.0 if column == row + 1 else 0.0 for column in range(6)] for row in range(6)])
    assert ops.to_numpy(nn.generate(model, [[0], [2]], 9, 0.0, stop=4)).tolist() == [[0, 1, 2, 3, 4], [2, 3, 4, 4, 4]]
    assert ops.to_numpy(nn.generate(model, [0], 9, 0.0, stop=[3, 5])).tolist() == [0, 1, 2, 3]
    assert ops.to_numpy(nn.generate(model, [0], 2, 0.0, stop=[3, 5])).tolist() == [0, 1, 2]
    for stop in (ops.asarray([3, 4])[0], ops.to_numpy([3, 4])[0], ops.asarray([3, 5]), {3}, iter([3])):
        assert ops.to_numpy(nn.generate(model, [0], 9, 0.0, stop=stop)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("narrow", ["uint8", "int8", "int16"])
def test_tokens_that_the_dtype_of_the_prompt_cannot_hold(backend: str, narrow: str) -> None:
    last = 40_000

    class Last(nn.Module):
        def initial_state(self, batch: int) -> int:
            return 0

        def forward(self, tokens: Any, state: int) -> Any:
            return ops.one_hot(ops.full(ops.shape(tokens), last), last + 1), state

    found = nn.generate(Last(), ops.array([1, 2], dtype=narrow), 2, 0.0)
    assert ops.to_numpy(found).tolist() == [1, 2, last, last]


def test_every_kind_of_seed_gives_one_text(backend: str) -> None:
    model = Fixed([[0.0] * 50] * 50)
    want = ops.to_numpy(nn.generate(model, [0], 12, seed=3)).tolist()
    assert len({*want}) > 6
    for seed in (ops.to_numpy([3])[0], ops.asarray(3), ops.random.Generator(3)):
        assert ops.to_numpy(nn.generate(model, [0], 12, seed=seed)).tolist() == want


class Wrong(Fixed):
    """A model that returns what the function makes of its logits."""

    def __init__(self, make: Any) -> None:
        super().__init__([[0.0, 1.0]] * 2)
        self.make = make

    def forward(self, tokens: Any, state: int) -> Any:
        return self.make(ops.take(self.table, tokens, 0))


@pytest.mark.parametrize("make", [lambda x: x, lambda x: (x[:, -1], 0), lambda x: (x, 0, 0)])
def test_models_that_return_something_else(backend: str, make: Any) -> None:
    with pytest.raises(TypeError, match=r"Wrong cannot generate.*no pair of logits"):
        nn.generate(Wrong(make), [1, 0], 1)


def test_what_cannot_generate_is_told(backend: str) -> None:
    with pytest.raises(ValueError, match="count is a number of tokens"):
        nn.generate(Fixed([[0.0, 1.0]] * 2), [1], -1)
    with pytest.raises(TypeError, match="Linear cannot generate: it has no initial_state"):
        nn.generate(nn.Linear(3, 3), [1], 1)
    model = Fixed([[0.0, 1.0]] * 2)
    with pytest.raises(ValueError, match="top_k is at least 1"):
        nn.generate(model, [1], 1, top_k=0)
    with pytest.raises(ValueError, match="top_p is above 0"):
        nn.generate(model, [1], 1, top_p=1.5)

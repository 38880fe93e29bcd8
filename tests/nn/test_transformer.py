"""Transformer blocks and the language model: their definition, caches, generation, training."""

from __future__ import annotations

from typing import Any

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.nn.blocks import LanguageModel, Transformer, TransformerBlock
from ember_ml.tensor import EmberTensor
from ember_ml.training import optimizers
from tests.nn.checking import check_gradients, check_state_round_trip, check_switch, host, largest_difference
from tests.reference.sequences import language_model, transformer_block

TOKENS = [[3, 1, 4, 1, 5], [2, 6, 0, 3, 3]]


def inputs(*shape: int, dtype: str = "float64", seed: int = 1) -> Any:
    return ops.random_normal(shape, dtype=dtype, seed=seed)


def small(dtype: str = "float64", layers: int = 2, **options: Any) -> LanguageModel:
    return LanguageModel(7, 8, layers, 2, dtype=dtype, **options)


@pytest.mark.parametrize(
    ("groups", "gated", "norm", "causal", "rotary"),
    [(4, False, "layer", False, False), (2, True, "rms", True, True), (1, False, "rms", True, False)],
)
def test_block(backend: str, groups: int, gated: bool, norm: str, causal: bool, rotary: bool) -> None:
    options: dict[str, Any] = {"gated": gated, "norm": norm, "causal": causal, "rotary": rotary}
    block, x = TransformerBlock(8, 4, groups, **options, dtype="float64"), inputs(2, 5, 8)
    want = transformer_block(ops.to_numpy(x), host(block), 4, groups, **options)
    assert largest_difference(block(x), want) < 1e-12


def test_gradients_of_a_block(backend: str) -> None:
    block, x = TransformerBlock(4, 2, gated=True, norm="rms", causal=True, dtype="float64"), inputs(2, 3, 4)
    check_gradients(block, lambda: block(x))


@pytest.mark.parametrize("length", [None, 9])
def test_logits(backend: str, length: int | None) -> None:
    model = small(length=length)
    assert largest_difference(model(TOKENS), language_model(TOKENS, host(model), 2, 2)) < 1e-12


@pytest.mark.parametrize("length", [None, 9])
def test_gradients_of_a_language_model(backend: str, length: int | None) -> None:
    model = small(layers=1, length=length, tied=length is None)
    check_gradients(model, lambda: model(TOKENS))


@pytest.mark.parametrize("length", [None, 9])
def test_with_a_cache_parts_give_what_the_whole_gives(backend: str, length: int | None) -> None:
    model, tokens = small(length=length), ops.array(TOKENS)
    state, found = model.initial_state(2), []
    for first, last in ((0, 3), (3, 4), (4, 5)):
        logits, state = model(tokens[:, first:last], state)
        found.append(logits)
    assert largest_difference(ops.concatenate(found, axis=1), model(tokens)) < 1e-12


@pytest.mark.parametrize("length", [None, 9])
def test_the_likeliest_tokens(backend: str, length: int | None) -> None:
    """Generation with a cache is what the whole model says, asked again for each token."""
    model = small(length=length)
    want = ops.array(TOKENS)
    for _ in range(4):
        following = ops.argmax(model(want)[:, -1], -1)
        want = ops.concatenate([want, ops.expand_dims(following, 1)], axis=1)
    found = model.generate(TOKENS, 4, temperature=0.0)
    assert ops.to_numpy(found).tolist() == ops.to_numpy(want).tolist()
    assert ops.to_numpy(model.generate(TOKENS[0], 4, temperature=0.0)).tolist() == ops.to_numpy(want)[0].tolist()
    assert ops.to_numpy(model.generate(TOKENS, 4, top_k=1)).tolist() == ops.to_numpy(want).tolist()


def test_tokens_that_are_drawn(backend: str) -> None:
    def drawn(**options: Any) -> list[int]:
        ops.random.seed(5)
        return ops.to_numpy(small("float32").generate([1, 2], 12, **options)).tolist()

    found = drawn(seed=4)
    assert found == drawn(seed=4)
    assert found != drawn(seed=3)
    assert all(0 <= token < 7 for token in found)
    with ember_ml.use_backend("numpy"):
        assert drawn(seed=4) == found


def test_generation_leaves_the_mode_alone_and_drops_nothing(backend: str) -> None:
    model = small(dropout=0.5)
    model.transformer.blocks[0].eval()
    assert ops.to_numpy(model.generate([1], 5, 0.0)).tolist() == ops.to_numpy(model.generate([1], 5, 0.0)).tolist()
    assert model.training
    assert not model.transformer.blocks[0].training
    assert largest_difference(model(TOKENS), model(TOKENS)) > 0.0


def test_half_precision(backend: str) -> None:
    model = small("bfloat16")
    assert str(ops.dtype(model(TOKENS))) == "bfloat16"
    wide = {name: ops.cast(x, "float32") for name, x in model.state_dict().items()}
    assert largest_difference(ops.cast(model(TOKENS), "float32"), small("float32").load_state_dict(wide)(TOKENS)) < 0.05


def test_switch_state_and_kinds(backend: str) -> None:
    model = small("float32")
    check_switch(backend, lambda: model(TOKENS))
    check_state_round_trip(lambda: small("float32"), lambda model: model(TOKENS))
    assert type(model(nn.tensor.array(TOKENS))) is EmberTensor
    assert type(Transformer(8, 1)(nn.tensor.ones((1, 2, 8)))) is EmberTensor


def test_a_mask_and_a_bias_reach_every_block(backend: str) -> None:
    encoder, x = Transformer(8, 2, 2, dtype="float64"), inputs(1, 4, 8)
    mask = ops.array([[[[True, True, True, False]]]])
    other = ops.concatenate([x[:, :3], inputs(1, 1, 8, seed=3)], axis=1)
    assert largest_difference(encoder(x, mask)[:, :3], encoder(other, mask)[:, :3]) < 1e-14
    assert largest_difference(encoder(x)[:, :3], encoder(other)[:, :3]) > 1e-3
    bias = ops.where(mask, 0.0, -1e9)
    assert largest_difference(encoder(x, bias=bias), encoder(x, mask)) < 1e-12


def trained(steps: int, compiled: bool = False) -> list[float]:
    ops.random.seed(2)
    model, optimizer = LanguageModel(7, 16, 1, 2), optimizers.Adam(0.01)
    tokens = ops.random_integers((4, 9), 0, 7)

    def loss(tokens: Any) -> Any:
        target, output = tokens[:, 1:], model(tokens[:, :-1])
        return ops.mean(ops.sparse_categorical_crossentropy(target, output, from_logits=True))

    gradients = nn.value_and_grad(model, loss)
    gradients = ember_ml.compile(gradients) if compiled else gradients
    losses = []
    for _ in range(steps):
        value, found = gradients(tokens)
        optimizer.update(model, found)
        losses.append(ops.item(value))
    return losses


def test_training_is_the_same_everywhere_and_learns(backend: str) -> None:
    losses = trained(30)
    assert losses[-1] < 0.5 * losses[0]
    with ember_ml.use_backend("numpy"):
        assert trained(30) == pytest.approx(losses, abs=1e-4)


@pytest.mark.long
def test_training_compiled(backend: str) -> None:
    assert trained(3, compiled=True) == pytest.approx(trained(3), abs=1e-5)


def test_mistakes_are_explained(backend: str) -> None:
    model = small(length=4)
    with pytest.raises(ValueError, match="takes 4 tokens at most, not 5"):
        model(TOKENS)
    with pytest.raises(ValueError, match="takes 4 tokens at most, not 5"):
        model.generate([1, 2, 3], 3)
    with pytest.raises(ValueError, match=r"tokens of shape \(batch, length\), not \(3,\)"):
        model([1, 2, 3])
    with pytest.raises(ValueError, match="generate begins with tokens"):
        model.generate([[]], 3)
    with pytest.raises(ValueError, match="temperature"):
        model.generate([1], 1, temperature=-1.0)
    with pytest.raises(ValueError, match="'layer' or 'rms', not 'batch'"):
        TransformerBlock(8, norm="batch")
    with pytest.raises(ValueError, match="at least 1 layer"):
        Transformer(8, 0)
    encoder = Transformer(8, 2)
    with pytest.raises(ValueError, match="1 caches for the 2 blocks"):
        encoder(ops.ones((1, 1, 8)), state=encoder.initial_state(1)[:1])
    with pytest.raises(IndexError):
        model([[9]])

"""Attention layers against their definition, one query after the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.tensor import EmberTensor
from tests.nn.checking import check_gradients, check_state_round_trip, check_switch, host, largest_difference
from tests.reference.sequences import multi_head_attention

MASK = [[[[True, False, True, True, False]]], [[[False, False, False, False, False]]]]
"""Of shape (batch, 1, 1, keys): the second text sees nothing."""


def inputs(*shape: int, dtype: str = "float64", seed: int = 1) -> Any:
    return ops.random_normal(shape, dtype=dtype, seed=seed)


@pytest.mark.parametrize(("heads", "groups"), [(1, 1), (4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize(("causal", "rotary"), [(False, False), (True, False), (True, True)])
def test_results(backend: str, heads: int, groups: int, causal: bool, rotary: bool) -> None:
    layer = nn.Attention(16, heads, groups, causal=causal, rotary=rotary, bias=heads > 1, dtype="float64")
    x = inputs(2, 5, 16)
    want = multi_head_attention(ops.to_numpy(x), host(layer), heads, groups, causal, rotary)
    assert largest_difference(layer(x), want) < 1e-12


@given(
    sizes=st.tuples(*[st.integers(1, 5)] * 2, st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    causal=st.booleans(),
    rotary=st.booleans(),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_any_sizes_mask_and_cuts(
    sizes: tuple[int, ...], causal: bool, rotary: bool, seed: int, data: st.DataObject
) -> None:
    """On every backend the definition, and where it is causal the same in two calls with a cache as in one."""
    batch, length, groups, shared, pairs = sizes
    heads, hidden = groups * shared, 2 * pairs * groups * shared
    row = st.lists(st.booleans(), min_size=length, max_size=length)
    mask = [[data.draw(st.lists(row, min_size=length, max_size=length))]]
    cut = data.draw(st.integers(0, length))
    for name in installed_backends():
        with ember_ml.use_backend(name):
            layer = nn.Attention(hidden, heads, groups, causal=causal, rotary=rotary, dtype="float64")
            x = inputs(batch, length, hidden, seed=seed)
            want = multi_head_attention(ops.to_numpy(x), host(layer), heads, groups, causal, rotary, mask)
            assert largest_difference(layer(x, mask), want) < 1e-12
            if causal:
                first, state = layer(x[:, :cut], state=layer.initial_state(batch))
                second, _ = layer(x[:, cut:], state=state)
                whole = layer(x)
                assert largest_difference(ops.concatenate([first, second], axis=1), whole) < 1e-12


@pytest.mark.parametrize("dropout", [0.0, 1e-9])
def test_masks_and_biases(backend: str, dropout: float) -> None:
    """A rate of dropout that leaves nothing out takes the way on which weights can be left out."""
    layer = nn.Attention(8, 2, 1, causal=True, dropout=dropout, dtype="float64")
    x, bias = inputs(2, 5, 8), inputs(2, 5, 5, seed=2)
    for mask, added in ((MASK, None), (None, bias), (MASK, bias)):
        want = multi_head_attention(
            ops.to_numpy(x), host(layer), 2, 1, True, mask=mask, bias=None if added is None else ops.to_numpy(added)
        )
        assert largest_difference(layer(x, mask, added), want) < 1e-8


def test_by_default_a_head_for_each_64(backend: str) -> None:
    assert [nn.Attention(hidden).heads for hidden in (10, 64, 96, 128)] == [1, 1, 1, 2]


@pytest.mark.parametrize("rotary", [False, True])
def test_gradients(backend: str, rotary: bool) -> None:
    layer = nn.Attention(8, 4, 2, causal=True, rotary=rotary, dtype="float64")
    x = inputs(2, 3, 8)
    check_gradients(layer, lambda: layer(x))


@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("parts", [(1, 1, 1, 1, 1), (3, 2), (2, 1, 2)])
def test_with_a_cache_parts_give_what_the_whole_gives(backend: str, rotary: bool, parts: tuple[int, ...]) -> None:
    layer, x = nn.Attention(8, 4, 2, causal=True, rotary=rotary, dtype="float64"), inputs(2, 5, 8)
    state, found, first = layer.initial_state(2), [], 0
    for count in parts:
        y, state = layer(x[:, first : first + count], state=state)
        found.append(y)
        first += count
    assert tuple(state.key.shape) == tuple(state.value.shape) == (2, 5, 2, 2)
    assert largest_difference(ops.concatenate(found, axis=1), layer(x)) < 1e-12


def test_causal_means_that_nothing_later_matters(backend: str) -> None:
    layer, x, other = nn.Attention(8, 2, causal=True), inputs(1, 6, 8), inputs(1, 6, 8, seed=9)
    count_change = ops.concatenate([x[:, :4], other[:, 4:]], axis=1)
    assert largest_difference(layer(x)[:, :4], layer(count_change)[:, :4]) == 0.0
    assert largest_difference(layer(x)[:, 4:], layer(count_change)[:, 4:]) > 1e-3


def test_dropout_in_training_only(backend: str) -> None:
    layer, x = nn.Attention(8, 2, dropout=0.5), inputs(2, 4, 8, dtype="float32")
    assert largest_difference(layer(x), layer(x)) > 0.0
    plain = nn.Attention(8, 2).load_state_dict(layer.state_dict())
    assert largest_difference(layer.eval()(x), plain(x)) == 0.0


@pytest.mark.parametrize("groups", [4, 2])
def test_cross_attention(backend: str, groups: int) -> None:
    layer, x, context = nn.CrossAttention(16, 4, groups, dtype="float64"), inputs(2, 3, 16), inputs(2, 5, 6, seed=2)
    found = layer(x, context, MASK)
    want = multi_head_attention(ops.to_numpy(x), host(layer), 4, groups, mask=MASK, context=ops.to_numpy(context))
    assert largest_difference(found, want) < 1e-12
    assert largest_difference(layer(x, layer.remember(context), MASK), want) < 1e-12
    check_gradients(layer, lambda: layer(x, context))


def test_one_seed_gives_the_same_parameters_everywhere(backend: str) -> None:
    def made() -> dict[str, Any]:
        ops.random.seed(5)
        return {name: x.tolist() for name, x in host(nn.Attention(8, 2)).items()}

    found = made()
    assert list(found) == ["qkv.weight", "qkv.bias", "output.weight", "output.bias"]
    with ember_ml.use_backend("numpy"):
        assert made() == found


def test_switch_state_and_kinds(backend: str) -> None:
    layer, x = nn.Attention(8, 2, causal=True, rotary=True), inputs(2, 5, 8, dtype="float32")
    check_switch(backend, lambda: layer(x))
    check_state_round_trip(lambda: nn.Attention(8, 2), lambda layer: layer(x))
    portable = nn.tensor.convert_to_tensor(ops.to_numpy(x))
    y, cache = layer(portable, state=layer.initial_state(2))
    assert type(y) is type(cache.key) is EmberTensor
    assert largest_difference(y, layer(ops.to_numpy(x).tolist())) < 1e-6


@pytest.mark.long
def test_compiled(backend: str) -> None:
    layer, x = nn.Attention(8, 2, causal=True, rotary=True), inputs(2, 5, 8, dtype="float32")
    step = nn.value_and_grad(layer, lambda x: ops.sum(ops.square(layer(x))))
    value, gradients = step(x)
    found, compiled = ember_ml.compile(step)(x)
    assert ops.item(found) == pytest.approx(ops.item(value), rel=1e-5)
    assert all(largest_difference(compiled[name], x) < 1e-4 for name, x in gradients.items())


def test_mistakes_are_explained(backend: str) -> None:
    with pytest.raises(ValueError, match="3 heads of Attention do not divide its hidden width 8"):
        nn.Attention(8, 3)
    with pytest.raises(ValueError, match="3 groups of Attention do not divide its 4 heads"):
        nn.Attention(8, 4, 3)
    with pytest.raises(ValueError, match=r"Attention takes x of shape \(batch, length, 8\), not \(2, 8\)"):
        nn.Attention(8)(ops.ones((2, 8)))
    with pytest.raises(ValueError, match="dropout"):
        nn.CrossAttention(8, dropout=1.0)
    with pytest.raises(ValueError, match="Attention and its heads are at least 1 wide, not 0"):
        nn.Attention(0, 1)
    attention = nn.Attention(8, 2, causal=False)
    with pytest.raises(ValueError, match="only a causal Attention carries a state"):
        attention(ops.ones((1, 2, 8)), state=nn.Attention(8, 2, causal=True).initial_state(1))

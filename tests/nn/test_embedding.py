"""Embeddings: what is looked up, and gradients of words that occur often or never."""

from __future__ import annotations

import pytest

from ember_ml import nn, ops
from ember_ml.nn import tensor
from tests.nn.layer_cases import flat


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_gradients_add_up_over_all_places_of_a_word(dtype: str, backend: str) -> None:
    layer = nn.Embedding(5, 2)
    words = ops.array([[1, 3, 1], [1, 0, 3]], dtype=dtype)
    factors = ops.reshape(ops.arange(1.0, 13.0), (2, 3, 2))
    _, gradients = nn.value_and_grad(layer, lambda: ops.sum(ops.multiply(layer(words), factors)))()
    want = [[9.0, 10.0], [1 + 5 + 7.0, 2 + 6 + 8.0], [0.0, 0.0], [3 + 11.0, 4 + 12.0], [0.0, 0.0]]
    assert ops.to_numpy(gradients["weight"]).tolist() == want


def test_words_of_any_shape_and_kind(backend: str) -> None:
    layer = nn.Embedding(4, 2).load_state_dict({"weight": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]})
    assert ops.to_numpy(layer(3)).tolist() == [6.0, 7.0]
    assert layer(tensor.array([[2], [-1]])).tolist() == [[[4.0, 5.0]], [[6.0, 7.0]]]
    assert ops.shape(layer(ops.zeros((2, 0, 3), dtype="int64"))) == (2, 0, 3, 2)


def test_what_is_refused(backend: str) -> None:
    with pytest.raises(IndexError):
        nn.Embedding(4, 2)([4])
    with pytest.raises((TypeError, IndexError), match="int"):
        nn.Embedding(4, 2)([1.5])


def test_it_starts_with_standard_normal_numbers(backend: str) -> None:
    weight = nn.Embedding(100, 50).weight
    assert ops.item(ops.mean(weight)) == pytest.approx(0.0, abs=0.05)
    assert ops.item(ops.std(weight)) == pytest.approx(1.0, abs=0.05)
    assert flat(nn.Embedding(3, 2, initializer="zeros").weight) == [0.0] * 6


def test_words_and_tables_of_many_samples_at_once(backend: str) -> None:
    words, tables = ops.array([[1, 3], [-1, 0]]), ops.reshape(ops.arange(24.0), (3, 4, 2))
    found = ops.vmap(lambda row: ops.take(tables[0], row, 0))(words)
    assert ops.to_numpy(found).tolist() == [[[2.0, 3.0], [6.0, 7.0]], [[6.0, 7.0], [0.0, 1.0]]]
    found = ops.vmap(lambda table: ops.take(table, words[0], 0))(tables)
    assert ops.to_numpy(found)[:, :, 0].tolist() == [[2.0, 6.0], [10.0, 14.0], [18.0, 22.0]]
    slopes = ops.vmap(ops.grad(lambda table: ops.sum(ops.square(ops.take(table, [3, 3], 0)))))(tables)
    assert ops.to_numpy(slopes)[1].tolist() == [[0.0, 0.0]] * 3 + [[56.0, 60.0]]

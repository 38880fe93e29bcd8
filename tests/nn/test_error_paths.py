"""Errors inside a model name the module that raised them by its path, and nothing else changes in them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.errors import UnsupportedOp


class Decoder(nn.Module):
    def __init__(self) -> None:
        self.h = [nn.blocks.Residual(nn.LayerNorm(4), nn.MLP(8, 4, 4)) for _ in range(2)]
        self.heads = {"small": nn.Linear(5, 2)}

    def forward(self, x: Any, head: str | None = None) -> Any:
        for block in self.h:
            x = block(x)
        return x if head is None else self.heads[head](x)


def test_a_wrong_shape_names_the_path_of_the_layer(backend: str) -> None:
    model = Decoder()
    with pytest.raises(ValueError, match=r"^h\.0\.0 \(LayerNorm\): ops\.layer_normalization\(x=float32\(3, 5\), "):
        model(ops.ones((3, 5)))
    with pytest.raises(ValueError, match=r"^heads\.small \(Linear\): ops\.linear\(x=float32\(3, 4\), "):
        model(ops.ones((3, 4)), "small")
    model.h[1] = nn.blocks.Residual(nn.MLP(8, 4, 6))
    with pytest.raises(ValueError, match=r"^h\.1\.0\.up \(Linear\): ops\.linear\(x=float32\(3, 4\), "):
        nn.value_and_grad(model, lambda x: ops.sum(model(x)))(ops.ones((3, 4)))


def test_the_module_that_is_called_itself_has_no_path(backend: str) -> None:
    with pytest.raises(ValueError, match=r"^ops\.linear"):
        nn.Linear(3, 2)(ops.ones((1, 4)))


def test_a_layer_that_cannot_be_built_is_named(backend: str) -> None:
    with pytest.raises(IndexError, match=r"^1 \(Linear\): "):
        nn.Sequential(nn.Identity(), nn.Linear(2))(ops.array(1.0))


class Fails(nn.Module):
    def __init__(self, error: Exception) -> None:
        self._error = error

    def forward(self, x: Any) -> Any:
        raise self._error


@pytest.mark.parametrize("error", [KeyError("k"), ValueError(1, 2), ValueError(), UnicodeError("u"), OSError(2, "x")])
def test_other_errors_are_left_as_they_are(error: Exception) -> None:
    text = str(error)
    with pytest.raises(type(error)) as caught:
        nn.Sequential(Fails(error))(1.0)
    assert caught.value is error
    assert str(error) == text


def test_errors_of_the_library_are_named_and_travel(backend: str) -> None:
    with pytest.raises(UnsupportedOp, match=r"^0\.0 \(Fails\): not here$") as caught:
        nn.Sequential(nn.Sequential(Fails(UnsupportedOp("not here"))))(1.0)
    sent = pickle.loads(pickle.dumps(caught.value))
    assert str(sent) == "0.0 (Fails): not here"


def test_a_module_that_is_no_attribute_is_left_out_of_the_path(backend: str) -> None:
    inner = nn.Sequential(nn.Linear(3, 2))

    class Caller(nn.Module):
        def forward(self, x: Any) -> Any:
            return inner(x)

    with pytest.raises(ValueError, match=r"^0\.0 \(Linear\): |^0 \(Linear\): "):
        nn.Sequential(Caller())(ops.ones((1, 4)))

"""Activations, normalizations and losses inside functions that a library traces: the same numbers as outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ember_ml
from ember_ml import ops
from tests.ops.test_activations import ALONG_AXIS, ELEMENTWISE


def _weights(x: Any) -> Any:
    return ops.add(ops.abs(x[0]), 0.5)


CASES: dict[str, Callable[[Any], Any]] = {name: getattr(ops, name) for name in (*ELEMENTWISE, *ALONG_AXIS)}
CASES |= {
    "exact gelu": lambda x: ops.gelu(x, approximate=False),
    "prelu": lambda x: ops.prelu(x, _weights(x)),
    "threshold": lambda x: ops.threshold(x, 0.5, 2.0),
    "layer_normalization": lambda x: ops.layer_normalization(x, _weights(x), _weights(x)),
    "layer_normalization, first": lambda x: ops.layer_normalization(x, axis=0),
    "rms_normalization": lambda x: ops.rms_normalization(x, _weights(x)),
    "batch_normalization": lambda x: ops.batch_normalization(x, _weights(x), _weights(x), -1),
    "moments_normalization": lambda x: ops.moments_normalization(x, -1, _weights(x), _weights(x))[0],
    "group_normalization": lambda x: ops.group_normalization(x, 2, _weights(x)),
    "mean_squared_error": lambda x: ops.mean_squared_error(ops.zeros((3, 4)), x),
    "mean_absolute_error": lambda x: ops.mean_absolute_error(ops.zeros((3, 4)), x),
    "huber_loss": lambda x: ops.huber_loss(ops.zeros((3, 4)), x),
    "log_cosh_loss": lambda x: ops.log_cosh_loss(ops.zeros((3, 4)), x),
    "kl_divergence": lambda x: ops.kl_divergence(ops.softmax(x), ops.sigmoid(x)),
    "binary_crossentropy": lambda x: ops.binary_crossentropy(ops.sigmoid(x), ops.softmax(x)),
    "binary_crossentropy of logits": lambda x: ops.binary_crossentropy(ops.sigmoid(x), x, from_logits=True),
    "categorical_crossentropy": lambda x: ops.categorical_crossentropy(ops.sigmoid(x), ops.softmax(x)),
    "categorical_crossentropy of logits": lambda x: ops.categorical_crossentropy(ops.sigmoid(x), x, True),
    "sparse_categorical_crossentropy": lambda x: ops.sparse_categorical_crossentropy(ops.arange(3), ops.softmax(x)),
    "ctc_loss": lambda x: ops.ctc_loss(
        ops.reshape(ops.arange(4), (2, 2)), ops.stack([x, ops.negative(x)]), ops.arange(1, 3), ops.arange(2, 4), 1
    ),
}


@pytest.fixture
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    module = pytest.importorskip(request.param)
    before = ember_ml.get_backend()
    ember_ml.set_backend(request.param.partition(".")[0])
    yield module
    ember_ml.set_backend(before)


def _input() -> Any:
    return ops.reshape(ops.multiply(ops.sin(ops.arange(12, dtype="float32")), 3.0), (3, 4))


@pytest.mark.parametrize("library", ["torch"], indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_torch_compiles_it_whole(name: str, library: Any) -> None:
    library._dynamo.reset()
    x = _input()
    compiled = library.compile(CASES[name], fullgraph=True, backend="eager")
    library.testing.assert_close(compiled(x), CASES[name](x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("library", ["mlx.core"], indirect=True)
@pytest.mark.parametrize("name", CASES)
def test_mlx_compiles_it(name: str, library: Any) -> None:
    x = _input()
    got, wanted = library.compile(CASES[name])(x), CASES[name](x)
    assert library.allclose(got, wanted, rtol=1e-5, atol=1e-6).item()


@pytest.mark.parametrize("library", ["mlx.core"], indirect=True)
def test_the_kernels_that_mlx_runs_on_the_gpu_compute_the_same(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = _input(), ops.array([0.5, 1.0, 1.5, 2.0])
    wanted = [ops.layer_normalization(x, weight, weight), ops.rms_normalization(x, weight)]
    monkeypatch.setattr("ember_ml.backend.mlx.bodies.normalizations.has_kernel", lambda x, axes: True)
    for got, want in zip(
        [ops.layer_normalization(x, weight, weight), ops.rms_normalization(x, weight)], wanted, strict=True
    ):
        assert library.allclose(got, want, rtol=1e-5, atol=1e-6).item()

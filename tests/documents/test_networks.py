"""The layers and models of the architecture document, as it prints them, and its roles as the library brings them."""

from __future__ import annotations

import pytest

import ember_ml
from ember_ml import nn, ops
from ember_ml.backend import installed_backends
from ember_ml.nn import Model, tensor
from ember_ml.nn.layers import base, channel_mixing, sequence_mixing, specialized

pytestmark = pytest.mark.usefixtures("backend")


from typing import Optional  # noqa: E402


class ChannelMixingLayer(base.Layer):
    """Base class for channel-mixing layers."""

    def forward(self, x: tensor.Tensor) -> tensor.Tensor:
        x = tensor.convert_to_tensor(x)
        # Layer logic using only ops abstraction
        return x  # noqa: RET504


class SequenceMixingLayer(base.Layer):
    """Base class for sequence-mixing layers."""

    def forward(self, x: tensor.Tensor, mask: Optional[tensor.Tensor] = None) -> tensor.Tensor:  # noqa: UP045
        x = tensor.convert_to_tensor(x)
        if mask is not None:
            mask = tensor.convert_to_tensor(mask)
            x = ops.multiply(x, mask)
        return x


class ModelConfig:
    """The document does not print it; the model reads its ``hidden_size``."""

    hidden_size = 8


class HybridModel(Model):
    """Model combining different layer types."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.channel_mixer = channel_mixing.MLP(config.hidden_size)
        self.sequence_mixer = sequence_mixing.Attention(config.hidden_size)

    def forward(self, x: tensor.Tensor) -> tensor.Tensor:
        x = tensor.convert_to_tensor(x)
        # Use only ops and registered layers
        x = self.channel_mixer(x)
        return self.sequence_mixer(x)


SOURCES = {
    "python": lambda data: data,
    "native": lambda data: ops.array(data),
    "portable": lambda data: tensor.array(data),
}


@pytest.fixture(params=list(SOURCES))
def source(request):
    return SOURCES[request.param]


def test_layer_primitives(source):
    assert ChannelMixingLayer()(source([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]
    mixing = SequenceMixingLayer()
    assert mixing(source([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]
    assert mixing(source([[1.0, 2.0]]), mask=source([[0.0, 1.0]])).tolist() == [[0.0, 2.0]]
    assert mixing(source([[1.0, 2.0]]), source([[1.0, 0.0]])).tolist() == [[1.0, 0.0]]


def test_layer_primitives_of_the_library(backend):
    from ember_ml.nn.layers import base, channel_mixing, sequence_mixing

    for kind in (channel_mixing.ChannelMixingLayer, sequence_mixing.SequenceMixingLayer):
        assert issubclass(kind, base.Layer)
        assert ops.to_numpy(kind()([[1.0, 2.0]])).tolist() == [[1.0, 2.0]]


def test_layer_primitives_in_a_network():
    class Scaled(ChannelMixingLayer):
        def __init__(self):
            self.scale = nn.Parameter([2.0, 3.0])

        def forward(self, x):
            return ops.multiply(super().forward(x), self.scale)

    model = nn.Sequential(Scaled(), SequenceMixingLayer())
    value, gradients = nn.value_and_grad(model, lambda x: ops.sum(model(x)))([[1.0, 10.0]])
    assert (ops.item(value), ops.to_numpy(gradients["0.scale"]).tolist()) == (32.0, [1.0, 10.0])


def test_hybrid_model(source):
    ops.random.seed(0)
    model = HybridModel(ModelConfig())
    data = [[[0.1 * (i + j) for j in range(8)] for i in range(5)]]
    result = model(source(data))
    assert isinstance(result, tensor.EmberTensor)
    assert result.shape == (1, 5, 8)
    assert {name.partition(".")[0] for name in model.named_parameters()} == {"channel_mixer", "sequence_mixer"}


def test_hybrid_model_computes_and_learns_the_same_on_every_backend(backend):
    x = [[[0.1 * (i - j) for j in range(8)] for i in range(5)]]
    values, gradients = [], []
    try:
        for name in installed_backends():
            ember_ml.set_backend(name)
            ops.random.seed(0)
            model = HybridModel(ModelConfig())
            value, found = nn.value_and_grad(model, lambda x, model=model: ops.sum(ops.square(model(x))))(x)
            values.append(ops.item(value))
            gradients.append({key: ops.to_numpy(y).ravel().tolist() for key, y in found.items()})
    finally:
        ember_ml.set_backend(backend)
    assert values == [pytest.approx(values[0], rel=1e-5)] * len(values)
    for found in gradients[1:]:
        assert {key: pytest.approx(y, rel=1e-4, abs=1e-6) for key, y in found.items()} == gradients[0]


def test_the_roles_of_the_document_are_in_the_library(source):
    """The class that the document prints is that of the library: same roles, same method, same default."""
    processor = specialized.SpecializedProcessor
    assert processor("memory").process(source([1.0])).tolist() == pytest.approx([0.95])
    assert processor("inhibition").process(source([1.0])).tolist() == [-0.5]
    assert processor().process(source([1.0])).tolist() == [1.0]
    assert processor().role == "default"
    assert isinstance(processor("memory").process(source([1.0])), tensor.EmberTensor)

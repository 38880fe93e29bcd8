"""The front-end patterns of the architecture document, as it prints them."""

from __future__ import annotations

import pytest

from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn import tensor

pytestmark = pytest.mark.usefixtures("backend")


from typing import Optional  # noqa: E402


def process_data(x: tensor.Tensor) -> tensor.Tensor:
    """Apply sinusoidal transformation to input tensor.

    Args:
        x: Input tensor to process

    Returns:
        Transformed tensor
    """
    x = tensor.convert_to_tensor(x)
    return ops.sin(x)  # Backend-agnostic operation


def normalize_data(x: tensor.Tensor) -> tensor.Tensor:
    """Normalize input tensor to [0, 1] range.

    Args:
        x: Input tensor with values in [0, 255]

    Returns:
        Normalized tensor with values in [0, 1]
    """
    x = tensor.convert_to_tensor(x)
    return ops.divide(x, ops.cast(255.0, x.dtype))


class FeatureExtractor:
    def __init__(self, feature_dim: int):
        self.feature_dim = feature_dim

    def extract(self, input_data: tensor.Tensor, mask: Optional[tensor.Tensor] = None) -> tensor.Tensor:  # noqa: UP045
        """Extract features from input data.

        Args:
            input_data: Raw input tensor
            mask: Optional mask tensor

        Returns:
            Processed feature tensor
        """
        x = tensor.convert_to_tensor(input_data)
        if mask is not None:
            mask = tensor.convert_to_tensor(mask)
            x = ops.multiply(x, mask)
        return x


def scatter_mean(
    values: tensor.Tensor,
    indices: tensor.Tensor,
    dim_size: Optional[int] = None,  # noqa: UP045
) -> tensor.Tensor:
    """Scatter-mean operation with backend agnosticism.

    Args:
        values: Source tensor containing values to scatter
        indices: Target indices for scattering
        dim_size: Optional size of output dimension

    Returns:
        Tensor with mean-aggregated scattered values
    """
    values = tensor.convert_to_tensor(values)
    indices = tensor.convert_to_tensor(indices)

    # First compute sum
    sum_result = ops.scatter(values, indices, dim_size, "add")

    # Then compute count using ones
    ones = ops.ones_like(values)
    count = ops.scatter(ones, indices, dim_size, "add")

    # Avoid division by zero
    count = ops.where(count == 0, ops.ones_like(count), count)

    return ops.divide(sum_result, count)


class SpecializedProcessor:
    """Backend-agnostic specialized neural processing."""

    def __init__(self, role: str = "default"):
        self.role = role

    def process(self, x: tensor.Tensor) -> tensor.Tensor:
        """Process input based on specialization role."""
        x = tensor.convert_to_tensor(x)

        if self.role == "memory":
            # Slower decay for memory
            return ops.multiply(x, 0.95)
        if self.role == "inhibition":
            # Signal dampening
            return ops.multiply(x, -0.5)
        return x


def scatter_example(data: tensor.Tensor, indices: tensor.Tensor) -> tensor.Tensor:
    """Demonstrate backend-agnostic scatter operation.

    Args:
        data: Source tensor to scatter
        indices: Target indices for scattering

    Returns:
        Scattered tensor
    """
    data = tensor.convert_to_tensor(data)
    indices = tensor.convert_to_tensor(indices)
    return ops.scatter(data, indices, aggr="add")


def compute(x: tensor.Tensor, y: tensor.Tensor) -> tensor.Tensor:
    return ops.matmul(x, y)


def process(x: tensor.Tensor) -> tensor.Tensor:
    return ops.relu(x)


SOURCES = {
    "python": lambda data: data,
    "native": lambda data: ops.array(data),
    "portable": lambda data: tensor.array(data),
}


@pytest.fixture(params=list(SOURCES))
def source(request):
    return SOURCES[request.param]


def test_conversion_gives_portable_tensors(source):
    result = process_data(source([0.0, 1.0]))
    assert isinstance(result, tensor.EmberTensor)
    assert result.tolist() == pytest.approx([0.0, 0.8414710])
    assert normalize_data(source([0.0, 51.0, 255.0])).tolist() == pytest.approx([0.0, 0.2, 1.0])


def test_normalize_keeps_half_precision():
    result = normalize_data(tensor.array([51.0], dtype=tensor.float16))
    assert result.dtype == tensor.float16


def test_feature_extractor_masks(source):
    extractor = FeatureExtractor(3)
    assert extractor.extract(source([1.0, 2.0, 3.0]), source([1.0, 0.0, 1.0])).tolist() == [1.0, 0.0, 3.0]
    assert extractor.extract(source([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_scatter_patterns(source):
    assert scatter_mean(source([1.0, 2.0, 3.0, 4.0]), source([0, 0, 2, 2]), 4).tolist() == [1.5, 0.0, 3.5, 0.0]
    assert scatter_mean(source([1.0, 3.0]), source([1, 1])).tolist() == [0.0, 2.0]
    assert scatter_example(source([1.0, 2.0, 3.0]), source([0, 1, 0])).tolist() == [4.0, 2.0]


def test_specialized_roles(source):
    assert SpecializedProcessor("memory").process(source([1.0])).tolist() == pytest.approx([0.95])
    assert SpecializedProcessor("inhibition").process(source([1.0])).tolist() == [-0.5]
    assert SpecializedProcessor().process(source([1.0])).tolist() == [1.0]


def test_best_practices(source):
    a, b = source([[1.0, 2.0], [3.0, 4.0]]), source([[1.0, 0.0], [0.0, 1.0]])
    result = ops.matmul(a, b)
    assert ops.to_numpy(result).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert ops.to_numpy(compute(a, b)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert ops.to_numpy(process(source([-1.0, 2.0]))).tolist() == [0.0, 2.0]


def test_backend_equivalence():
    """Verify operation equivalence across backends."""
    x = tensor.ones((10,))

    # Test with each backend
    results = []
    backends = [name for name in ["numpy", "torch", "mlx"] if name in installed_backends()]
    for backend in backends:
        ops.set_backend(backend)
        result = ops.scatter(x, tensor.array([0, 1, 0]))
        # Results should match within numerical precision
        results.append(result.tolist())
    assert results == [[2.0, 1.0]] * len(backends)


def test_casts_by_pytorchs_names(backend):
    assert tensor.EmberTensor([1.0, 2.0]).long().dtype == tensor.int64


def test_scatter_edge_cases():
    """Test scatter operations with edge cases."""
    # Empty tensor case
    empty = tensor.array([])
    indices = tensor.array([], dtype=tensor.int32)
    result = ops.scatter(empty, indices)
    assert result.shape == (0,)

    # Large dimension case
    large = tensor.ones((10000,))
    sparse_indices = tensor.array([0, 9999])
    result = ops.scatter(large, sparse_indices)
    assert result.shape == (10000,)
    assert ops.sum(result).item() == 2.0


def test_verify_type_safety():
    """Verify type safety across operations."""
    # Input type checking
    x = tensor.ones((10,), dtype=tensor.float32)
    y = tensor.ones((10,), dtype=tensor.float16)

    # Should raise TypeError for mismatched precision
    with pytest.raises(TypeError, match="half precision"):
        ops.matmul(x, y)


def test_splitting_a_batch():
    batch = tensor.convert_to_tensor([[1.0], [2.0], [3.0], [4.0]])
    assert [part.tolist() for part in ops.split(batch, 2)] == [[[1.0], [2.0]], [[3.0], [4.0]]]


def test_standardizing_rows():
    x = tensor.convert_to_tensor([[1.0, 3.0], [2.0, 6.0]])
    mean = ops.reduce_mean(x, axis=1, keepdims=True)
    std = ops.reduce_std(x, axis=1, keepdims=True)
    assert ops.divide(ops.subtract(x, mean), std).tolist() == [[-1.0, 1.0], [-1.0, 1.0]]


from ember_ml.features import base  # noqa: E402


class TimeSeriesFeatures(base.FeatureExtractor):
    """Extract features from time series data."""

    def extract(self, data: tensor.Tensor) -> tensor.Tensor:
        x = tensor.convert_to_tensor(data)
        # Use ops for all computations
        mean = ops.reduce_mean(x, axis=1, keepdims=True)
        std = ops.reduce_std(x, axis=1, keepdims=True)
        return ops.divide(ops.subtract(x, mean), std)


def test_the_feature_extraction_framework():
    extractor = TimeSeriesFeatures()
    for found in (
        extractor.extract(tensor.array([[1.0, 3.0], [0.0, 4.0]])),
        extractor.fit_transform([[1.0, 3.0], [0.0, 4.0]]),
    ):
        assert type(found) is tensor.EmberTensor
        assert found.tolist() == [[-1.0, 1.0], [-1.0, 1.0]]


def test_the_feature_pattern_is_an_extractor():
    class Masked(FeatureExtractor, base.FeatureExtractor):
        pass

    masked = Masked(feature_dim=2)
    assert masked.extract(tensor.array([1.0, 2.0]), mask=tensor.array([1.0, 0.0])).tolist() == [1.0, 0.0]
    assert masked([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert masked.get_params() == {"feature_dim": 2}

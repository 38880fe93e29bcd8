"""The good patterns of the purification guidelines, as the guidelines print them."""

from __future__ import annotations

import warnings

import pytest

import ember_ml
from ember_ml import ops
from ember_ml.nn import tensor

pytestmark = pytest.mark.usefixtures("backend")


def calculate_statistics(data):
    mean = ops.mean(data)
    # Calculate standard deviation using ops
    variance = ops.mean(ops.square(ops.subtract(data, mean)))
    std = ops.sqrt(variance)
    return mean, std


def process_tensor(tensor):
    return ops.multiply(tensor, 2)


def normalize(tensor):
    min_val = ops.min(tensor)
    max_val = ops.max(tensor)
    range_val = ops.subtract(max_val, min_val)
    return ops.divide(ops.subtract(tensor, min_val), range_val)


def calculate_average(values):
    return ops.mean(values)  # Preferred approach


def calculate_average_by_division(values):
    return ops.divide(ops.sum(values), ops.full((), len(values), dtype=ops.float32))


def process_data(tensor):
    # All operations use ops
    return ops.log(ops.add(1, ops.abs(tensor)))


def calculate_distances(points):
    # Expand dimensions to create pairs
    points_i = ops.expand_dims(points, axis=1)  # Shape: [N, 1, D]
    points_j = ops.expand_dims(points, axis=0)  # Shape: [1, N, D]

    # Calculate pairwise differences and distances in one vectorized operation
    diff = ops.subtract(points_i, points_j)  # Shape: [N, N, D]
    sq_diff = ops.square(diff)  # Shape: [N, N, D]
    sq_dist = ops.sum(sq_diff, axis=2)  # Shape: [N, N]

    # Extract upper triangular part (excluding diagonal)
    indices = ops.triu_indices(len(points), k=1)
    distances = ops.sqrt(sq_dist[indices])

    return distances  # noqa: RET504


def normalize_data(tensor, mean, std):
    # Using ops functions preserves lazy evaluation in supported backends
    return ops.divide(ops.subtract(tensor, mean), std)


def compute_loss(predictions, targets):
    diff = ops.subtract(predictions, targets)
    squared_diff = ops.square(diff)  # or ops.power(diff, 2)
    loss = ops.mean(squared_diff)
    return loss  # noqa: RET504


def mixed_operations(a, b, c):
    # This preserves the computation graph
    return ops.multiply(ops.add(a, b), c)


def create_tensor(shape, dtype=ops.float32):
    return ops.zeros(shape, dtype=dtype)


def process_input(x):
    # Convert to tensor in the current backend
    tensor = ops.convert_to_tensor(x)
    # Process using ops functions
    result = ops.negative(tensor)
    return result  # noqa: RET504


def place_on_device(tensor, device="cuda"):
    return ops.to_device(tensor, device)


def _list(x):
    return ops.to_numpy(x).tolist()


DATA = [1.0, 2.0, 3.0, 4.0]


@pytest.fixture(params=["native", "portable", "python"])
def data(request, backend):
    if request.param == "python":
        return DATA
    return ops.array(DATA) if request.param == "native" else tensor.array(DATA)


def test_statistics(data):
    mean, std = calculate_statistics(data)
    assert _list(mean) == 2.5
    assert _list(std) == pytest.approx(1.25**0.5)


def test_arithmetic(data):
    assert _list(process_tensor(data)) == [2.0, 4.0, 6.0, 8.0]
    assert _list(normalize(data)) == pytest.approx([0.0, 1 / 3, 2 / 3, 1.0])
    assert _list(calculate_average(data)) == 2.5
    assert _list(calculate_average_by_division(data)) == 2.5
    assert _list(process_data(data)) == pytest.approx([0.6931472, 1.0986123, 1.3862944, 1.6094379])
    assert _list(normalize_data(data, 2.0, 0.5)) == [-2.0, 0.0, 2.0, 4.0]
    assert _list(compute_loss(data, [1.0, 1.0, 1.0, 1.0])) == 3.5
    assert _list(mixed_operations(data, data, 0.5)) == DATA
    assert _list(process_input(data)) == [-1.0, -2.0, -3.0, -4.0]


@pytest.mark.parametrize("make", [ops.array, tensor.array], ids=["native", "portable"])
def test_distances(make):
    assert _list(calculate_distances(make([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))) == pytest.approx([5.0, 1.0, 18**0.5])


def test_creation_and_devices(backend):
    made = create_tensor((2, 3))
    assert ops.dtype(made) == ops.float32
    assert ops.shape(made) == (2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a machine without CUDA says once that it uses the CPU
        placed = place_on_device(made)
    assert _list(placed) == [[0.0] * 3] * 2
    assert ops.shape(placed) == (2, 3)
    assert ops.ndim(placed) == 2
    assert ember_ml.get_backend() == backend


def test_values_survive_float16_and_float32():
    for dtype in (ops.float16, ops.float32):
        x = ops.array(DATA, dtype=dtype)
        assert ops.dtype(mixed_operations(x, x, 0.5)) == dtype
        assert _list(mixed_operations(x, x, 0.5)) == DATA

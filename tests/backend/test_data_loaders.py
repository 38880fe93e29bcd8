"""PyTorch's own data loader as the data of ours, on every backend."""

from __future__ import annotations

from typing import Any

import pytest

from ember_ml import ops
from ember_ml.backend.selection import active
from ember_ml.training import DataLoader

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("prefetch", [0, 2])
def test_pytorch_loaders(prefetch: int, backend: str) -> None:
    x, y = torch.arange(10, dtype=torch.float32).reshape(5, 2), torch.arange(5)
    theirs = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=2)
    loader = DataLoader(theirs, prefetch=prefetch)
    assert len(loader) == 3
    for _ in range(2):
        batches = list(loader)
        assert all(type(batch) is tuple and all(map(active().is_native, batch)) for batch in batches)
        assert [ops.to_numpy(batch[1]).tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
        assert ops.to_numpy(batches[1][0]).tolist() == [[4.0, 5.0], [6.0, 7.0]]
    with pytest.raises(ValueError, match="leave batch_size out"):
        DataLoader(theirs, batch_size=2)


def test_samples_of_a_pytorch_dataset(backend: str) -> None:
    data = torch.utils.data.TensorDataset(torch.eye(3), torch.arange(3))

    def samples() -> Any:
        return (data[i] for i in range(len(data)))

    (batch,) = DataLoader(samples, batch_size=3, prefetch=1)
    assert ops.to_numpy(batch[0]).tolist() == torch.eye(3).tolist()
    assert ops.to_numpy(batch[1]).tolist() == [0, 1, 2]

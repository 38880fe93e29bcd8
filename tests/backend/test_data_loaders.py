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


class Rows(torch.utils.data.Dataset):
    """Twenty-three samples that tell their numbers; it notes which were asked for."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 23

    def __getitem__(self, index: int) -> Any:
        self.read.append(int(index))
        return torch.tensor([float(index)]), index


def shuffled(data: Any, batch_size: int = 4) -> Any:
    generator = torch.Generator().manual_seed(5)
    return torch.utils.data.DataLoader(data, batch_size=batch_size, shuffle=True, generator=generator)


def numbers(batch: Any) -> list[int]:
    return ops.to_numpy(batch[1]).tolist()


def join(parts: list[list[Any]]) -> list[list[int]]:
    """The batches of which the ranks have these parts."""
    return [[number for part in batch for number in numbers(part)] for batch in zip(*parts, strict=True)]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_load_their_own_samples_of_a_pytorch_loader(ranks: int, backend: str) -> None:
    theirs = shuffled(Rows())
    expected = [[batch[1].tolist() for batch in theirs] for _ in range(3)]
    data = [Rows() for _ in range(ranks)]
    loaders = [DataLoader(shuffled(x)).shard(rank, ranks) for rank, x in enumerate(data)]
    for epoch in expected:
        parts = [list(loader) for loader in loaders]
        assert join(parts) == epoch
    # of the last batch of three, one of four ranks has nothing, and reads a sample to know its shape
    assert sum(len(x.read) for x in data) == 3 * (23 + (ranks == 4))
    assert sorted(number for epoch in expected for batch in epoch for number in batch) == sorted([*range(23)] * 3)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (4, 2), (2, 1)])
def test_a_pytorch_loader_goes_on_with_another_number_of_ranks(before: int, after: int) -> None:
    theirs = shuffled(Rows())
    expected = [[batch[1].tolist() for batch in theirs] for _ in range(3)]
    loaders = [DataLoader(shuffled(Rows())).shard(rank, before) for rank in range(before)]
    states = []
    for loader in loaders:
        list(loader)
        batches = iter(loader)
        for _ in range(2):
            next(batches)
        states.append(loader.state())
    assert all(state == states[0] for state in states)
    data = [Rows() for _ in range(after)]
    for is_new in (True, False):  # also with the loader that has begun that epoch, and gone on
        if is_new:
            loaders = [DataLoader(shuffled(x)).shard(rank, after) for rank, x in enumerate(data)]
        for loader in loaders:
            loader.restore(states[0])
        for epoch in (expected[1][2:], expected[2]):
            parts = [list(loader) for loader in loaders]
            assert join(parts) == epoch
        if is_new:
            assert sum(len(x.read) for x in data) == 23 - 8 + 23  # nothing that was seen is read again


def test_orders_that_differ_between_ranks_are_found_by_the_first_batch() -> None:
    found: list[str] = []
    for seed in (1, 1, 2):
        generator = torch.Generator().manual_seed(seed)
        theirs = torch.utils.data.DataLoader(Rows(), batch_size=8, shuffle=True, generator=generator)
        next(iter(DataLoader(theirs).shard(len(found) % 2, 2, found.append)))
    assert found[0] == found[1] != found[2]


@pytest.mark.long
def test_workers_of_a_share_load_the_same_samples() -> None:
    expected = [batch[1].tolist() for batch in shuffled(Rows())]
    parts = []
    for rank in range(2):
        generator = torch.Generator().manual_seed(5)
        # where JAX was used before, it warns of forks
        workers = {"num_workers": 2, "persistent_workers": True, "multiprocessing_context": "spawn"}
        theirs = torch.utils.data.DataLoader(Rows(), batch_size=4, shuffle=True, generator=generator, **workers)
        parts.append(list(DataLoader(theirs).shard(rank, 2)))
    assert join(parts) == expected

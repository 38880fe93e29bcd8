"""The strategy of the architecture document, as it prints it."""

from __future__ import annotations

from typing import List  # noqa: UP035

import pytest

from ember_ml import ops
from ember_ml.distributed import strategy
from ember_ml.errors import LaunchError
from ember_ml.nn import tensor

pytestmark = pytest.mark.usefixtures("backend")


class DataParallelStrategy(strategy.Strategy):
    """Data-parallel training strategy."""

    def distribute(self, batch: tensor.Tensor) -> List[tensor.Tensor]:  # noqa: UP006
        batch = tensor.convert_to_tensor(batch)
        # Split using ops
        return ops.split(batch, self.num_devices)


def test_the_strategy_of_the_document_splits_a_batch() -> None:
    parts = DataParallelStrategy(num_devices=2).distribute(tensor.array([[1.0], [2.0], [3.0], [4.0]]))
    assert [part.tolist() for part in parts] == [[[1.0], [2.0]], [[3.0], [4.0]]]


def test_rows_of_numbers_are_split(backend: str) -> None:
    parts = strategy.DataParallelStrategy(2).distribute([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert [ops.to_numpy(part).tolist() for part in parts] == [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]
    assert [ops.to_numpy(part).tolist() for part in strategy.DataParallelStrategy(2).distribute([1, 2])] == [[1], [2]]


def test_one_process_is_the_default() -> None:
    alone = DataParallelStrategy()
    assert (alone.num_devices, alone.world_size, alone.rank, alone.is_main) == (1, 1, 0, True)
    assert len(alone.distribute(tensor.array([1.0, 2.0]))) == 1


def test_asking_for_four_processes_and_having_one_is_an_error() -> None:
    from ember_ml import nn

    four = strategy.DataParallelStrategy(num_devices=4)
    assert len(four.distribute(ops.arange(8))) == 4
    for ask in (lambda: four.rank, lambda: four.world_size, lambda: four.prepare(nn.Linear(2, 1))):
        with pytest.raises(LaunchError, match="asks for 4 processes and runs on 1"):
            ask()

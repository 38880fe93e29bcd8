"""The tensor files of a checkpoint, opened by the libraries themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ember_ml import nn, ops
from ember_ml.training import Trainer, optimizers


def _saved(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The tensors of the model and of the optimizer of a trainer, whose checkpoint is written."""
    ops.random.seed(1)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm(4), ops.relu, nn.Flatten(), nn.Linear(4 * 4 * 4, 3))
    trainer = Trainer(model, optimizers.AdamW(0.01), "sparse_categorical_crossentropy", progress=False)
    trainer.fit(ops.random_normal((12, 6, 6, 1)), ops.random_integers((12,), 0, 3), batch_size=4)
    trainer.save(folder)
    parts = model.state_dict(), trainer.optimizer.state_dict()
    weights, slots = ({name: ops.to_numpy(x).copy() for name, x in part.items()} for part in parts)
    assert {"0.weight", "1.running_mean", "4.bias"} <= weights.keys()
    assert any(np.any(x != 0) for x in slots.values())
    return weights, slots


def _same(found: dict[str, Any], wanted: dict[str, np.ndarray], to_numpy: Any) -> bool:
    assert found.keys() == wanted.keys()
    arrays = {name: to_numpy(x) for name, x in found.items()}
    return all(arrays[name].dtype == x.dtype and np.array_equal(arrays[name], x) for name, x in wanted.items())


def test_torch_opens_a_checkpoint(backend: str, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    weights, slots = _saved(tmp_path)
    for file, wanted in (("model-3", weights), ("optimizer-3", slots)):
        assert _same(safetensors.load_file(tmp_path / f"{file}.safetensors"), wanted, lambda x: x.numpy())


def test_mlx_opens_a_checkpoint(backend: str, tmp_path: Path) -> None:
    mx = pytest.importorskip("mlx.core")
    weights, slots = _saved(tmp_path)
    for file, wanted in (("model-3", weights), ("optimizer-3", slots)):
        assert _same(mx.load(str(tmp_path / f"{file}.safetensors")), wanted, np.array)


def test_a_layer_of_torch_takes_the_weights(backend: str, tmp_path: Path) -> None:
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    ops.random.seed(2)
    trainer = Trainer(nn.Sequential(nn.Linear(4, 8), ops.tanh, nn.Linear(8, 3)), "sgd", progress=False)
    x = ops.random_normal((5, 4))
    trainer.step((x, ops.zeros((5, 3))))
    trainer.save(tmp_path)
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    theirs.load_state_dict(safetensors.load_file(tmp_path / "model-1.safetensors"))
    found = theirs(torch.tensor(ops.to_numpy(x).tolist())).detach().numpy()
    assert np.allclose(found, ops.to_numpy(trainer.predict(x)), atol=1e-6)

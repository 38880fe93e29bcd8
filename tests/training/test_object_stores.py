"""Checkpoints in object stores, through fsspec: whole or absent there too, whatever request fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.errors import CheckpointError
from ember_ml.training import Trainer, callbacks, checkpoints, optimizers
from tests.distributed.comparing import raised

fsspec = pytest.importorskip("fsspec")
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

PLACE = "memory://bucket/run"


class Broken(Exception):
    """An error of a library of its own, as those of object stores have."""


class Faulty(MemoryFileSystem):
    """A store in memory that fails at one of its requests, as where the network goes away."""

    protocol = "faulty"
    fails_at = 0
    count = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return MemoryFileSystem._strip_protocol(path.removeprefix("faulty://"))

    @classmethod
    def ask(cls) -> None:
        cls.count += 1
        if cls.count == cls.fails_at:
            raise Broken("the store cannot be reached")

    def pipe_file(self, *arguments: Any, **settings: Any) -> Any:
        self.ask()
        return super().pipe_file(*arguments, **settings)

    def put_file(self, *arguments: Any, **settings: Any) -> Any:
        self.ask()
        return super().put_file(*arguments, **settings)

    def rm_file(self, path: str) -> Any:
        self.ask()
        return super().rm_file(path)

    def ls(self, *arguments: Any, **settings: Any) -> Any:
        self.ask()
        return super().ls(*arguments, **settings)

    def cat_file(self, *arguments: Any, **settings: Any) -> Any:
        self.ask()
        return super().cat_file(*arguments, **settings)


@pytest.fixture(autouse=True)
def store() -> Iterator[Any]:
    """An empty store."""
    files = fsspec.filesystem("memory")
    fsspec.register_implementation("faulty", Faulty, clobber=True)
    Faulty.fails_at = Faulty.count = 0
    files.store.clear()
    yield files
    files.store.clear()


def names(store: Any) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in store.ls("/bucket/run", detail=False))


def trainer(**settings: Any) -> Trainer:
    ops.random.seed(4)
    model = nn.Sequential(nn.Linear(4, 6), ops.tanh, nn.Linear(6, 1))
    return Trainer(model, optimizers.Adam(0.02), progress=False, **settings)


def data() -> tuple[Any, Any]:
    x = ops.random_normal((24, 4), seed=1)
    return x, ops.sum(x, axis=1, keepdims=True)


def test_a_run_goes_on_from_an_object_store(backend: str, store: Any) -> None:
    whole = trainer()
    whole.fit(*data(), epochs=3, batch_size=8)
    trainer(callbacks=[callbacks.Checkpoint(PLACE, every_steps=2)]).fit(*data(), epochs=2, batch_size=8)
    assert [name for name in names(store) if name.startswith("state")] == ["state-4.json", "state.json"]
    resumed = trainer(callbacks=[callbacks.Checkpoint(PLACE, every_steps=2, resume=True)])
    resumed.fit(*data(), epochs=3, batch_size=8)
    assert list(resumed.history["loss"]) == list(whole.history["loss"])
    for name, x in whole.model.state_dict().items():
        assert ops.to_numpy(resumed.model.state_dict()[name]).tolist() == ops.to_numpy(x).tolist()
    assert Trainer.load(PLACE, progress=False).steps == 9


def test_an_address_of_files_is_a_folder(tmp_path: Path) -> None:
    made = trainer()
    made.step(data())
    made.save(f"file://{tmp_path}/run")
    assert checkpoints.read(tmp_path / "run")[1]["steps"] == 1
    assert trainer().restore(f"file://{tmp_path}/run").steps == 1


def test_the_last_ones_are_kept_and_a_damaged_one_gives_way(store: Any) -> None:
    made = trainer()
    for _ in range(4):
        made.step(data())
        made.save(PLACE, keep=2)
    assert names(store) == [
        *(f"history-{step}.safetensors" for step in (3, 4)),
        *(f"model-{step}.safetensors" for step in (3, 4)),
        *(f"optimizer-{step}.safetensors" for step in (3, 4)),
        "state-3.json",
        "state.json",
    ]
    store.pipe_file("/bucket/run/model-4.safetensors", b"damaged")
    with pytest.warns(UserWarning, match="checkpoint of step 3 is read instead"):
        assert trainer().restore(PLACE).steps == 3
    store.rm_file("/bucket/run/model-3.safetensors")
    with pytest.raises(CheckpointError, match=r"memory://bucket/run/model-4\.safetensors is damaged"):
        trainer().restore(PLACE)


def test_nothing_is_there_before_the_first(store: Any) -> None:
    assert not checkpoints.exists(PLACE)
    with pytest.raises(CheckpointError, match="memory://bucket/run holds no checkpoint"):
        trainer().restore(PLACE)


def test_whatever_request_fails_the_old_checkpoint_or_the_new_one_is_there() -> None:
    address = "faulty://bucket/run"
    made = trainer()
    made.step(data())
    made.save(address)
    kept, failures = 1, 0
    for request in range(1, 100):
        made.step(data())
        Faulty.count, Faulty.fails_at = 0, request
        error = raised(made.save, address, 2)
        if error[0] != "nothing":
            assert "cannot be reached" in error[1]
            failures += 1
        else:
            kept = made.steps
        is_over = Faulty.count < request
        Faulty.fails_at = 0
        assert trainer().restore(address).steps == kept
        if is_over:
            break
    assert failures > 8
    made.save(address, keep=1)  # and what the failed ones have left is gone
    assert len(made.history["loss"]) == made.steps
    assert len(fsspec.filesystem("memory").ls("/bucket/run")) == 4


@pytest.mark.parametrize("request_number", [1, 2])
def test_a_store_that_cannot_be_reached_is_no_store_without_a_checkpoint(request_number: int) -> None:
    address = "faulty://bucket/run"
    made = trainer()
    for _ in range(2):
        made.step(data())
        made.save(address, keep=2)
    Faulty.count, Faulty.fails_at = 0, request_number  # neither a new beginning nor the older one
    again = trainer(callbacks=[callbacks.Checkpoint(address, resume=True)])
    with pytest.raises(ConnectionError, match="cannot be reached"):
        again.fit(*data(), epochs=1, batch_size=8)
    assert again.steps == 0


def test_without_fsspec_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"ember-ml\[stores\]"):
        trainer().save(PLACE)

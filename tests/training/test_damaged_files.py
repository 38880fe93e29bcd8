"""Checkpoints and configurations that are damaged or forged: a clear error, no crash, and nothing half restored."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ember_ml import nn, ops, registry
from ember_ml.errors import CheckpointError, ConfigError
from ember_ml.training import Trainer, callbacks, optimizers, schedules
from ember_ml.training import trainer_state as resuming

FILES = ("state.json", "model-5.safetensors", "optimizer-5.safetensors", "gradients-5.safetensors")
FILES = (*FILES, "callbacks-5.safetensors", "history-5.safetensors")


def data() -> tuple[Any, Any]:
    x = ops.random_normal((24, 4), seed=1)
    return x, ops.argmax(ops.matmul(x, ops.random_normal((4, 3), seed=2)), axis=-1)


def trainer() -> Trainer:
    ops.random.seed(4)
    return Trainer(
        nn.Sequential(nn.Linear(4, 6), ops.tanh, nn.Dropout(0.2), nn.Linear(6, 3)),
        optimizers.Adam(schedules.Cosine(0.02, steps=40)),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        callbacks=[callbacks.EarlyStopping("loss", restore_best=True)],
        accumulate=2,
        progress=False,
    )


def everything(made: Trainer) -> Any:
    """All that a checkpoint restores, as plain data."""
    tensors = {
        part: {k: ops.to_numpy(x).tolist() for k, x in x.items()} for part, x in resuming.tensors_of(made).items()
    }
    return json.dumps([tensors, resuming.state_of(made)], sort_keys=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A checkpoint of the second epoch, amid two batches that make one update; and all that is in it."""

    class Stop(callbacks.Callback):
        def after_step(self, trainer: Trainer) -> None:
            trainer.should_stop = trainer.steps == 5

    folder = tmp_path_factory.mktemp("saved") / "run"
    made = trainer()
    made.callbacks.append(Stop())
    made.fit(*data(), epochs=3, batch_size=8)
    del made.callbacks[1:]
    made.should_stop = False
    made.save(folder)
    assert sorted(file.name for file in folder.iterdir()) == sorted(FILES)
    return folder, everything(made)


# damage that nobody meant


def flipped(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def lengthened(content: bytes, chance: random.Random) -> bytes:
    place = chance.choice([len(content), chance.randrange(len(content))])
    return content[:place] + chance.randbytes(chance.randint(1, 40)) + content[place:]


def shortened(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[:place] + content[place + chance.randint(1, 40) :]


def wiped(content: bytes, chance: random.Random) -> bytes:
    place, size = chance.randrange(len(content)), chance.choice([1, 16, 512])
    return (content[:place] + bytes(size) + content[place + size :])[: len(content)]


def turned(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content))
    return content[place:] + content[:place]


ACCIDENTS: list[Callable[[bytes, random.Random], bytes]] = [flipped, cut, lengthened, shortened, wiped, turned]


@pytest.mark.parametrize("count", [120, pytest.param(1000, marks=pytest.mark.long)])
def test_no_damage_goes_unnoticed(count: int, saved: tuple[Path, Any], tmp_path: Path) -> None:
    folder, wanted = saved
    made, refused = trainer(), 0
    before = everything(made)
    for number in range(count):
        chance = random.Random(number)
        run, name = tmp_path / str(number), chance.choice(FILES)
        shutil.copytree(folder, run)
        content = chance.choice(ACCIDENTS)((run / name).read_bytes(), chance)
        (run / name).write_bytes(content)
        refused += _is_refused(lambda: made.restore(run), run)  # noqa: B023
        if everything(made) != before:
            assert everything(made) == wanted, f"damage {number} of {name} was taken for a checkpoint"
            made = trainer()
        shutil.rmtree(run)
    assert refused > 0.95 * count


def _is_refused(action: Callable[[], Any], path: Path) -> bool:
    """Whether an error that names the path was raised; another error is let through."""
    try:
        action()
    except (CheckpointError, ConfigError) as error:
        said = str(error)
    else:
        return False
    assert str(path) in said
    return True


# forgery: what it says is absurd, and its checksums are right

ODD: list[Any] = [
    None, True, False, 0, 1, -1, 3, 2**63, 2**64, -(2**70), 10**300, 0.5, -1.5, 1e308, float("nan"), float("inf"),
    "", "x", "12", "../../etc/passwd", "/dev/zero", "\0", "\ud800", "__class__", "os.system", "model-5.safetensors",
    [], [1], [[]], [None, "x"], ["x", 1], [3, 4], [10**12, 10**12, 10**12], {}, {"a": 1}, {"type": "layers/linear"},
    {"type": "os.system", "command": "touch forged"}, {"type": "optimizers/adam", "learning_rate": "fast"},
]  # fmt: skip
DEEP: Any = 1
for _ in range(200):
    DEEP = [DEEP] if _ % 2 else {"state": DEEP}


def changed(document: Any, chance: random.Random) -> Any:
    """The document with something in it replaced, left out, renamed, added, doubled or exchanged."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(document)
    node, key = chance.choice(places)
    kind = chance.randrange(6)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[str(chance.choice(ODD))[:30]] = node.pop(key)
    elif kind == 2:
        other, place = chance.choice(places)
        node[key] = json.loads(json.dumps(other[place]))
    elif kind == 3:
        node[key] = [node[key]] * chance.choice([1, 2, 50]) if chance.random() < 0.5 else {"a": node[key]}
    elif kind == 4 and chance.random() < 0.3:
        node[key] = copy.deepcopy(DEEP)
    else:
        node[key] = copy.deepcopy(chance.choice(ODD))  # a later change must not change the table
    return document


def write_signed(folder: Path, document: dict[str, Any]) -> None:
    """Write a state with the checksum that it must have."""
    document.pop("sha256", None)
    text = json.dumps(document)
    signature = hashlib.sha256(text.encode()).hexdigest()
    (folder / "state.json").write_text(f'{text[:-1]}, "sha256": "{signature}"}}' if text != "{}" else text)


def forge_state(folder: Path, chance: random.Random) -> None:
    document = json.loads((folder / "state.json").read_text())
    for _ in range(chance.choice([1, 1, 1, 3])):
        part = document if chance.random() < 0.3 else document.get("state") or document
        if isinstance(part, dict | list) and part:
            changed(part, chance)
    write_signed(folder, document)


def forge_tensors(folder: Path, chance: random.Random) -> None:
    """Change the header or the bytes of a tensor file, and the checksums with it."""
    document = json.loads((folder / "state.json").read_text())
    part = chance.choice(["model", "optimizer", "gradients", "callbacks", "history"])
    path = folder / document["files"][part]["name"]
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    if chance.random() < 0.3:
        content = chance.choice(ACCIDENTS)(content, chance)
    else:
        header = json.dumps(changed(json.loads(content[8 : 8 + length]), chance)).encode()
        content = len(header).to_bytes(8, "little") + header + content[8 + length :]
    path.write_bytes(content)
    document["files"][part]["sha256"] = hashlib.sha256(content).hexdigest()
    write_signed(folder, document)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_a_forged_checkpoint_is_refused_or_makes_a_working_trainer(
    count: int, saved: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, _ = saved
    made, refused = trainer(), 0
    before = everything(made)
    for number in range(count):
        chance = random.Random(10_000 + number)
        run = tmp_path / str(number)
        shutil.copytree(folder, run)
        chance.choice([forge_state, forge_state, forge_tensors])(run, chance)
        if _is_refused(lambda: made.restore(run), run):  # noqa: B023
            assert everything(made) == before, f"forgery {number} was refused and has left something"
            refused += 1
        else:
            _use(made, run)
            made = trainer()
        shutil.rmtree(run)
    assert refused > count // 2
    assert list(tmp_path.iterdir()) == []


def _use(made: Trainer, folder: Path) -> None:
    """Whatever was accepted can be saved, and trained on if the data are those that it was made with."""
    made.save(folder)
    try:
        made.fit(*data(), epochs=made.epoch + 1, batch_size=8)
    except ValueError as error:
        if "cannot go on with" not in str(error) and "there is no batch" not in str(error):
            raise


@pytest.mark.parametrize("count", [60, pytest.param(500, marks=pytest.mark.long)])
def test_a_forged_description_builds_no_trainer_but_a_right_one(
    count: int, saved: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, _ = saved
    refused = 0
    for number in range(count):
        chance = random.Random(20_000 + number)
        run = tmp_path / str(number)
        shutil.copytree(folder, run)
        document = json.loads((run / "state.json").read_text())
        changed(document["state"]["config"], chance)
        write_signed(run, document)
        more = {"callbacks": trainer().callbacks, "progress": False}
        made: list[Trainer] = []
        if _is_refused(lambda: made.append(Trainer.load(run, **more)), run):  # noqa: B023
            refused += 1
        else:
            assert isinstance(made[0], Trainer)
        shutil.rmtree(run)
    assert refused > count // 2
    assert list(tmp_path.iterdir()) == []


# configurations


CONFIG = {
    "type": "layers/sequential",
    "parts": [
        {"type": "layers/linear", "inputs": 4, "outputs": 6, "bias": False},
        {"type": "layers/dropout", "rate": 0.25},
        {"type": "layers/layer_norm", "shape": [6]},
        {"type": "layers/linear", "inputs": 6, "outputs": 3, "initializer": "zeros"},
    ],
}


@pytest.mark.parametrize("form", ["json", "toml"])
@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.long)])
def test_a_mutated_configuration_is_refused_or_builds_a_module(
    count: int, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, refused = tmp_path / f"model.{form}", 0
    registry.save(registry.build(CONFIG), path)
    right = path.read_bytes()
    for number in range(count):
        chance = random.Random(30_000 + number)
        if form == "json" and chance.random() < 0.7:
            path.write_text(json.dumps(changed(json.loads(right), chance)))
        else:
            path.write_bytes(chance.choice(ACCIDENTS)(right, chance))
        made: list[Any] = []
        if _is_refused(lambda: made.append(registry.load(path)), path):  # noqa: B023
            refused += 1
        else:
            assert made[0] is not None
    assert refused > 0.6 * count
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", "[" * 100_000),
        ("json", '{"type": ' * 50_000 + "1" + "}" * 50_000),
        ("json", '{"type": "layers/linear", "inputs": ' + "9" * 5000 + "}"),
        ("json", '{"type": "layers/linear", "inputs": 1e999}'),
        ("json", '{"type": "layers/linear", "inputs": 4, "inputs": 5}'),
        ("json", "\ufeff{}"),
        ("json", " " * (1 << 25)),
        ("toml", "x = " + "[" * 100_000),
        ("toml", "a." * 2_000 + "b = 1"),
        ("toml", 'type = "layers/linear"\ninputs = 0x' + "f" * 10_000),
        ("toml", 'type = "layers/linear"\ninputs = 1979-05-27'),
        ("toml", 'type = "layers/linear"\ninputs = nan'),
    ],
)
def test_absurd_configurations(form: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"model.{form}"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=str(path)):
        registry.load(path)

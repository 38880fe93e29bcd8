"""Read the files of a folder that someone else made: nothing is executed, no path leads out, every size is bounded."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from ember_ml.backend.safetensors import MappedTensors
from ember_ml.core.atomic_files import replaced
from ember_ml.core.dtypes import EmberDType
from ember_ml.errors import ConfigError
from ember_ml.models.settings import parse_json

__all__ = ["COMPANIONS", "INDEX", "WEIGHTS", "Folder", "StoredTensors", "holds", "json_bytes", "write_json"]

WEIGHTS: str = "model.safetensors"
INDEX: str = "model.safetensors.index.json"
COMPANIONS: tuple[str, ...] = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json"),
    *("merges.txt", "vocab.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "chat_template.jinja"),
    *("preprocessor_config.json", "processor_config.json"),
)
"""Files that belong to a model and that it does not read itself: a saved model gets copies of them."""
_MOST_JSON = 1 << 24
"""Bytes of a file with settings; the index of a model with 100,000 tensors has about 10 million."""
_MOST_TEXT = 1 << 29
"""Bytes of a tokenizer's file."""
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")


class Folder:
    """A folder with a model, as Transformers writes it."""

    path: Path

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            if self.path.exists():
                raise NotADirectoryError(f"{self.path} is a file; models.load takes the folder that it is in")
            raise FileNotFoundError(f"there is no folder {self.path}; models.load takes the folder of a model")
        self._root = self._find_root()

    def _find_root(self) -> Path:
        """Return the folder that links may not lead out of.

        In the cache of huggingface_hub the files of a revision, in ``snapshots/<revision>``, are links to ``blobs``.
        """
        real = self.path.resolve()
        is_cached = real.parent.name == "snapshots" and (real.parent.parent / "blobs").is_dir()
        return real.parent.parent if is_cached else real

    def has(self, name: str) -> bool:
        """Whether there is a file, or something else, of that name."""
        return os.path.lexists(self.path / name)

    def find(self, name: str) -> Path:
        """Return the path of a plain file in the folder; raise where the name or a link leads out of it."""
        if not name or name in (".", "..") or name != os.path.basename(name) or "\\" in name or "\0" in name:
            raise ConfigError(f"{self.path} names a file {name!r:.200}; only files in the folder itself are opened")
        path = self.path / name
        if not os.path.lexists(path):
            raise FileNotFoundError(f"{self.path} has no file {name}")
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self._root):
            raise ConfigError(f"{path} is a link that leads out of the folder; copy the file into it")
        if not real.exists() or not stat.S_ISREG(real.stat().st_mode):
            raise ConfigError(f"{path} is not a plain file")
        return real

    def enter(self, name: str) -> Folder:
        """Return a folder inside this one; raise where the name or a link leads out of it."""
        if not name or name in (".", "..") or name != os.path.basename(name) or "\\" in name or "\0" in name:
            raise ConfigError(f"{self.path} names a folder {name!r:.200}; only folders in the folder itself are opened")
        found = Folder(self.path / name)
        if not Path(os.path.realpath(found.path)).is_relative_to(self._root):
            raise ConfigError(f"{found.path} is a link that leads out of the folder; copy the folder into it")
        found._root = self._root
        return found

    def read_bytes(self, name: str, most: int = _MOST_TEXT) -> bytes:
        """Return the contents of a file."""
        path = self.find(name)
        size = path.stat().st_size
        if size > most:
            raise ConfigError(f"{self.path / name} has {size} bytes; such a file has at most {most}")
        with open(path, "rb") as file:
            return file.read(most)

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the settings in a file."""
        return parse_json(self.read_bytes(name, _MOST_JSON), str(self.path / name))

    def weight_files(self) -> dict[str, set[str] | None]:
        """Return the names of the files with weights, each with the tensors that it must hold, or None for any."""
        if self.has(WEIGHTS):
            return {WEIGHTS: None}
        if self.has(INDEX):
            return dict(self._read_index())
        found = sorted(entry.name for entry in self.path.iterdir() if entry.name.endswith(".safetensors"))
        if found:
            return dict.fromkeys(found)
        pickles = [entry.name for entry in self.path.iterdir() if entry.name.endswith(_PICKLES)]
        if pickles:
            raise ConfigError(
                f"{self.path} has its weights only in {pickles[0]}, a pickle. Opening a pickle can run any program, so "
                "Ember ML opens none; save the model with Transformers as safetensors"
            )
        raise FileNotFoundError(f"{self.path} has no *.safetensors file with weights")

    def _read_index(self) -> Mapping[str, set[str]]:
        table = self.read_json(INDEX).get("weight_map")
        if not isinstance(table, dict) or not table:
            raise ConfigError(f"{self.path / INDEX} has no weight_map, which names the file of each tensor")
        files: dict[str, set[str]] = {}
        for tensor, name in table.items():
            if not isinstance(name, str) or not name.endswith(".safetensors"):
                raise ConfigError(
                    f"{self.path / INDEX} says that {tensor!r:.200} is in {name!r:.200}, not in a .safetensors file"
                )
            files.setdefault(name, set()).add(tensor)
        return files


class StoredTensors:
    """The tensors in the weight files of a folder, by the names that they have there; read one at a time."""

    shapes: dict[str, tuple[EmberDType, tuple[int, ...]]]
    """The dtype and shape of each tensor."""

    def __init__(self, folder: Folder) -> None:
        self._owners: dict[str, MappedTensors] = {}
        self.shapes = {}
        self._open = ExitStack()
        with ExitStack() as opened:
            for name, wanted in folder.weight_files().items():
                owner = opened.enter_context(MappedTensors(folder.find(name)))
                shapes = owner.shapes()
                differing = [] if wanted is None else sorted(wanted ^ set(shapes))
                if differing:
                    raise ConfigError(
                        f"{folder.path / INDEX} and {name} disagree about the tensor {differing[0]!r:.200}, "
                        f"which only one of them has"
                    )
                twice = sorted(set(shapes) & set(self._owners))
                if twice:
                    raise ConfigError(f"{folder.path} has the tensor {twice[0]!r:.200} in two files, one is {name}")
                self._owners.update(dict.fromkeys(shapes, owner))
                self.shapes.update(shapes)
            self._open = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def read(self, name: str) -> Any:
        """Return the array of a tensor, on the host."""
        return self._owners[name].read(name)


def holds(path: Path, contents: bytes) -> bool:
    """Return whether a file is there and has these contents."""
    return path.is_file() and path.stat().st_size == len(contents) and path.read_bytes() == contents


def json_bytes(values: dict[str, Any]) -> bytes:
    """Return settings as the contents of a file."""
    return json.dumps(values, indent=2, sort_keys=True).encode() + b"\n"


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write settings to a file, in one step."""
    with replaced(path, follow_links=False) as file:
        file.write(json_bytes(values))

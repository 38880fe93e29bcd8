"""Models that come from a folder and go back to one: what all architectures share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

from ember_ml import ops
from ember_ml.backend.contract import Backend
from ember_ml.backend.devices import resolve_device
from ember_ml.backend.host_arrays import as_host, have_same_bytes
from ember_ml.backend.safetensors import Contents, write_to
from ember_ml.backend.selection import active
from ember_ml.core.atomic_files import Replacements
from ember_ml.core.dtypes import EmberDType, as_dtype, find_dtype
from ember_ml.errors import ConfigError, UnsupportedDType
from ember_ml.models.folder import COMPANIONS, INDEX, WEIGHTS, Folder, StoredTensors, holds, json_bytes
from ember_ml.models.names import Names, Stored
from ember_ml.models.settings import Settings
from ember_ml.nn.model import Model
from ember_ml.nn.modules.parameter import Buffer
from ember_ml.tensor.variable import Variable
from ember_ml.typing import DeviceLike, DTypeLike, Tensor

__all__ = ["PretrainedModel"]

_CONFIG, _GENERATION = "config.json", "generation_config.json"
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")


class _Slot(NamedTuple):
    """A parameter that is filled from a file."""

    variable: Variable
    stored: Stored
    other_names: tuple[str, ...]
    """Stored names of the same parameter, of which a file may have any."""


class PretrainedModel(Model):
    """A model whose settings are those of a ``config.json``; ``models.load`` and ``models.from_config`` make it."""

    settings: Settings
    names: Names
    generation: dict[str, Any]
    """What ``generation_config.json`` says, empty where there is none."""

    source: Folder | None
    """Where it came from, None where it was made here."""
    adapter: Any
    """The settings of the adapter that ``models.add_lora`` or ``models.load_adapter`` gave it, or None."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.adapter = settings, None
        self.__dict__["generation"] = {}
        self.source = None

    def _slots(self) -> list[_Slot]:
        """Return where the parameters, and the buffers that are stored, come from."""
        found: dict[int, tuple[Variable, list[Stored]]] = {}
        for name, variable in self._all_names().items():
            if ".lora." in name:  # in files of its own
                continue
            try:
                stored = self.names.find(name, variable.shape[0] if variable.shape else 0)
            except KeyError:
                if isinstance(variable, Buffer):  # such as the load of a mixture of experts
                    continue
                raise
            if variable.dtype.kind != "float":  # packed words have the axes of our modules
                stored = stored._replace(is_transposed=False)
            found.setdefault(id(variable), (variable, []))[1].append(stored)
        return [_Slot(x, s[0], tuple(other.names[0] for other in s[1:])) for x, s in found.values()]

    # from a folder

    def fill(
        self,
        folder: Folder,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        on_progress: Callable[[int, int], Any] | None = None,
    ) -> Self:
        """Take the values of all parameters from the weight files of a folder; return the model itself.

        Nothing is changed where a tensor is missing, unknown or of another shape.
        """
        backend, wanted = active(), None if dtype is None else as_dtype(dtype)
        if wanted is not None and wanted.kind != "float":
            raise UnsupportedDType(f"the parameters of a model are floating-point numbers, not {wanted}")
        place = resolve_device(backend, device)
        with StoredTensors(folder) as tensors:
            slots = self._slots()
            known = {name for slot in slots for name in (*slot.stored.names, *slot.other_names)}
            sources = self.names.match(tensors.shapes, known)
            self._check(folder, tensors, slots, sources)
            found = {tensors.shapes[name][0] for name in sources.values()}
            if wanted is None and len([x for x in found if x.kind == "float"]) > 1:
                wanted = self._named_dtype(backend)
            for count, slot in enumerate(slots, 1):
                parts = [tensors.read(sources[name]) for name in _choose_names(slot, sources)]
                cast_to = wanted if slot.variable.dtype.kind == "float" else None
                natives = [_bring(backend, part, place, cast_to) for part in parts]
                slot.variable.hold(_assemble(natives, slot.stored))
                if on_progress is not None:
                    on_progress(count, len(slots))
        return self

    def _named_dtype(self, backend: Backend) -> EmberDType | None:
        """Return the floating-point dtype that the settings name, None where they name none that the backend has."""
        name = self.settings.get("dtype", self.settings.get("torch_dtype"))
        found = find_dtype(name) if isinstance(name, str) else None
        return found if found is not None and found.kind == "float" and found in backend.dtypes else None

    def _check(self, folder: Folder, tensors: StoredTensors, slots: list[_Slot], sources: dict[str, str]) -> None:
        """Raise where the files do not hold what the settings ask for."""
        chosen = {slot.variable: _choose_names(slot, sources) for slot in slots}
        missing = [name for names in chosen.values() for name in names if name not in sources]
        used = set(sources.values())
        extra = [name for name in tensors.shapes if name not in used and not self.names.is_ignored(name)]
        if missing or extra:
            parts = [f"lack {_list(missing)}"] * bool(missing) + [f"have unknown {_list(extra)}"] * bool(extra)
            raise ConfigError(
                f"the weights in {folder.path} {' and '.join(parts)} for {self._describe()}; {self._sizes()}"
            )
        for slot in slots:
            shape = _stored_shape(slot)
            for name in chosen[slot.variable]:
                dtype, found = tensors.shapes[sources[name]]
                if found != shape:
                    raise ConfigError(
                        f"the tensor {sources[name]!r} in {folder.path} has the shape {found}, and {self._describe()} "
                        f"has {shape} there; {self._sizes()}"
                    )
                if slot.variable.dtype.kind != "float":
                    if dtype is not slot.variable.dtype:
                        raise ConfigError(
                            f"the tensor {sources[name]!r} in {folder.path} is {dtype}, not {slot.variable.dtype}"
                        )
                elif dtype.kind != "float":
                    raise ConfigError(f"the tensor {sources[name]!r} in {folder.path} is {dtype}, not floating-point")
            for name in slot.other_names:
                if name in sources and name != chosen[slot.variable][0]:
                    self._check_equal(folder, tensors, sources[chosen[slot.variable][0]], sources[name])

    def _check_equal(self, folder: Folder, tensors: StoredTensors, first: str, second: str) -> None:
        """Raise where a parameter with two names is stored under both, with different values."""
        is_same_kind = tensors.shapes[first] == tensors.shapes[second]
        if not is_same_kind or not have_same_bytes(tensors.read(first), tensors.read(second)):
            raise ConfigError(
                f"{folder.path / _CONFIG} makes {first!r} and {second!r} one tensor (tie_word_embeddings), and the "
                "weights differ"
            )

    def _describe(self) -> str:
        kind = self.settings.get("architectures") or [self.settings.get("model_type")]
        return f"{kind[0]} of {self.settings.where}"

    def _sizes(self) -> str:
        sizes = ", ".join(f"{key}={value}" for key, value in self.settings.sizes.items())
        return f"{self.settings.where} has {sizes}"

    def remember(self, folder: Folder) -> Self:
        """Keep where the model came from, for the files that go with it; return the model itself."""
        self.source = folder
        self.__dict__["generation"] = folder.read_json(_GENERATION) if folder.has(_GENERATION) else {}
        return self

    def load(self, path: str | PathLike[str], strict: bool = True) -> Self:
        """Take the values of the parameters from a folder with the same architecture; gives the model itself."""
        if not strict:
            raise ValueError("a folder of a model holds all its parameters; models.load reads no part of them")
        return self.fill(Folder(path))

    # to a folder

    def save(self, path: str | PathLike[str], shard_bytes: int = 5_000_000_000) -> None:
        """Write a folder that Transformers, and every program that reads its format, opens.

        It gets the weights, in files of at most ``shard_bytes`` each with an index where one does not hold them all,
        the settings, and the files of the tokenizer where the model came with them. Weights of another model in the
        folder are removed. Links in it are replaced by files, so that nothing outside of it is written.

        All is written beside what is there before anything is replaced, so that a full disk or a program that is ended
        leaves the model that was there, and never parts of two.
        """
        if self.adapter is not None:
            raise ValueError(
                "the model has an adapter, which its own format does not hold: models.save_adapter(model, folder) "
                "writes it; models.merge_adapter(model) and models.remove_adapter(model) make it part of the weights"
            )
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        shards = list(self._shards(shard_bytes))
        files = (
            [WEIGHTS]
            if len(shards) == 1
            else [f"model-{i:05}-of-{len(shards):05}.safetensors" for i in range(1, len(shards) + 1)]
        )
        with Replacements() as new:
            total = 0
            for file, shard in zip(files, shards, strict=True):
                hosts = {key: as_host(_stored_part(x, stored, i), detach=True) for key, (x, stored, i) in shard.items()}
                total += sum(host.nbytes for host in hosts.values())
                with new.open(folder / file, follow_links=False) as opened:
                    write_to(opened, Contents(hosts, {"format": "pt"}, False))
            others = self._companions(folder)
            if len(shards) > 1:
                weight_map = {name: file for file, shard in zip(files, shards, strict=True) for name in shard}
                index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
                others[INDEX] = json_bytes(index)
            if self.generation:
                others[_GENERATION] = json_bytes(self.generation)
            config = others[_CONFIG] = json_bytes(self._config())  # the last
            for name, contents in others.items():
                with new.open(folder / name, follow_links=False) as opened:
                    opened.write(contents)
            # from here on it takes a moment, in which the folder, without settings, is no model rather than two halves
            stale = _find_stale(folder, {*files, *others})
            if stale or len(files) > 1 or not holds(folder / _CONFIG, config):
                (folder / _CONFIG).unlink(missing_ok=True)
            for entry in stale:
                entry.unlink()
            new.make()

    def _shards(self, limit: int) -> Iterator[dict[str, tuple[Variable, Stored, int]]]:
        """Yield what each file holds: variables by stored name, with the number of the slice."""
        tensors = {
            name: (slot.variable, slot.stored, i) for slot in self._slots() for i, name in enumerate(slot.stored.names)
        }
        shard: dict[str, tuple[Variable, Stored, int]] = {}
        size = 0
        for name, (variable, stored, i) in sorted(tensors.items()):
            more = variable.nbytes // len(stored.names)
            if shard and size + more > limit:
                yield shard
                shard, size = {}, 0
            shard[name] = (variable, stored, i)
            size += more
        yield shard

    def _config(self) -> dict[str, Any]:
        """Return the settings with the dtype that the parameters have now."""
        dtypes = {slot.variable.dtype.name for slot in self._slots() if slot.variable.dtype.kind == "float"}
        key = "torch_dtype" if "torch_dtype" in self.settings.values else "dtype"
        return {**self.settings.values, **({key: dtypes.pop()} if len(dtypes) == 1 else {})}

    def _companions(self, folder: Path) -> dict[str, bytes]:
        """Return the files that go with the model, which are not in the folder yet."""
        if self.source is None or os.path.realpath(folder) == os.path.realpath(self.source.path):
            return {}
        return {name: self.source.read_bytes(name) for name in COMPANIONS if self.source.has(name)}


def _find_stale(folder: Path, kept: set[str]) -> list[Path]:
    """Return weights that were in the folder before: programs would take them for those of this model."""
    return [
        entry
        for entry in folder.iterdir()
        if entry.name not in kept and (entry.name in (WEIGHTS, INDEX) or _SHARD.fullmatch(entry.name))
    ]


def _list(names: list[str]) -> str:
    shown = ", ".join(repr(name[:200]) for name in names[:4])
    return f"{shown} and {len(names) - 4} more" if len(names) > 4 else shown


def _choose_names(slot: _Slot, sources: dict[str, str]) -> tuple[str, ...]:
    """Return the names under which a file has a parameter: its own, or another where only that is there."""
    if slot.stored.names[0] in sources:
        return slot.stored.names
    return next(((name,) for name in slot.other_names if name in sources), slot.stored.names)


def _stored_shape(slot: _Slot) -> tuple[int, ...]:
    shape = slot.variable.shape
    shape = shape[1:] if len(slot.stored.names) > 1 else shape
    return shape[::-1] if slot.stored.is_transposed else shape


def _bring(backend: Backend, host: Any, device: str, dtype: EmberDType | None) -> Tensor:
    found = as_dtype(host.dtype)
    if dtype is None and found not in backend.dtypes:
        raise UnsupportedDType(
            f"the backend {backend.name!r} has no {found}; say another dtype: models.load(..., dtype=)"
        )
    if dtype is None or dtype is found:
        return backend.from_host(host, device)
    return ops.cast(backend.from_host(host, device), dtype)


def _assemble(parts: list[Tensor], stored: Stored) -> Tensor:
    if stored.is_transposed:
        parts = [ops.copy(ops.matrix_transpose(part)) for part in parts]
    return parts[0] if len(stored.names) == 1 else ops.stack(parts)


def _stored_part(variable: Variable, stored: Stored, number: int) -> Tensor:
    value = variable.value if len(stored.names) == 1 else ops.get_item(variable.value, number)
    return ops.matrix_transpose(value) if stored.is_transposed else value

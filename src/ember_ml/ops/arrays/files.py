"""Saving tensors to files, and loading them."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from ember_ml.backend.devices import resolve_device
from ember_ml.backend.host_arrays import as_host
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import as_dtype
from ember_ml.dispatch.declare import plain
from ember_ml.errors import UnsupportedDType
from ember_ml.typing import DeviceLike, Tensor, TensorLike

__all__ = ["load", "save"]

_ONLY = "tensor"


@plain
def save(
    path: str | PathLike[str],
    tensors: TensorLike | Mapping[str, TensorLike],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write one tensor, or several by name, to a file in the safetensors format, which every backend can load.

    Tensors of all backends and devices are taken, their dtypes kept. A file of that name is replaced in one step: what
    happens meanwhile, it is never half written. ``metadata`` are texts by name that are kept beside the tensors.

    >>> import os, tempfile
    >>> from ember_ml import ops
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "weights.safetensors")
    ...     ops.save(path, {"w": ops.ones((2, 2)), "b": ops.array([1, 2])}, metadata={"epoch": "3"})
    ...     {name: ops.to_numpy(tensor).tolist() for name, tensor in ops.load(path).items()}
    {'w': [[1.0, 1.0], [1.0, 1.0]], 'b': [1, 2]}
    """
    from ember_ml.backend.safetensors import Contents, write_tensors  # slow to import, as below

    is_single = not isinstance(tensors, Mapping)
    named = {_ONLY: tensors} if is_single else tensors
    hosts = {name: as_host(x, detach=True) for name, x in named.items()}
    write_tensors(path, Contents(hosts, dict(metadata or {}), is_single))


@plain
def load(path: str | PathLike[str], device: DeviceLike | None = None, return_metadata: bool = False) -> Any:
    """The tensors that :func:`save`, or another program, wrote to a file: one tensor, or a dict of tensors by name.

    They are native tensors of the active backend, on ``device``, with the dtypes that they were saved with; one that
    the backend does not have raises ``UnsupportedDType``. They are read into memory: what becomes of the file later
    does not concern them. With ``return_metadata`` a pair: the tensors, and the texts by name. A damaged file, or one
    that holds something else, raises ``ValueError``; nothing in a file is ever executed.

    >>> import os, tempfile
    >>> from ember_ml import ops
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.safetensors")
    ...     ops.save(path, ops.arange(3), metadata={"unit": "m"})
    ...     x, metadata = ops.load(path, return_metadata=True)
    ...     ops.to_numpy(x).tolist(), metadata
    ([0, 1, 2], {'unit': 'm'})
    """
    from ember_ml.backend.safetensors import read_tensors

    backend = active()
    place = resolve_device(backend, device)
    contents = read_tensors(path)
    tensors: dict[str, Tensor] = {}
    for name, host in contents.tensors.items():
        dtype = as_dtype(host.dtype)
        if dtype not in backend.dtypes:
            raise UnsupportedDType(
                f"the tensor {name!r} in {path} is {dtype}, which the backend {backend.name!r} does not have; "
                "load it on another backend and cast it there"
            )
        tensors[name] = backend.from_host(host, place)
    found = next(iter(tensors.values())) if contents.is_single else tensors
    return (found, contents.metadata) if return_metadata else found

"""The namespace's description of itself: ``xp.__array_namespace_info__()``."""

from __future__ import annotations

from typing import Any

from ember_ml.backend.contract import Backend
from ember_ml.backend.devices import default_device, resolve_device
from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType

__all__ = ["Info"]

_KINDS: dict[str, frozenset[EmberDType]] = {
    "bool": dt.BOOL,
    "signed integer": dt.SIGNED,
    "unsigned integer": dt.UNSIGNED,
    "integral": dt.INTEGERS,
    "real floating": dt.FLOATS - dt.HALVES,
    "complex floating": dt.COMPLEX,
    "numeric": dt.INTEGERS | (dt.FLOATS - dt.HALVES) | dt.COMPLEX,
}
_STANDARD = dt.BOOL | _KINDS["numeric"]


class Info:
    """The devices, dtypes and capabilities of one backend, in the standard's terms."""

    __slots__ = ("_backend",)

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def capabilities(self) -> dict[str, Any]:
        """Return what the standard leaves open: masks and results whose shape depends on values are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device on which tensors are made unless another is named."""
        return default_device(self._backend)

    def default_dtypes(self, *, device: str | None = None) -> dict[str, EmberDType]:
        """Return the dtypes that Python numbers take, the same on every device and backend."""
        self._check(device)
        return {
            "real floating": dt.DEFAULT_FLOAT,
            "complex floating": dt.DEFAULT_COMPLEX,
            "integral": dt.DEFAULT_INT,
            "indexing": dt.DEFAULT_INT,
        }

    def dtypes(self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, EmberDType]:
        """Return the backend's dtypes of the standard, by name; ``kind`` selects among them as ``isdtype`` does."""
        self._check(device)
        kinds = (kind,) if isinstance(kind, str) else kind
        if kinds is None:
            wanted = _STANDARD
        else:
            unknown = [name for name in kinds if name not in _KINDS]
            if unknown:
                raise ValueError(f"{unknown[0]!r} is no kind of dtype; the kinds are {', '.join(_KINDS)}")
            wanted = frozenset[EmberDType]().union(*(_KINDS[name] for name in kinds))
        return {dtype.name: dtype for dtype in self._backend.dtypes if dtype in wanted}

    def devices(self) -> list[str]:
        """Return the devices of this machine that the backend can use."""
        return list(self._backend.available_devices())

    def _check(self, device: str | None) -> None:
        if device is not None:
            resolve_device(self._backend, device, strict=True)

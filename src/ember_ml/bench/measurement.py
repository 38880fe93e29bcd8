"""One measured ratio, the machine it was measured on, and the preparation of a backend."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ember_ml.backend.built_in import BUILT_IN
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import get_backend, load, set_backend

__all__ = ["Measurement", "active_backend", "evaluator", "machine", "native_calls"]


@dataclass(frozen=True, slots=True)
class Measurement:
    """How long ``way`` took for ``case`` on ``backend``, beside ``baseline``; both are the best of many, in seconds."""

    group: str
    backend: str
    case: str
    way: str
    seconds: float
    baseline: str
    baseline_seconds: float
    claimed: str = ""
    """The slowdown that is commonly claimed for this, where there is such a claim."""

    @property
    def ratio(self) -> float:
        """How many times as long as the baseline it took."""
        return self.seconds / self.baseline_seconds

    def as_dict(self) -> dict[str, Any]:
        """Return the measurement for JSON, with the ratio."""
        return {**asdict(self), "ratio": self.ratio}


def machine() -> dict[str, str | None]:
    """Return what the figures depend on: the machine, Python, and the versions of the libraries."""
    libraries = ("ember-ml", *(entry.distribution for entry in BUILT_IN.values()), "keras")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in libraries},
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@contextmanager
def active_backend(name: str) -> Iterator[Backend]:
    """Make ``name`` the backend of the process inside the block; unlike a scope, this leaves the ops their hot path."""
    before = get_backend()
    set_backend(name)
    try:
        yield load(name)
    finally:
        set_backend(before)


def native_calls(backend: Backend) -> Mapping[str, Callable[..., Any]]:
    """Return the library's own function for each compared op; empty for a backend that does not say."""
    return {} if backend.bench_calls is None else backend.bench_calls.calls


def evaluator(backend: Backend) -> Callable[[Any], Any]:
    """Return the function that waits until a native tensor has been computed."""
    return _as_it_is if backend.bench_calls is None else backend.bench_calls.evaluate


def _as_it_is(x: Any) -> Any:
    return x

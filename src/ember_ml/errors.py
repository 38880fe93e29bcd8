"""The exceptions that Ember ML raises, the same ones on every backend.

Ordinary mistakes raise Python's own classes: a wrong shape is a ``ValueError``, a wrong dtype a ``TypeError``, a wrong
axis or index an ``IndexError``, a Python integer that does not fit its dtype an ``OverflowError``. The classes here are
for what Python has no name for; each one is also the built-in exception that a careful caller would catch.
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "BrokenBackend",
    "CheckpointError",
    "ConfigError",
    "ConvergenceError",
    "DeviceError",
    "EmberError",
    "LaunchError",
    "LinAlgError",
    "LostGradient",
    "MissingBackend",
    "NaNFound",
    "NotFitted",
    "PeerLost",
    "UnknownBackend",
    "UnknownName",
    "UnsupportedDType",
    "UnsupportedOp",
    "WorkerLost",
    "WrongData",
]


class EmberError(Exception):
    """The base of every exception class that Ember ML defines."""


class BackendError(EmberError):
    """A backend cannot be used."""


class UnknownBackend(BackendError, ValueError):
    """No backend has that name, neither built in nor registered by an installed package."""


class MissingBackend(BackendError, ImportError):
    """The backend is known, but the library that computes for it is not installed."""


class BrokenBackend(BackendError, ImportError):
    """The backend's library is installed, but importing it failed."""


class ConfigError(EmberError, ValueError):
    """A configuration file or variable holds something that cannot be used."""


class UnknownName(ConfigError, LookupError):
    """Nothing is registered under that name."""


class CheckpointError(EmberError, ValueError):
    """A checkpoint is missing, damaged, or of something else than what it is loaded into."""


class DeviceError(EmberError, ValueError):
    """The device does not exist on this machine, and the caller asked for exactly that one."""


class UnsupportedOp(EmberError, NotImplementedError):
    """The backend cannot compute this op at all; the message says what to do instead."""


class UnsupportedDType(UnsupportedOp, TypeError):
    """The backend cannot hold or compute this dtype."""


class ConvergenceError(EmberError, ArithmeticError):
    """An iteration cannot reach the accuracy asked for; the message says how far it came."""


class LostGradient(EmberError, RuntimeError, BufferError):
    """A tensor that is being differentiated would become plain data, and its gradient be lost without a word."""


class NaNFound(EmberError, FloatingPointError):
    """``ember_ml.find_nan`` has found where NaN begins."""

    layer: str | None
    """The path of the layer in the model; None outside of it."""
    op: str | None
    """The name of the op; None where no op gave it."""
    phase: str
    """The pass, "forward" or "backward"; "before" where a parameter or buffer had NaN already."""

    def __init__(self, text: str, phase: str, layer: str | None, op: str | None) -> None:
        super().__init__(text, phase, layer, op)
        self.phase, self.layer, self.op = phase, layer, op

    def __str__(self) -> str:
        return str(self.args[0])


class LinAlgError(EmberError, ValueError):
    """A matrix is singular, not positive definite, or its factorization did not converge."""


class NotFitted(EmberError, ValueError, AttributeError):
    """An estimator is asked for what it learns from data, and has seen none."""


class WrongData(EmberError, ValueError, TypeError):
    """An estimator cannot take data of this dtype: scikit-learn calls that a ``ValueError``, ops a ``TypeError``."""


class LaunchError(EmberError, RuntimeError):
    """The ranks of a job cannot be started as asked; the message says why and what to do."""


class PeerLost(EmberError, ConnectionError):
    """Another rank of the job has died, hangs or cannot be reached; the message names it."""


class WorkerLost(EmberError, RuntimeError):
    """A worker process of a data loader has died; the message names it, how it died, and the batch that is missing."""

"""The ops as functions of a backend's module: ``get_backend_module().sin(x)`` computes on that backend."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

from ember_ml.backend import selection

__all__ = ["op_on"]


def op_on(backend: str, name: str) -> Any:
    """Return the op ``name`` as a function that computes on ``backend``, whichever is active when it is called.

    A name that is no op raises ``AttributeError``, as reading any other attribute that a module lacks.

    >>> import ember_ml
    >>> from ember_ml import ops
    >>> add = getattr(ember_ml.get_backend_module(), "add")
    >>> ops.item(add(1.0, 2.0))
    3.0
    """
    # by name: the ops stand on the backends, and no backend needs them to load
    ops = None if name.startswith("_") else import_module("ember_ml.ops")
    if ops is None or name not in ops.__all__ or not callable(getattr(ops, name)):
        raise AttributeError(f"module 'ember_ml.backend.{backend}' has no attribute {name!r}")
    op = getattr(ops, name)

    @wraps(op)
    def compute(*args: Any, **kwargs: Any) -> Any:
        if selection.get_backend() == backend:
            return op(*args, **kwargs)
        with selection.use_backend(backend):
            return op(*args, **kwargs)

    return compute

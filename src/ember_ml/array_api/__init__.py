"""The Python array API standard, 2024.12: one fixed namespace per backend.

``ember_ml.array_api.numpy``, ``.torch``, ``.mlx`` and ``.jax`` are modules with the names and signatures of the
standard. Their functions compute on the backend of their arguments and return portable tensors; those that make tensors
use the backend that the module is named after. ``x.__array_namespace__()`` is the one of the tensor's own backend.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from ember_ml.array_api.build import fill
from ember_ml.backend.built_in import BUILT_IN

__all__ = ["namespace"]


def namespace(backend: str) -> ModuleType:
    """Return the namespace of a backend, always the same object; a backend of another package has one too.

    >>> from ember_ml.array_api import namespace
    >>> import ember_ml.array_api.numpy as xp
    >>> namespace("numpy") is xp, xp.sum(xp.ones(3)).item()
    (True, 3.0)
    """
    name = f"{__name__}.{backend}"
    found = sys.modules.get(name)
    if found is not None:
        return found
    if backend in BUILT_IN:
        return importlib.import_module(name)
    found = ModuleType(name, f"The array API standard's namespace on the backend {backend!r}.")
    fill(vars(found), backend)
    return sys.modules.setdefault(name, found)

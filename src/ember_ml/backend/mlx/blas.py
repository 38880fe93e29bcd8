"""Load a fast BLAS for MLX on Linux, before MLX itself.

Any library that exports the standard symbols and is loaded globally first replaces the one in the wheel.
"""

# MLX 0.32: the wheel for Linux contains the reference BLAS, whose matmul takes 17 times as long

from __future__ import annotations

import ctypes
import sys
from ctypes.util import find_library
from pathlib import Path

__all__ = ["description", "is_reference", "library"]


def _candidates() -> list[str]:
    found = find_library("openblas")
    names = [found] if found else []
    names += ["libopenblas.so.0", "libmkl_rt.so.3", "libmkl_rt.so.2"]
    names += [str(path) for path in sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so.*"))]
    return names


def _load() -> str | None:
    if sys.platform != "linux" or "mlx.core" in sys.modules:
        return None
    for name in _candidates():
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return name
    return None


library = _load()
"""The BLAS that was loaded for MLX, or None if MLX uses its own."""

is_reference = library is None and sys.platform == "linux"
"""Whether MLX uses the reference BLAS of its wheel."""

_SLOW = "the wheel's own, which is slow: install OpenBLAS (Debian's package libopenblas0)"
description = library or (_SLOW if is_reference else "the library's own")

"""Checksums of tensors, to compare data between processes."""

from __future__ import annotations

import hashlib
from typing import Any

from ember_ml.backend.host_arrays import as_host
from ember_ml.core import trees

__all__ = ["digest_of"]


def digest_of(batch: Any) -> str:
    """Return a checksum of the arrays in nested containers; what is no array counts by its text.

    >>> from ember_ml.backend.common.digests import digest_of
    >>> digest_of([1.0, 2.0]) == digest_of([1.0, 2.0]), digest_of([1.0, 2.0]) == digest_of([2.0, 1.0])
    (True, False)
    """
    found = hashlib.sha256()
    for leaf in trees.flatten(batch)[0]:
        try:
            host = as_host(leaf)
        except (TypeError, ValueError):
            found.update(repr(leaf).encode())
        else:
            found.update(f"{host.shape} {host.dtype}".encode())
            found.update(host.tobytes())
    return found.hexdigest()

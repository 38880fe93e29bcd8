"""The other libraries have the names that the table gives them."""

from __future__ import annotations

import importlib

import pytest

from ember_ml.core.other_names import LIBRARIES, rows

GONE = {"numpy.trapz", "numpy.in1d", "mlx.core.metal"}
"""Names that recent versions have removed or emptied, and that people still write."""


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_name_is_one_of_the_library(library: str) -> None:
    root = {"PyTorch": "torch", "MLX": "mlx.core"}.get(library, library.lower())
    pytest.importorskip(root)
    for row in rows(library):
        if row.theirs in GONE:
            continue
        parts = row.theirs.split(".")
        for count in range(len(parts), 0, -1):  # the longest part of the path that is a module
            try:
                found = importlib.import_module(".".join(parts[:count]))
                break
            except ImportError:
                continue
        else:
            raise AssertionError(row.theirs)
        for name in parts[count:]:
            assert hasattr(found, name), row.theirs
            found = getattr(found, name)

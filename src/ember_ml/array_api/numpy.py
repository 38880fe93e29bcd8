"""The array API standard's namespace on NumPy."""

from __future__ import annotations

from ember_ml.array_api.build import fill

fill(globals(), "numpy")

"""Signal processing: the view of every op that deals with signals."""

from __future__ import annotations

from ember_ml.ops import fourier
from ember_ml.ops.fourier import *  # noqa: F403

__all__: list[str] = []
__all__ += fourier.__all__

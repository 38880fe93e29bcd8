"""Signal processing: the view of every op that deals with signals."""

from __future__ import annotations

from ember_ml.ops import filtering, fourier, framing, windows
from ember_ml.ops.filtering import *  # noqa: F403
from ember_ml.ops.fourier import *  # noqa: F403
from ember_ml.ops.framing import *  # noqa: F403
from ember_ml.ops.windows import *  # noqa: F403

__all__: list[str] = []
__all__ += fourier.__all__
__all__ += windows.__all__
__all__ += framing.__all__
__all__ += filtering.__all__

"""Signal processing: the view of every op that deals with signals."""

from __future__ import annotations

from ember_ml.ops.signal import filtering, fourier, windows
from ember_ml.ops.signal import short_time as framing
from ember_ml.ops.signal.filtering import *  # noqa: F403
from ember_ml.ops.signal.fourier import *  # noqa: F403
from ember_ml.ops.signal.short_time import *  # noqa: F403
from ember_ml.ops.signal.windows import *  # noqa: F403

__all__: list[str] = []
__all__ += fourier.__all__
__all__ += windows.__all__
__all__ += framing.__all__
__all__ += filtering.__all__

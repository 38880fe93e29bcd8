"""Images: the view of every op that deals with images."""

from __future__ import annotations

from ember_ml.ops.arrays.shape import flip
from ember_ml.ops.image import colours, comparing, cropping, resizing, warping
from ember_ml.ops.image.colours import *  # noqa: F403
from ember_ml.ops.image.comparing import *  # noqa: F403
from ember_ml.ops.image.cropping import *  # noqa: F403
from ember_ml.ops.image.resizing import *  # noqa: F403
from ember_ml.ops.image.warping import *  # noqa: F403

__all__ = ["flip"]
__all__ += colours.__all__
__all__ += comparing.__all__
__all__ += cropping.__all__
__all__ += resizing.__all__
__all__ += warping.__all__

"""Linear algebra: the view of every op that deals with matrices and vectors."""

from __future__ import annotations

from ember_ml.ops import factorizations, norms, products, systems
from ember_ml.ops.factorizations import *  # noqa: F403
from ember_ml.ops.matrices import diag
from ember_ml.ops.norms import *  # noqa: F403
from ember_ml.ops.products import *  # noqa: F403
from ember_ml.ops.shape import matrix_transpose
from ember_ml.ops.systems import *  # noqa: F403

__all__ = ["diag", "matrix_transpose"]
__all__ += products.__all__
__all__ += norms.__all__
__all__ += factorizations.__all__
__all__ += systems.__all__

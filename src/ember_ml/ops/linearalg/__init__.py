"""Linear algebra: the view of every op that deals with matrices and vectors."""

from __future__ import annotations

from ember_ml.ops.arrays.shape import matrix_transpose
from ember_ml.ops.linearalg import factorizations, norms, products
from ember_ml.ops.linearalg import linear_systems as systems
from ember_ml.ops.linearalg.factorizations import *  # noqa: F403
from ember_ml.ops.linearalg.linear_systems import *  # noqa: F403
from ember_ml.ops.linearalg.matrices import diag
from ember_ml.ops.linearalg.norms import *  # noqa: F403
from ember_ml.ops.linearalg.products import *  # noqa: F403

__all__ = ["diag", "matrix_transpose"]
__all__ += products.__all__
__all__ += norms.__all__
__all__ += factorizations.__all__
__all__ += systems.__all__

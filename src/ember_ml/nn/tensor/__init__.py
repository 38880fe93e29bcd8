"""Tensors that compute the same whatever library is underneath: EmberTensor, its dtypes, and the functions that make it.

``Tensor`` is the type for annotations, a portable or a native tensor; ``TensorLike`` adds Python data and NumPy arrays.
"""

from __future__ import annotations

from ember_ml.nn.tensor import common, interfaces
from ember_ml.nn.tensor.common import *
from ember_ml.nn.tensor.common import dtypes as _dtypes
from ember_ml.nn.tensor.common.dtypes import *
from ember_ml.nn.tensor.interfaces import TensorInterface
from ember_ml.nn.tensor.interfaces.dtype import DTypeInterface
from ember_ml.typing import Numeric, Shape, ShapeLike, Tensor, TensorLike, TensorTypes

__all__ = [
    "DTypeInterface",
    "Numeric",
    "Shape",
    "ShapeLike",
    "Tensor",
    "TensorInterface",
    "TensorLike",
    "TensorTypes",
    "common",
    "interfaces",
]
__all__ += common.__all__
__all__ += _dtypes.__all__

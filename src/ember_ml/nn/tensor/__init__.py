"""Tensors that compute the same whatever library is underneath: EmberTensor, its dtypes, the functions that make it.

``Tensor`` is the type for annotations, a portable or a native tensor; ``TensorLike`` adds Python data and NumPy arrays.
"""

from ember_ml.nn.tensor import common, interfaces
from ember_ml.nn.tensor.common import *
from ember_ml.nn.tensor.common.dtypes import *
from ember_ml.nn.tensor.interfaces import TensorInterface
from ember_ml.nn.tensor.interfaces.dtype import DTypeInterface
from ember_ml.typing import Numeric, Shape, ShapeLike, Tensor, TensorLike, TensorTypes

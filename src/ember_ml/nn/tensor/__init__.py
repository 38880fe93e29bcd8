"""Tensors that compute the same whatever library is underneath: EmberTensor, its dtypes, the functions that make it.

``Tensor`` is the type for annotations, a portable or a native tensor; ``TensorLike`` adds Python data and NumPy arrays.
"""

from ember_ml import _lazy
from ember_ml import typing as _typing
from ember_ml.nn.tensor import common, interfaces

_TYPES = ["DTypeInterface", "Numeric", "Shape", "ShapeLike", "Tensor", "TensorInterface", "TensorLike", "TensorTypes"]
_lazy.show(
    __name__,
    _lazy.import_names([common.__name__, f"{common.__name__}.dtypes"])
    | {name: getattr(_typing, name) for name in _TYPES}
    | {"common": common, "interfaces": interfaces},
)

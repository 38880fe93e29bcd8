"""Portable tensors and the functions that make and reshape them.

The functions are the ops. Those that make tensors give portable ones here, on the active backend; the others keep the
kind of their arguments, as everywhere.
"""

from ember_ml import _lazy
from ember_ml.dispatch.bind_tensor import make_portable
from ember_ml.nn.tensor.common.convert import convert_to_tensor
from ember_ml.tensor import EmberTensor

_FAMILIES = (
    *("arrays.conversion", "arrays.creation", "arrays.device", "arrays.indexing", "arrays.joining"),
    *("arrays.properties", "arrays.scatter", "arrays.searching", "arrays.shape", "arrays.sorting"),
    *("linearalg.matrices", "random.choices", "random.sampling"),
)
_names = _lazy.import_names(f"ember_ml.ops.{family}" for family in _FAMILIES)
make_portable(_names)
_lazy.show(__name__, _names | {"EmberTensor": EmberTensor, "convert_to_tensor": convert_to_tensor})

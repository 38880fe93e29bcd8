"""Portable tensors and the functions that make and reshape them.

The functions are the ops. Those that make tensors give portable ones here, on the active backend; the others keep the
kind of their arguments, as everywhere.
"""

from ember_ml.ops.random.choices import *
from ember_ml.ops.arrays.conversion import *
from ember_ml.ops.arrays.creation import *
from ember_ml.ops.arrays.device import *
from ember_ml.ops.arrays.properties import *
from ember_ml.ops.arrays.indexing import *
from ember_ml.ops.arrays.joining import *
from ember_ml.ops.linearalg.matrices import *
from ember_ml.dispatch.portable import make_portable as _make_portable
from ember_ml.ops.random.sampling import *
from ember_ml.ops.arrays.scatter import *
from ember_ml.ops.arrays.searching import *
from ember_ml.ops.arrays.shape import *
from ember_ml.ops.arrays.sorting import *
from ember_ml.tensor import EmberTensor

_make_portable(globals())  # type checkers see the signatures of the ops, and those stay

from ember_ml.nn.tensor.common.convert import convert_to_tensor

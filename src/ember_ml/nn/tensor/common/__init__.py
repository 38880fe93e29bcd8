"""Portable tensors and the functions that make and reshape them.

The functions are the ops. Those that make tensors give portable ones here, on the active backend; the others keep the
kind of their arguments, as everywhere.
"""

from ember_ml.ops.choosing import *
from ember_ml.ops.conversion import *
from ember_ml.ops.creation import *
from ember_ml.ops.device import *
from ember_ml.ops.facts import *
from ember_ml.ops.indexing import *
from ember_ml.ops.joining import *
from ember_ml.ops.matrices import *
from ember_ml.ops.portable import make_portable as _make_portable
from ember_ml.ops.sampling import *
from ember_ml.ops.scatter import *
from ember_ml.ops.sets import *
from ember_ml.ops.shape import *
from ember_ml.ops.sorting import *
from ember_ml.tensor import EmberTensor

_make_portable(globals())  # type checkers see the signatures of the ops, and those stay

from ember_ml.nn.tensor.common.convert import convert_to_tensor

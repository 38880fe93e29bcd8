"""Every op, flat: one meaning on every backend.

The sub-namespaces (``ops.stats``, ``ops.linearalg``, ``ops.signal``) are views of the same table.
"""

from ember_ml.backend import get_backend, set_backend
from ember_ml.ops.elementwise import *
from ember_ml.ops.exponential import *
from ember_ml.ops.trigonometry import *
from ember_ml.ops.parts import *
from ember_ml.ops.special import *
from ember_ml.ops.comparison import *
from ember_ml.ops.bitwise import *
from ember_ml.ops.conversion import *
from ember_ml.ops.shape import *
from ember_ml.ops.joining import *
from ember_ml.ops.matrices import *
from ember_ml.ops.creation import *
from ember_ml.ops.facts import *
from ember_ml.ops.dtypes import *
from ember_ml.ops.device import *
from ember_ml.ops.indexing import *
from ember_ml.ops.scatter import *
from ember_ml.ops.sets import *
from ember_ml.ops.reductions import *
from ember_ml.ops.sorting import *
from ember_ml.ops.cumulative import *
from ember_ml.ops.nan_statistics import *
from ember_ml.ops.products import *
from ember_ml.ops.norms import *
from ember_ml.ops.factorizations import *
from ember_ml.ops.systems import *
from ember_ml.ops.fourier import *
from ember_ml.ops import linearalg, signal, stats
from ember_ml.ops import operators as _operators
from ember_ml.ops import methods as _methods

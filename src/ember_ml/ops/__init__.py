"""Every op, flat: one meaning on every backend.

The sub-namespaces (``ops.stats``, ``ops.linearalg``, ``ops.random``, ``ops.signal``) are views of the same table.
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
from ember_ml.ops.activations import *
from ember_ml.ops.normalizations import *
from ember_ml.ops.losses import *
from ember_ml.ops.convolutions import *
from ember_ml.ops.pooling import *
from ember_ml.ops.attention import *
from ember_ml.ops.windows import *
from ember_ml.ops.framing import *
from ember_ml.ops.filtering import *
from ember_ml.ops.sampling import *
from ember_ml.ops.choosing import *
from ember_ml.ops.solvers import *
from ember_ml.ops.odes import *
from ember_ml.ops.control import *
from ember_ml.ops.scans import *
from ember_ml.ops.storage import *
from ember_ml.ops.gradients import *
from ember_ml.ops.compilation import *
from ember_ml.ops import linearalg, random, signal, stats
from ember_ml.ops import operators as _operators
from ember_ml.ops import methods as _methods
from ember_ml.ops import backward as _backward

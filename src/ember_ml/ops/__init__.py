"""Every op, flat: one meaning on every backend.

The sub-namespaces (``ops.stats``, ``ops.linearalg``, ``ops.random``, ``ops.signal``) are views of the same table.
"""

from ember_ml.backend.selection import get_backend, set_backend
from ember_ml.ops.elementwise.arithmetic import *
from ember_ml.ops.elementwise.exponential import *
from ember_ml.ops.elementwise.trigonometry import *
from ember_ml.ops.elementwise.complex import *
from ember_ml.ops.elementwise.special import *
from ember_ml.ops.elementwise.comparison import *
from ember_ml.ops.elementwise.bitwise import *
from ember_ml.ops.arrays.conversion import *
from ember_ml.ops.arrays.shape import *
from ember_ml.ops.arrays.joining import *
from ember_ml.ops.linearalg.matrices import *
from ember_ml.ops.arrays.creation import *
from ember_ml.ops.arrays.properties import *
from ember_ml.ops.arrays.dtypes import *
from ember_ml.ops.arrays.device import *
from ember_ml.ops.arrays.indexing import *
from ember_ml.ops.arrays.scatter import *
from ember_ml.ops.arrays.searching import *
from ember_ml.ops.stats.reductions import *
from ember_ml.ops.arrays.sorting import *
from ember_ml.ops.stats.cumulative import *
from ember_ml.ops.stats.nan_statistics import *
from ember_ml.ops.linearalg.products import *
from ember_ml.ops.linearalg.norms import *
from ember_ml.ops.linearalg.factorizations import *
from ember_ml.ops.linearalg.linear_systems import *
from ember_ml.ops.signal.fourier import *
from ember_ml.ops.neural.activations import *
from ember_ml.ops.neural.normalizations import *
from ember_ml.ops.neural.losses import *
from ember_ml.ops.neural.convolutions import *
from ember_ml.ops.neural.pooling import *
from ember_ml.ops.neural.attention import *
from ember_ml.ops.signal.windows import *
from ember_ml.ops.signal.short_time import *
from ember_ml.ops.signal.filtering import *
from ember_ml.ops.random.sampling import *
from ember_ml.ops.random.choices import *
from ember_ml.transforms.solvers import *
from ember_ml.transforms.odes import *
from ember_ml.transforms.control import *
from ember_ml.transforms.scans import *
from ember_ml.ops.arrays.files import *
from ember_ml.transforms.gradients import *
from ember_ml.transforms.compilation import *
from ember_ml.ops import linearalg, random, signal, stats
from ember_ml.dispatch import operators as _operators
from ember_ml.dispatch import methods as _methods
from ember_ml.autodiff import tensor_backward as _backward

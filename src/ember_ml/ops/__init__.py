"""Every op, flat: one meaning on every backend."""

from ember_ml.backend import get_backend, set_backend
from ember_ml.ops.elementwise import *
from ember_ml.ops import operators as _operators

"""The names of Ember ML's ops and what the linter knows of each.

Tables of plain data: the linter imports nothing of the library that it checks.
"""

from __future__ import annotations

from ember_ml.lint.op_results import DTYPES, RETURNS_OTHER, RETURNS_TENSOR, RETURNS_TENSORS, RETURNS_UNKNOWN
from ember_ml.lint.tables import words

__all__ = [
    "BINARY",
    "CONTRACTIONS",
    "CREATION",
    "DTYPES",
    "RETURNS_OTHER",
    "RETURNS_TENSOR",
    "RETURNS_TENSORS",
    "RETURNS_UNKNOWN",
    "STRONG_FIRST",
    "STRONG_SECOND",
]

CONTRACTIONS = words("matmul linear dot vdot vecdot inner outer tensordot einsum conv dot_product_attention")

CREATION = words("zeros ones full empty eye identity arange linspace logspace geomspace")

# Ops whose leading arguments can hardly be anything but tensors: a parameter that is passed there is one.
_STRONG_FIRST = """
reshape transpose permute_dims swapaxes moveaxis expand_dims squeeze ravel flatten matmul dot vdot inner outer
tensordot sum mean var std prod argmax argmin sort argsort cumsum cumprod norm vector_norm matrix_norm svd qr eigh eig
cholesky inv pinv
det trace diagonal take gather take_along_axis zeros_like ones_like full_like softmax log_softmax relu gelu sigmoid
logsumexp shape ndim flip roll tile pad isnan isfinite isinf nonzero
"""
STRONG_FIRST = frozenset(_STRONG_FIRST.split())
STRONG_SECOND = words("matmul dot vdot inner outer tensordot")
BINARY = words("add subtract multiply divide power maximum minimum matmul dot")

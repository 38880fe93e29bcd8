"""In which dtype each op computes inside ``autocast``: the one table, which dispatch reads and the documentation shows.

Where ``torch.autocast`` names an op (its lists for CUDA), it is here under the same heading. Ops that are not named
follow their inputs: they compute in the dtype to which those promote.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ember_ml.core import dtypes as dt
from ember_ml.core.dtypes import EmberDType
from ember_ml.core.promotion import promote

__all__ = ["HALF", "POLICIES", "TABLE", "WIDE", "WIDEST", "Entry", "settle"]

HALF, WIDE, WIDEST = "half", "float32", "widest"


class Entry(NamedTuple):
    """Ops of one subject, and how they compute."""

    policy: str
    subject: str
    ops: tuple[str, ...]


TABLE: tuple[Entry, ...] = (
    Entry(HALF, "matrix products", ("matmul", "linear", "quantized_linear", "einsum", "vecdot")),
    Entry(HALF, "convolutions", ("conv", "depthwise_conv", "separable_conv", "conv_transpose")),
    Entry(HALF, "attention", ("dot_product_attention",)),
    Entry(HALF, "learned slopes", ("prelu",)),
    Entry(
        WIDE,
        "exponentials, logarithms, powers",
        (
            *("exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "logaddexp", "logaddexp2", "xlogy"),
            *("power", "reciprocal", "rsqrt", "sinh", "cosh", "tan", "arcsin", "arccos", "erfinv"),
        ),
    ),
    Entry(
        WIDE,
        "reductions",
        (
            *("sum", "prod", "mean", "var", "std", "logsumexp", "average", "moments", "trace"),
            *("nansum", "nanprod", "nanmean", "nanvar", "nanstd"),
            *("cumsum", "cumprod", "cumulative_sum", "cumulative_prod", "nancumsum", "nancumprod"),
            *("median", "quantile", "percentile", "nanmedian", "nanquantile", "nanpercentile"),
            *("trapezoid", "cov", "corrcoef"),
            *("segment_sum", "segment_mean", "segment_prod", "scatter_mean"),
        ),
    ),
    Entry(
        WIDE,
        "norms and distances",
        ("norm", "vector_norm", "matrix_norm", "normalize", "euclidean_distance", "cosine_similarity", "cdist"),
    ),
    Entry(WIDE, "softmax", ("softmax", "log_softmax", "sparsemax", "log_sigmoid", "softplus")),
    Entry(
        WIDE,
        "normalizations",
        (
            *("layer_normalization", "rms_normalization", "batch_normalization"),
            *("moments_normalization", "group_normalization"),
        ),
    ),
    Entry(
        WIDE,
        "losses",
        (
            *("mean_squared_error", "mean_absolute_error", "huber_loss", "log_cosh_loss", "kl_divergence"),
            *("binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy", "ctc_loss"),
        ),
    ),
    Entry(
        WIDE,
        "factorizations and linear systems",
        (
            *("svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "qr", "cholesky", "lu_factor"),
            *("solve", "solve_triangular", "inv", "det", "slogdet", "logdet", "pinv", "matrix_rank", "expm"),
            *("cholesky_inverse", "lu_solve", "lstsq"),
        ),
    ),
    Entry(
        WIDE,
        "Fourier transforms and signals",
        (
            *("fft", "ifft", "fftn", "ifftn", "fft2", "ifft2", "rfft", "irfft", "rfftn", "irfftn", "rfft2", "irfft2"),
            *("hfft", "ihfft", "stft", "istft", "spectrogram", "fftconvolve", "resample", "polar"),
        ),
    ),
    Entry(
        WIDEST,
        "other products",
        ("dot", "vdot", "inner", "tensordot", "matrix_power", "convolve"),
    ),
)

POLICIES: dict[str, str] = {name: entry.policy for entry in TABLE for name in entry.ops}
"""The policy of each op that has one."""


def settle(policy: str, half: EmberDType, dtypes: Iterable[EmberDType], scalars: Iterable[type]) -> EmberDType | None:
    """Return the dtype in which an op computes inside ``autocast``; None where autocast leaves it to the op's own rule.

    That is so for integers and bools, and wherever float64 or a complex number takes part.
    """
    scalars = list(scalars)
    floats = {dtype for dtype in dtypes if dtype.kind in ("float", "complex")}
    if not floats or not floats <= _CAST or complex in scalars:
        return None
    if policy == HALF:
        return half
    if policy == WIDE:
        return dt.float32
    return promote(floats, scalars)


_CAST = dt.HALVES | {dt.float32}

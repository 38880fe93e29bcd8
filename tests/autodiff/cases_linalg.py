"""Gradient cases of products, norms, factorizations and linear systems; of Fourier transforms what signals do not use.

Factors that are known up to signs or phases are made into something that is known: absolute values, projections, or
the product of the factors with numbers in between.
"""

from __future__ import annotations

import math
from typing import Any

from ember_ml import ops
from tests.autodiff.case import case, numbers


def _starred(subscripts: str) -> Any:
    return lambda operands: ops.einsum(subscripts, *operands)


def einsum(subscripts: str, *shapes: tuple[int, ...], label: str, kind: str = "float") -> None:
    operands = [numbers(*shape, seed=place, kind=kind) for place, shape in enumerate(shapes)]
    case("einsum", "operands", label, operands=operands, call=_starred(subscripts))


def pair(op: str, x: tuple[int, ...], y: tuple[int, ...], label: str = "", **rest: Any) -> None:
    case(op, ("x", "y"), label, x=numbers(*x), y=numbers(*y, seed=1), **rest)


def complex_pair(op: str, x: tuple[int, ...], y: tuple[int, ...], **rest: Any) -> None:
    arguments = {"x": numbers(*x, kind="complex"), "y": numbers(*y, kind="complex", seed=1)}
    case(op, ("x", "y"), "complex", **arguments, **rest)


# products
einsum("ij,jk->ik", (2, 3), (3, 4), label="matrices")
einsum("ij,jk", (2, 3), (3, 4), label="no arrow")
einsum("bij,bjk->bik", (2, 2, 3), (2, 3, 2), label="stacks")
einsum("...ij,...j->...i", (2, 1, 2, 3), (4, 3), label="dots")
einsum("...i->...", (2, 3), label="dots alone")
einsum("i...,i->...", (3, 2), (3,), label="dots last")
einsum("ii->i", (3, 3), label="diagonal")
einsum("ii", (3, 3), label="trace")
einsum("iij->j", (3, 3, 2), label="trace of two")
einsum("iii->i", (3, 3, 3), label="three alike")
einsum("ij->", (2, 3), label="all")
einsum("ij,kl->il", (2, 3), (4, 2), label="summed alone")
einsum("i,i->i", (3,), (1,), label="size 1")
einsum("i,i->", (3,), (1,), label="size 1 summed")
einsum("ij,ij,j->i", (2, 3), (2, 3), (3,), label="three")
einsum("i,j->ij", (2,), (3,), label="outer")
einsum(",i->i", (), (3,), label="0-d")
einsum("ij,j->i", (0, 3), (3,), label="empty")
einsum("ij,jk->ki", (2, 3), (3, 2), label="complex", kind="complex")
for label, shape in (("rows", (3, 4)), ("one", (4,)), ("stack", (2, 3, 4)), ("empty", (0, 4))):
    layer = {"x": numbers(*shape), "weight": numbers(2, 4, seed=1), "bias": numbers(2, seed=2)}
    case("linear", ("x", "weight", "bias"), label, **layer)
case("linear", ("x", "weight"), "no bias", x=numbers(3, 4), weight=numbers(2, 4, seed=1))
case(
    "linear",
    ("x", "weight", "bias"),
    "complex",
    x=numbers(3, 2, kind="complex"),
    weight=numbers(2, 2, kind="complex", seed=1),
    bias=numbers(2, kind="complex", seed=2),
)
pair("dot", (2, 3), (3, 2))
pair("dot", (3,), (3,), "vectors")
pair("dot", (2, 2, 3), (2, 3, 2), "stacks")
pair("dot", (), (3,), "0-d")
pair("vdot", (2, 3), (6,))
complex_pair("vdot", (3,), (3,))
pair("vecdot", (2, 3), (3,))
pair("vecdot", (3, 2), (3, 2), "axis", axis=0)
complex_pair("vecdot", (2, 3), (3,))
pair("inner", (2, 3), (4, 3))
pair("inner", (3,), (), "0-d")
pair("outer", (2,), (3,))
pair("tensordot", (2, 3, 4), (3, 4, 2))
pair("tensordot", (2, 3), (3, 2), "named", axes=((0, 1), (1, 0)))
pair("kron", (2, 2), (2, 3))
pair("cross", (2, 3), (3,))
pair("cross", (3, 2), (3, 2), "axis", axis=0)
case("trace", x=numbers(2, 3, 3), offset=1, label="stack")

# norms and distances
case("norm", x=numbers(2, 3))
case("norm", x=numbers(2, 3), axis=1, keepdims=True, label="axis")
case("norm", x=numbers(2, 3), ord=1, label="matrix of order 1", second=False)
case("norm", x=numbers(2, 3, 2), axis=(2, 0), label="axes")
case("vector_norm", x=numbers(2, 3))
for order in (1, 3, 2.5, 0.5, -1, -2.0):
    case("vector_norm", x=numbers(2, 3), axis=1, ord=order, label=f"order {order}")
for order in (math.inf, -math.inf, 0):
    case("vector_norm", x=numbers(2, 3, apart=True), axis=1, ord=order, label=f"order {order}", second=False)
for order in (2, 1, 3):
    case("vector_norm", x=numbers(3, kind="complex"), ord=order, label=f"complex {order}")
case("vector_norm", x=numbers(2, 0), axis=1, label="empty")
case("vector_norm", x=numbers(), label="0-d")
for order in ("fro", "nuc", 2, -2):
    case("matrix_norm", x=numbers(2, 3, 2), ord=order, label=f"order {order}")
for order in (1, -1, math.inf, -math.inf):
    case("matrix_norm", x=numbers(2, 3, 2), ord=order, label=f"order {order}", second=False)
pair("euclidean_distance", (2, 3), (3,))
pair("cosine_similarity", (2, 3), (3,))
case("normalize", "x", x=numbers(2, 3), axis=-1)
pair("cosine_similarity", (3, 2), (3, 2), "axis", axis=0)
pair("cdist", (2, 3, 2), (4, 2), second=False)
for p in (1.0, 3.0, math.inf):
    pair("cdist", (3, 2), (2, 2), f"order {p}", p=p, second=False)


# factorizations
def _hermitian(x: Any) -> Any:
    return ops.add(x, ops.conj(ops.matrix_transpose(x)))


def _definite(x: Any) -> Any:
    size = x.shape[-1]
    return ops.add(ops.matmul(x, ops.conj(ops.matrix_transpose(x))), ops.eye(size, dtype=x.dtype))


def _known_parts(x: Any, full_matrices: bool = False) -> tuple[Any, ...]:
    """Of the singular vectors what does not depend on their signs."""
    u, s, vh = ops.svd(x, full_matrices)
    size = s.shape[-1]
    u, vh = u[..., :size], vh[..., :size, :]
    return (
        ops.square(ops.abs(u)),
        s,
        ops.square(ops.abs(vh)),
        ops.matmul(ops.multiply(u, ops.expand_dims(ops.square(s), -2)), vh),
    )


def _eigen_parts(values: Any, vectors: Any) -> tuple[Any, ...]:
    turned = ops.conj(ops.matrix_transpose(vectors))
    return values, ops.square(ops.abs(vectors)), ops.matmul(ops.multiply(vectors, ops.expand_dims(values, -2)), turned)


for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2)):
    case("svd", x=numbers(*shape), call=_known_parts, label=f"{shape}")
case("svd", x=numbers(3, 2), call=lambda x: _known_parts(x, True), label="full")
case("svd", x=numbers(3, 2, kind="complex"), call=_known_parts, label="complex")
case("svd", x=numbers(2, 3, kind="complex"), call=_known_parts, label="complex wide")
case("svd", x=numbers(0, 2, 2), call=_known_parts, label="empty")
case("svdvals", x=numbers(2, 3, 2))
case("svdvals", x=numbers(3, 2, kind="complex"), label="complex")
case("eigh", x=numbers(3, 3), call=lambda x: _eigen_parts(*ops.eigh(_hermitian(x))))
case("eigh", x=numbers(2, 2, 2), call=lambda x: _eigen_parts(*ops.eigh(_hermitian(x))), label="stack")
case(
    "eigh",
    x=numbers(3, 3, kind="complex"),
    call=lambda x: _eigen_parts(*ops.eigh(_hermitian(x))),
    label="complex",
)
case("eigvalsh", x=numbers(2, 3, 3), call=lambda x: ops.eigvalsh(_hermitian(x)))
case(
    "eigvalsh",
    x=numbers(3, 3, kind="complex"),
    call=lambda x: ops.eigvalsh(_hermitian(x)),
    label="complex",
)


def _sums(values: Any) -> Any:
    """What does not depend on the order of eigenvalues."""
    return [ops.sum(ops.square(values), axis=-1), ops.sum(ops.exp(ops.multiply(values, 0.3)), axis=-1)]


def _weighed(x: Any, vectors: Any, values: Any) -> Any:
    return ops.sum(
        ops.multiply(ops.square(ops.abs(vectors)), ops.expand_dims(ops.exp(ops.multiply(values, 0.3)), -2)), axis=-1
    )


def _eig(x: Any) -> Any:
    values, vectors = ops.eig(x)
    return [*_sums(values), _weighed(x, vectors, values)]


case("eig", x=numbers(3, 3, seed=3), call=_eig)
case("eig", x=numbers(2, 2, 2, seed=1), call=_eig, label="stack")
case("eig", x=numbers(3, 3, kind="complex"), call=_eig, label="complex")
case("eigvals", x=numbers(3, 3, seed=3), call=lambda x: _sums(ops.eigvals(x)))
case("eigvals", x=numbers(3, 3, kind="complex"), call=lambda x: _sums(ops.eigvals(x)), label="complex")


def _qr_parts(x: Any) -> tuple[Any, ...]:
    """What does not depend on the phases of the factors."""
    q, r = ops.qr(x)
    weights = ops.cast(ops.arange(1, r.shape[-2] + 1), x.dtype)
    return ops.square(ops.abs(q)), ops.square(ops.abs(r)), ops.matmul(ops.multiply(q, weights), r)


for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2)):
    case("qr", x=numbers(*shape), label=f"{shape}")
case("qr", x=numbers(2, 3), mode="complete", label="complete")
case("qr", x=numbers(3, 2, kind="complex"), call=_qr_parts, label="complex")
case("qr", x=numbers(2, 3, kind="complex"), call=_qr_parts, label="complex wide")
case("cholesky", x=numbers(2, 3, 3), call=lambda x: ops.cholesky(_definite(x)))
case("cholesky", x=numbers(3, 3), call=lambda x: ops.cholesky(_definite(x), upper=True), label="upper")
case(
    "cholesky",
    x=numbers(3, 3, kind="complex"),
    call=lambda x: ops.cholesky(_definite(x)),
    label="complex",
)
for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 3)):
    case("lu_factor", x=numbers(*shape), label=f"{shape}")
case("lu_factor", x=numbers(3, 3, kind="complex"), label="complex")

# systems
case("solve", ("a", "b"), a=numbers(3, 3), b=numbers(3, seed=1))
case("solve", ("a", "b"), a=numbers(3, 3), b=numbers(3, 2, seed=1), label="columns")
case("solve", ("a", "b"), a=numbers(2, 3, 3), b=numbers(3, seed=1), label="stack and vector")
case("solve", ("a", "b"), a=numbers(2, 1, 3, 3), b=numbers(2, 3, 1, seed=1), label="stacks")
case("solve", ("a", "b"), a=numbers(0, 3, 3), b=numbers(3, 2, seed=1), label="empty")
case(
    "solve",
    ("a", "b"),
    a=numbers(3, 3, kind="complex"),
    b=numbers(3, kind="complex", seed=1),
    label="complex",
)
for lower in (False, True):
    case(
        "solve_triangular",
        ("a", "b"),
        a=numbers(3, 3, low=0.5),
        b=numbers(3, 2, seed=1),
        lower=lower,
        label=f"lower {lower}",
    )
case("solve_triangular", ("a", "b"), a=numbers(2, 3, 3, low=0.5), b=numbers(3, seed=1), label="stack and vector")
case(
    "solve_triangular",
    ("a", "b"),
    a=numbers(3, 3, kind="complex"),
    b=numbers(3, kind="complex", seed=1),
    label="complex",
)
case("inv", x=numbers(2, 3, 3))
case("inv", x=numbers(3, 3, kind="complex"), label="complex")
case("det", x=numbers(2, 3, 3))
case("det", x=numbers(0, 0), label="no rows")
case("det", x=numbers(3, 3, kind="complex"), label="complex")
case("slogdet", x=numbers(2, 3, 3))
case("slogdet", x=numbers(3, 3, kind="complex"), label="complex")
case("logdet", x=numbers(3, 3), call=lambda x: ops.logdet(_definite(x)))
case("logdet", x=numbers(3, 3, kind="complex"), label="complex")
for shape in ((3, 3), (4, 2), (2, 3), (2, 3, 2)):
    case("pinv", x=numbers(*shape), label=f"{shape}")
case("pinv", x=numbers(3, 2), call=lambda x: ops.pinv(ops.matmul(x, ops.matrix_transpose(x))), label="of rank 2")
case("pinv", x=numbers(3, 2, kind="complex"), label="complex")
for power in (3, 0, 1, -2):
    case("matrix_power", x=numbers(2, 2, 2), n=power, label=f"{power}")
for size, high in (("small", 1.0), ("large", 9.0)):
    case("expm", x=numbers(2, 3, 3, low=-0.5, high=high), label=size)
case("expm", x=numbers(3, 3, kind="complex"), label="complex")
case("cholesky_inverse", x=numbers(2, 3, 3, low=0.5))
case("cholesky_inverse", x=numbers(3, 3, low=0.5), upper=True, label="upper")


def _lu_solve(a: Any, b: Any) -> Any:
    return ops.lu_solve(*ops.lu_factor(a), b)


case("lu_solve", ("a", "b"), a=numbers(3, 3), b=numbers(3, seed=1), call=_lu_solve)
case("lu_solve", ("a", "b"), a=numbers(2, 3, 3), b=numbers(3, 2, seed=1), call=_lu_solve, label="stack")
case("lstsq", ("a", "b"), a=numbers(4, 2), b=numbers(4, seed=1))
case("lstsq", ("a", "b"), a=numbers(4, 2), b=numbers(4, 2, seed=1), label="columns")
case("lstsq", ("a", "b"), a=numbers(2, 4), b=numbers(2, seed=1), label="wide")
case("lstsq", ("a", "b"), a=numbers(3, 3), b=numbers(3, seed=1), label="square")

# Fourier transforms along several axes, and of what is real where it may be complex
for name in ("fft", "ifft", "irfft", "hfft"):
    for norm in ("backward", "ortho", "forward"):
        case(name, x=numbers(2, 4), n=5, norm=norm, label=f"real {norm}")
for name in ("fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"):
    case(name, x=numbers(2, 3, 4), label="real")
    case(name, x=numbers(2, 3, 4), s=(3, 5), axes=(1, 0), norm="forward", label="real, lengths")
for name in ("ifft2", "irfft2"):
    case(name, x=numbers(3, 4, kind="complex"), s=(2, -1), axes=(0, 1), label="complex")
for name in ("fftshift", "ifftshift"):
    case(name, x=numbers(3, 4), label="all axes")
    case(name, x=numbers(3, 5), axes=1, label="axis")

"""Products of tensors, on PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.nn import functional

from ember_ml.backend.common.einsum import contract, read_subscripts
from ember_ml.backend.common.linalg import check_linear
from ember_ml.backend.contract import ByDType
from ember_ml.backend.torch.gradients import is_inside_transform
from ember_ml.backend.torch.unsigned import unsigned
from ember_ml.core import dtypes as dt

_PIECE = 16  # bits; products of two pieces add up exactly in float64, 2**21 of them
_MOST_TERMS = 1 << 21


def _matmul_integers(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiply integers; off the CPU, split into pieces that floats hold exactly."""
    # torch 2.11 on CUDA: no matrix product of integers
    if x.device.type == "cpu":
        return torch.matmul(x, y)
    if not (x.ndim and y.ndim):
        raise ValueError("a product of matrices needs at least one dimension on each side")
    if x.device.type == "mps":  # MPS has no float64
        return torch.matmul(x.cpu(), y.cpu()).to(x.device)
    if x.shape[-1] > _MOST_TERMS:
        middle = x.shape[-1] // 2
        rows = y if y.ndim == 1 else y.movedim(-2, 0)
        first, second = rows[:middle], rows[middle:]
        if y.ndim > 1:
            first, second = first.movedim(0, -2), second.movedim(0, -2)
        return _matmul_integers(x[..., :middle], first) + _matmul_integers(x[..., middle:], second)
    return _matmul_in_pieces(x, y)


def _matmul_in_pieces(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    count = max(x.dtype.itemsize * 8 // _PIECE, 1)
    wide_x, wide_y = x.to(torch.int64), y.to(torch.int64)
    total = torch.zeros((), dtype=torch.int64, device=x.device)
    for i in range(count):
        for j in range(count - i):  # higher pieces overflow the dtype
            product = torch.matmul(_piece(wide_x, i, count), _piece(wide_y, j, count))
            total = total + (product.to(torch.int64) << (_PIECE * (i + j)))
    return total.to(x.dtype)


def _piece(x: torch.Tensor, number: int, count: int) -> torch.Tensor:
    if count == 1:
        return x.to(torch.float64)
    return ((x >> (_PIECE * number)) & (2**_PIECE - 1)).to(torch.float64)


_LONG, _BLOCK, _FEW = 1 << 15, 1 << 12, 1 << 10
_LARGE = 1 << 17  # from so many weights on, calling oneDNN costs less than what it saves
_HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
_ONEDNN_LINEAR: Any = torch.ops.mkldnn._linear_pointwise if _HAS_ONEDNN else None
_OWN_TYPES = (torch.Tensor, torch.nn.Parameter)


def _loses_digits() -> bool:
    """Whether a long sum of products is added up one after the other on this processor."""
    # torch 2.13 with MKL on AMD processors, with AVX-512 or without: few rows and columns are
    row = torch.full((1, 1 << 17), 0.1, dtype=torch.float32, device="cpu")
    return abs(float(row @ row.T) / (0.01 * row.numel()) - 1.0) > 1e-5


_LOSES_DIGITS = _loses_digits()


def _matmul_single(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Multiply matrices; few long sums of products block by block, so that they keep their digits."""
    if torch.compiler.is_compiling() or x.numel() < _LONG or x.is_cuda or not y.ndim:
        return torch.matmul(x, y)
    length, axis = x.shape[-1], max(y.ndim - 2, 0)
    if length < _LONG or length != y.shape[axis] or (x.numel() // length) * (y.numel() // length) > _FEW:
        return torch.matmul(x, y)
    return torch.stack(list(map(torch.matmul, x.split(_BLOCK, -1), y.split(_BLOCK, axis)))).sum(0)


_INTEGERS = (dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8)
_single = dict.fromkeys((dt.float32, dt.complex64), _matmul_single) if _LOSES_DIGITS else {}
matmul = ByDType(torch.matmul, _single | dict.fromkeys(_INTEGERS, _matmul_integers) | unsigned(_matmul_integers))


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    # torch 2.13: broadcasts the bias in some cases and not in others
    check_linear(weight, bias)
    if _LOSES_DIGITS and weight.shape[-1] >= _LONG and x.dtype is torch.float32:
        product = _matmul_single(x, weight.T)
        return product if bias is None else product + bias
    if weight.numel() >= _LARGE and _is_for_onednn(x, weight, bias):
        return _ONEDNN_LINEAR(x, weight, bias, "none", [], "")
    return functional.linear(x, weight, bias)


def _is_for_onednn(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """Whether oneDNN multiplies by this large weight: in float32 on the CPU, where nobody derives the product.

    With a few rows it reads the weight 1.3 to 3 times as fast as MKL, which ``functional.linear`` asks; with many
    it takes 0.7 to 1 of MKL's time (torch 2.13 on an AMD processor with AVX-512).
    """
    tensors = [x, weight] if bias is None else [x, weight, bias]
    if not _HAS_ONEDNN or x.dtype is not torch.float32 or x.device.type != "cpu" or x.shape[-1:] != weight.shape[-1:]:
        return False
    if not torch.backends.mkldnn.enabled or torch.is_autocast_enabled("cpu"):
        return False
    # torch 2.13: it has no derivative, loses the tangents of forward mode, is unknown to subclasses (DTensor, weights
    # quantized by torchao), to modes (FlopCounterMode) and to torch.jit.trace, takes no sparse weight, and reads past
    # a bias with strides
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return False
    if any(type(tensor) not in _OWN_TYPES or tensor.layout is not torch.strided for tensor in tensors):
        return False
    if not all(tensor.is_contiguous() for tensor in tensors[1:]):
        return False
    is_watched = torch._C._len_torch_dispatch_stack() or torch._C._is_tracing()
    return forward_ad._current_level < 0 and not is_watched and not is_inside_transform()


def _linear_integers(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    check_linear(weight, bias)
    product = _matmul_integers(x, weight.T)
    return product if bias is None else product + bias


linear = ByDType(_linear, dict.fromkeys(_INTEGERS, _linear_integers) | unsigned(_linear_integers))


class _Algebra:
    """The operations by which Einstein sums are computed that PyTorch does not compute, or not to all digits."""

    transpose = staticmethod(torch.permute)
    reshape = staticmethod(torch.reshape)
    broadcast_to = staticmethod(torch.broadcast_to)

    @staticmethod
    def sum(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
        return torch.sum(x, dim=axes, dtype=x.dtype)

    @staticmethod
    def diagonal(x: torch.Tensor, axis1: int, axis2: int) -> torch.Tensor:
        return torch.diagonal(x, 0, axis1, axis2)


class _Integers(_Algebra):
    matmul = staticmethod(_matmul_integers)


class _Singles(_Algebra):
    matmul = staticmethod(_matmul_single)


def einsum(subscripts: str, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    if operands and not operands[0].is_floating_point() and not operands[0].is_complex():
        return _einsum_integers[operands[0].dtype](subscripts, *operands)
    if _LOSES_DIGITS and not torch.compiler.is_compiling() and _is_few_long_sums(subscripts, operands):
        return contract(_Singles(), subscripts, operands)
    return torch.einsum(subscripts, *operands)


def _is_few_long_sums(subscripts: str, operands: Sequence[torch.Tensor]) -> bool:
    if len(operands) < 2 or operands[0].dtype not in (torch.float32, torch.complex64) or operands[0].is_cuda:
        return False  # half precision is summed in float32 where it is not cut into blocks
    if operands[0].numel() < _LONG:
        return False
    labels, output = read_subscripts(subscripts, [tuple(x.shape) for x in operands])
    sizes: dict[str, int] = {}
    for names, x in zip(labels, operands, strict=True):
        sizes |= {name: max(size, sizes.get(name, 1)) for name, size in zip(names, x.shape, strict=True)}
    return math.prod(sizes[label] for label in output) <= _FEW


def _contract(subscripts: str, *operands: torch.Tensor) -> torch.Tensor:
    return contract(_Integers(), subscripts, operands)


_wrapped = unsigned(_contract)
_einsum_integers = {getattr(torch, dtype.name): _contract for dtype in _INTEGERS} | {
    getattr(torch, dtype.name): body for dtype, body in _wrapped.items()
}


def diagonal(x: torch.Tensor, offset: int, axis1: int, axis2: int) -> torch.Tensor:
    if x.ndim < 2:
        raise ValueError(f"a diagonal needs at least 2 dimensions, not {x.ndim}")
    return torch.diagonal(x, offset, axis1, axis2)

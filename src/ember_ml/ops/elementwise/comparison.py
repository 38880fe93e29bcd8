"""Comparison, logic and choice, element by element."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml.dispatch.declare import derived, gradient, primitive
from ember_ml.dispatch.dtype_rules import EQUALITY, LOGICAL, ORDER, REAL, SAME
from ember_ml.typing import MaskLike, Tensor, TensorLike

__all__: list[str] = [
    "allclose",
    "equal",
    "greater",
    "greater_equal",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "select",
    "where",
]


@primitive(EQUALITY)
def equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether ``x`` equals ``y``, compared in their common dtype; NaN equals nothing.

    Python integers beyond the range of the dtype, and uint64 with signed integers, are compared by value.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.equal([1.0, 2.0], 2)).tolist()
    [False, True]
    """
    ...


@primitive(EQUALITY)
def not_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether ``x`` differs from ``y``; NaN differs from everything. Compared as in ``equal``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.not_equal([1.0, 2.0], 2)).tolist()
    [True, False]
    """
    ...


@primitive(ORDER)
def less(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether ``x`` is less than ``y``; false with NaN. Compared as in ``equal``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.less([1.0, 2.0], 2)).tolist()
    [True, False]
    """
    ...


@primitive(ORDER)
def less_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether ``x`` is at most ``y``; false with NaN. Compared as in ``equal``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.less_equal([1.0, 2.0], 2)).tolist()
    [True, True]
    """
    ...


@primitive(ORDER)
def greater(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether ``x`` is greater than ``y``; false with NaN. Compared as in ``equal``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.greater([1.0, 3.0], 2)).tolist()
    [False, True]
    """
    ...


@primitive(ORDER)
def greater_equal(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether ``x`` is at least ``y``; false with NaN. Compared as in ``equal``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.greater_equal([1.0, 2.0], 2)).tolist()
    [False, True]
    """
    ...


@primitive(SAME.giving("bool"))
def isfinite(x: TensorLike) -> Tensor:
    """Whether ``x`` is a number, neither infinite nor NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.isfinite([1.0, float("inf"), float("nan")])).tolist()
    [True, False, False]
    """
    ...


@primitive(SAME.giving("bool"))
def isinf(x: TensorLike) -> Tensor:
    """Whether ``x`` is infinite, either way.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.isinf([1.0, float("-inf")])).tolist()
    [False, True]
    """
    ...


@primitive(SAME.giving("bool"))
def isnan(x: TensorLike) -> Tensor:
    """Whether ``x`` is NaN.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.isnan([1.0, float("nan")])).tolist()
    [False, True]
    """
    ...


@primitive(REAL.giving("bool"))
def isneginf(x: TensorLike) -> Tensor:
    """Whether ``x`` is minus infinity.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.isneginf([1.0, float("-inf")])).tolist()
    [False, True]
    """
    ...


@primitive(REAL.giving("bool"))
def isposinf(x: TensorLike) -> Tensor:
    """Whether ``x`` is plus infinity.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.isposinf([1.0, float("inf")])).tolist()
    [False, True]
    """
    ...


@primitive(SAME.giving("bool"))
def isreal(x: TensorLike) -> Tensor:
    """Whether the imaginary part is 0; true for all that is not complex.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.isreal([1 + 0j, 2j])).tolist()
    [True, False]
    """
    ...


@primitive(LOGICAL)
def logical_and(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether both are true; every number but 0 is, NaN too.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.logical_and([1, 0], [0.5, 0.5])).tolist()
    [True, False]
    """
    ...


@primitive(LOGICAL)
def logical_or(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether either is true; every number but 0 is, NaN too.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.logical_or([True, False], [False, False])).tolist()
    [True, False]
    """
    ...


@primitive(LOGICAL)
def logical_xor(x: TensorLike, y: TensorLike) -> Tensor:
    """Whether exactly one of both is true; every number but 0 is, NaN too.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.logical_xor([True, True], [False, True])).tolist()
    [True, False]
    """
    ...


@primitive(LOGICAL)
def logical_not(x: TensorLike) -> Tensor:
    """Whether ``x`` is false: 0, or False.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.logical_not([0, 2])).tolist()
    [True, False]
    """
    ...


@primitive(SAME.giving("bool"))
def isclose(x: TensorLike, y: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether ``|x - y| <= atol + rtol * |y|``; equal infinities are close, NaN only with ``equal_nan``.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.isclose([1.0, 1.0], [1.0, 1.1])).tolist()
    [True, False]
    """
    ...


@primitive(SAME.giving("bool"))
def allclose(x: TensorLike, y: TensorLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close by ``isclose``, as a 0-d tensor.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.allclose([1.0, 1.0], [1.0, 1.1])).tolist()
    False
    """
    ...


@primitive(SAME.giving("bool"))
def isin(x: TensorLike, test_elements: TensorLike, invert: bool = False) -> Tensor:
    """Whether each element of ``x`` is among ``test_elements``; NaN never is. ``invert`` negates the answer.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.isin([1, 2, 3], [3, 1])).tolist()
    [True, False, True]
    """
    ...


@primitive(SAME)
def where(condition: MaskLike, x: TensorLike, y: TensorLike) -> Tensor:
    """``x`` where ``condition`` is true, ``y`` elsewhere; the three broadcast, the condition must be bool.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.where([True, False], [1.0, 2.0], 0.0)).tolist()
    [1.0, 0.0]
    """
    ...


gradient(
    where,
    x=lambda g, condition: where(condition, g, 0),
    y=lambda g, condition: where(condition, 0, g),
)


@derived(SAME)
def select(conditions: Sequence[MaskLike], choices: Sequence[TensorLike], default: TensorLike = 0) -> Tensor:
    """From the first of ``choices`` whose condition is true; ``default`` where none is.

    ``conditions`` and ``choices`` are lists of equal length whose tensors broadcast together.

    >>> from ember_ml import ops
    >>> ops.to_numpy(ops.select([[True, False, False], [True, True, False]], [[1, 1, 1], [2, 2, 2]])).tolist()
    [1, 2, 0]
    """
    if len(conditions) != len(choices) or not choices:
        raise ValueError(f"{len(conditions)} conditions with {len(choices)} choices; give each condition one choice")
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(condition, choice, result)
    return result

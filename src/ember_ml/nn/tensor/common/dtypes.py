"""The dtypes, and conversions between dtypes and their names."""

from __future__ import annotations

from typing import Any

from ember_ml.core.dtypes import (
    EmberDType,
    as_dtype,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

__all__ = [
    "DType",
    "EmberDType",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "dtype",
    "float16",
    "float32",
    "float64",
    "from_dtype_str",
    "get_dtype",
    "int8",
    "int16",
    "int32",
    "int64",
    "to_dtype_str",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

_DTYPES = {
    item.name: item
    for item in (
        *(bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64),
        *(float16, bfloat16, float32, float64, complex64, complex128),
    )
}


class DType:
    """Every dtype as an attribute; called, it is :func:`get_dtype`.

    >>> from ember_ml.nn.tensor import dtype
    >>> dtype.float32, dtype("int8"), len(list(dtype))
    (float32, int8, 15)
    """

    def __getattr__(self, name: str) -> EmberDType:
        found = _DTYPES.get(name.removesuffix("_"))
        if found is None:
            raise AttributeError(f"there is no dtype {name!r}; Ember ML knows {', '.join(_DTYPES)}")
        return found

    def __call__(self, value: Any) -> EmberDType:
        return get_dtype(value)

    def __iter__(self) -> Any:
        return iter(_DTYPES.values())

    def __dir__(self) -> list[str]:
        return list(_DTYPES)

    def __repr__(self) -> str:
        return f"<dtypes {', '.join(_DTYPES)}>"


dtype: DType = DType()


def get_dtype(value: Any) -> EmberDType:
    """Return the dtype that ``value`` is or stands for: a tensor's own, a name, any library's dtype, a Python type.

    >>> from ember_ml.nn import tensor
    >>> tensor.get_dtype("int8"), tensor.get_dtype(tensor.ones(3))
    (int8, float32)
    """
    own = getattr(value, "dtype", None)
    return as_dtype(value if own is None or isinstance(value, type) else own)


def to_dtype_str(value: Any) -> str:
    """Return the name of a dtype.

    >>> from ember_ml.nn import tensor
    >>> tensor.to_dtype_str(tensor.float32)
    'float32'
    """
    return as_dtype(value).name


def from_dtype_str(name: str) -> EmberDType:
    """Return the dtype of that name.

    >>> from ember_ml.nn import tensor
    >>> tensor.from_dtype_str("bfloat16")
    bfloat16
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a dtype is a string, not {type(name).__name__}")
    return as_dtype(name)

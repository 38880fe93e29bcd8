"""The dtypes of Ember ML: one object per dtype, the same on every backend.

An :class:`EmberDType` equals its own name and every library's object for the same dtype, so ``x.dtype == "float32"``,
``x.dtype == np.float32`` and ``x.dtype == torch.float32`` all hold. Libraries are never imported for that: their dtypes
are recognised by name, once, and remembered.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ALL",
    "BOOL",
    "COMPLEX",
    "DEFAULT_COMPLEX",
    "DEFAULT_FLOAT",
    "DEFAULT_INT",
    "FLOATS",
    "HALVES",
    "INTEGERS",
    "SIGNED",
    "UNSIGNED",
    "EmberDType",
    "as_dtype",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "find_dtype",
    "float16",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


class _Identity:
    """The comparisons of :class:`EmberDType`.

    torch 2.11: its compiler hashes no object whose own class has a ``__hash__``.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other or find_dtype(other) is self

    def __hash__(self) -> int:
        return hash(getattr(self, "name", None))  # torch 2.13: torch.compile hashes an unfinished object


class EmberDType(_Identity):
    """A dtype, independent of the library that computes.

    There is one object per dtype; compare with ``==`` to a name or to any library's dtype.

    >>> from ember_ml import ops
    >>> ops.float32 == "float32", ops.float32.itemsize, ops.float32.kind
    (True, 4, 'float')
    """

    __slots__ = ("bits", "itemsize", "kind", "name")

    name: str
    kind: str
    bits: int
    itemsize: int

    def __new__(cls, name: str) -> EmberDType:
        return as_dtype(name)

    def __repr__(self) -> str:
        return self.name

    def _repr_html_(self) -> str:
        """Return the name and the size for notebooks."""
        return f"<code>{self.name}</code>: {self.kind}, {self.bits} bits"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


def _make(name: str, kind: str, bits: int) -> EmberDType:
    dtype = object.__new__(EmberDType)
    dtype.name, dtype.kind, dtype.bits, dtype.itemsize = name, kind, bits, max(bits // 8, 1)
    return dtype


bool_: EmberDType = _make("bool", "bool", 8)
int8: EmberDType = _make("int8", "int", 8)
int16: EmberDType = _make("int16", "int", 16)
int32: EmberDType = _make("int32", "int", 32)
int64: EmberDType = _make("int64", "int", 64)
uint8: EmberDType = _make("uint8", "uint", 8)
uint16: EmberDType = _make("uint16", "uint", 16)
uint32: EmberDType = _make("uint32", "uint", 32)
uint64: EmberDType = _make("uint64", "uint", 64)
float16: EmberDType = _make("float16", "float", 16)
bfloat16: EmberDType = _make("bfloat16", "float", 16)
float32: EmberDType = _make("float32", "float", 32)
float64: EmberDType = _make("float64", "float", 64)
complex64: EmberDType = _make("complex64", "complex", 64)
complex128: EmberDType = _make("complex128", "complex", 128)

BOOL = frozenset({bool_})
SIGNED = frozenset({int8, int16, int32, int64})
UNSIGNED = frozenset({uint8, uint16, uint32, uint64})
INTEGERS = SIGNED | UNSIGNED
HALVES = frozenset({float16, bfloat16})
FLOATS = HALVES | {float32, float64}
COMPLEX = frozenset({complex64, complex128})
ALL = BOOL | INTEGERS | FLOATS | COMPLEX

DEFAULT_FLOAT = float32
DEFAULT_INT = int64
DEFAULT_COMPLEX = complex64

_BY_NAME: dict[str, EmberDType] = {dtype.name: dtype for dtype in ALL}
_NAMES_OF_TYPES: dict[type, EmberDType] = {
    bool: bool_,
    int: DEFAULT_INT,
    float: DEFAULT_FLOAT,
    complex: DEFAULT_COMPLEX,
}
# By the class of the value: torch.compile traces all keys of a table and must not meet those of other libraries.
_KNOWN: dict[type, dict[Any, EmberDType]] = {str: {**_BY_NAME}, type: {**_NAMES_OF_TYPES}}


def find_dtype(value: object) -> EmberDType | None:
    """Return the dtype that ``value`` stands for (object, name, any library's dtype, Python type), or None."""
    if type(value) is EmberDType:
        return value
    try:
        return _KNOWN[type(value)][value]
    except KeyError:
        pass
    except TypeError:
        return None
    found = _recognise(value)
    if found is not None:  # anything else may be unhashable, or large
        _KNOWN.setdefault(type(value), {})[value] = found
    return found


def _recognise(value: Any) -> EmberDType | None:
    if isinstance(value, str):
        return _BY_NAME.get(value)
    if isinstance(value, type):
        if value in _NAMES_OF_TYPES:
            return _NAMES_OF_TYPES[value]
        return _BY_NAME.get(value.__name__.rstrip("_"))
    if "dtype" not in type(value).__name__.lower():  # the name of every library's dtype class says so
        return None
    return _BY_NAME.get(str(value).rsplit(".", 1)[-1].rstrip("_"))


def as_dtype(value: object) -> EmberDType:
    """Return the dtype that ``value`` stands for; ``TypeError`` where it stands for none.

    >>> as_dtype("int8"), as_dtype(float), as_dtype(bool)
    (int8, float32, bool)
    """
    found = find_dtype(value)
    if found is None:
        raise TypeError(f"{value!r} is not a dtype; Ember ML knows {', '.join(sorted(_BY_NAME))}")
    return found

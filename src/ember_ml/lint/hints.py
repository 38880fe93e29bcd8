"""Evaluate annotations: the values that they promise."""

from __future__ import annotations

import ast
from typing import Any

from ember_ml.lint import natives
from ember_ml.lint.values import (
    NONE,
    NOT_TENSOR,
    NUMBER,
    OTHER,
    PORTABLE,
    SHAPE,
    TENSOR_LIKE,
    TENSOR_VALUE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Value,
    container,
    join,
)

_PLAIN = frozenset(
    {"int", "float", "bool", "complex", "str", "bytes", "object_", "slice", "type", "Callable", "Path", "range"}
)
_LISTS = frozenset(
    {
        "list",
        "List",
        "Sequence",
        "Iterable",
        "Iterator",
        "Collection",
        "set",
        "frozenset",
        "deque",
        "Generator",
        "MutableSequence",
    }
)
_DICTS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"})
_TENSOR_WORDS = frozenset({"Tensor", "EmberTensor", "NativeTensor", "Array", "NDArray", "ndarray"})


def read(node: ast.expr | None, flow: Any) -> Value:
    """Return the value that an annotation promises; unknown if it promises nothing the linter understands."""
    if node is None:
        return UNKNOWN_VALUE
    if isinstance(node, ast.Constant):
        if node.value is None:
            return NONE
        if isinstance(node.value, str):
            try:
                return read(ast.parse(node.value, mode="eval").body, flow)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return UNKNOWN_VALUE
        return UNKNOWN_VALUE
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return join(read(node.left, flow), read(node.right, flow))
    if isinstance(node, ast.Subscript):
        return _generic(node, flow)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _named(node, flow)
    return UNKNOWN_VALUE


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _generic(node: ast.Subscript, flow: Any) -> Value:
    head = _last(node.value)
    inner = node.slice
    if head == "Optional":
        return join(read(inner, flow), NONE)
    if head == "Union":
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        result = read(parts[0], flow)
        for part in parts[1:]:
            result = join(result, read(part, flow))
        return result
    if head in ("Annotated", "Final", "ClassVar", "Required", "NotRequired"):
        return read(inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner, flow)
    if head in _LISTS:
        first = inner.elts[0] if isinstance(inner, ast.Tuple) and inner.elts else inner
        return container("list", read(first, flow))
    if head in ("tuple", "Tuple"):
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if len(parts) == 2 and isinstance(parts[1], ast.Constant) and parts[1].value is Ellipsis:
            return container("list", read(parts[0], flow))
        return container("tuple", tuple(read(part, flow) for part in parts))
    if head in _DICTS:
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        return container("dict", read(parts[-1], flow))
    if head in ("Callable", "type", "Type", "Literal"):
        return NOT_TENSOR
    return _named(node.value, flow)


def _named(node: ast.expr, flow: Any) -> Value:
    last = _last(node)
    if isinstance(node, ast.Name) and last in _PLAIN:
        return NUMBER if last in ("int", "float", "bool", "complex") else NOT_TENSOR
    dotted = _dotted(node, flow)
    if dotted is None:
        return TENSOR_VALUE if last in ("Tensor", "EmberTensor") else UNKNOWN_VALUE
    profile = flow.profile
    if natives.library_of(dotted) in flow.module.allowed:
        return NOT_TENSOR  # where a library is allowed, its arrays are plain host data
    if last == "EmberTensor":
        return PORTABLE
    if dotted in natives.TENSOR_TYPES or dotted in profile.tensor_types:
        return TENSOR_VALUE
    if dotted in profile.tensor_like_types or last == "TensorLike":
        return TENSOR_LIKE
    if last in _TENSOR_WORDS:
        return TENSOR_VALUE
    if last in ("Any", "object", "ArrayLike", "Numeric"):
        return UNKNOWN_VALUE
    if last in ("Shape", "ShapeLike"):
        return SHAPE
    if last in _LISTS or last in ("tuple", "Tuple"):
        return container("list", UNKNOWN_VALUE)
    if last in _DICTS:
        return container("dict", UNKNOWN_VALUE)
    if last in ("Callable", "Literal", "Hashable"):
        return NOT_TENSOR
    if natives.library_of(dotted):
        return UNKNOWN_VALUE
    known = flow.facts.read("def:" + flow.facts.canonical(dotted))
    if known is not None and known[0] == "class":
        return Value(OTHER, ("inst", flow.facts.canonical(dotted)))
    return UNKNOWN_VALUE


def _dotted(node: ast.expr, flow: Any) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    value = flow.name(node)
    if value.kind == UNKNOWN and not parts:
        return None
    detail = value.detail
    if type(detail) is tuple and detail[0] == "ref":
        base = detail[1]
    else:
        return None if not parts else f"?.{'.'.join(reversed(parts))}"
    return ".".join([base, *reversed(parts)])

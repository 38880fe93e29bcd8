"""The abstract value of an expression: one of four kinds, with a few details.

The kinds are ordered by how much they say in favour of a tensor: ``OTHER < UNKNOWN < SEQUENCE < TENSOR``. Joining two
branches keeps the higher one, because a finding means "here a tensor can meet this operator", not "always does".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

OTHER, UNKNOWN, SEQUENCE, TENSOR = range(4)


class Value:
    """A kind and its detail.

    ``detail`` by kind:

    * TENSOR: the dtype name if it was written down, ``"like"`` for tensor-or-Python-data, ``"portable"`` for an
      EmberTensor, whose operators and methods are the ops themselves, ``"vector"`` for a NumPy array of one axis (its
      elements are numbers), else ``None``.
    * SEQUENCE and OTHER containers: ``("tuple", values)``, ``("list", element)``, ``("dict", element)`` or
      ``("iter", element)``.
    * OTHER: ``("ref", dotted name)``, ``("bound", dotted name)``, ``("inst", class name)``, ``("text", string)``,
      ``("number",)``, ``("shape",)`` or ``None``.
    * UNKNOWN: ``("param", name)`` or ``("node", expression)``: where the unknown came from, so that later evidence
      can be carried back to it; ``("mixed",)`` for a tensor or a list of them.
    """

    __slots__ = ("detail", "kind")

    def __init__(self, kind: int, detail: Any = None) -> None:
        self.kind = kind
        self.detail = detail

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.kind == other.kind and self.detail == other.detail

    def __hash__(self) -> int:
        return hash((self.kind, self.detail))

    def __repr__(self) -> str:
        name = ("OTHER", "UNKNOWN", "SEQUENCE", "TENSOR")[self.kind]
        return name if self.detail is None else f"{name}({self.detail!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Value, (self.kind, self.detail))


TENSOR_VALUE = Value(TENSOR)
TENSOR_LIKE = Value(TENSOR, "like")
PORTABLE = Value(TENSOR, "portable")
NOT_TENSOR = Value(OTHER)
NUMBER = Value(OTHER, ("number",))
SHAPE = Value(OTHER, ("shape",))
NONE = Value(OTHER, ("none",))
UNKNOWN_VALUE = Value(UNKNOWN)
ONE_OR_SEVERAL = Value(UNKNOWN, ("mixed",))  # a tensor or a list of them: its elements are tensors either way
TENSOR_LIST = Value(SEQUENCE, ("list", TENSOR_VALUE))

CONTAINERS = frozenset({"tuple", "list", "dict", "iter"})
_HOLDERS = CONTAINERS | {"lambda"}
_LARGEST, _DEEPEST = 2000, 100  # parts of a fact, and how deep they are nested; shared parts count each time


def ref(name: str) -> Value:
    """Return a module, function or class known by its dotted name."""
    return Value(OTHER, ("ref", name))


def container(form: str, content: Any) -> Value:
    """Return a container; SEQUENCE if a tensor is in it, UNKNOWN members make no sequence of tensors."""
    members = content if form == "tuple" else (content,)
    kind = SEQUENCE if any(m.kind >= SEQUENCE for m in members) else OTHER
    return Value(kind, (form, content))


def form_of(value: Value) -> str | None:
    """Return the first word of the detail: ``"list"``, ``"ref"``, ``"inst"``, ... or ``None``."""
    detail = value.detail
    return detail[0] if type(detail) is tuple else None


def element_of(value: Value, index: int | None = None) -> Value:
    """Return the value that iteration or indexing yields."""
    if value.kind == TENSOR:
        return (
            NUMBER
            if value.detail == "vector"
            else TENSOR_VALUE
            if value.detail is None
            else Value(TENSOR, value.detail)
        )
    detail = value.detail
    if type(detail) is tuple:
        form = detail[0]
        if form == "mixed":
            return TENSOR_VALUE
        if form == "tuple":
            members = detail[1]
            if index is not None and -len(members) <= index < len(members):
                return members[index]
            return join_all(members) if members else UNKNOWN_VALUE
        if form in ("list", "iter"):
            return detail[1]
        if form in ("shape", "number", "text"):
            return NUMBER if form == "shape" else NOT_TENSOR
    return UNKNOWN_VALUE


def join(a: Value, b: Value) -> Value:
    """Return the value after two branches meet."""
    if a is b:
        return a
    if a.kind == b.kind:
        if a.detail == b.detail:
            return a
        fa, fb = form_of(a), form_of(b)
        if fa in CONTAINERS and fb in CONTAINERS:
            if fa == fb == "tuple" and len(a.detail[1]) == len(b.detail[1]):
                members = zip(a.detail[1], b.detail[1], strict=True)
                return container("tuple", tuple(join(x, y) for x, y in members))
            form = "dict" if fa == "dict" else "list"
            return container(form, join(_content(a), _content(b)))
        if a.kind == TENSOR:
            return TENSOR_VALUE if "like" not in (a.detail, b.detail) else TENSOR_LIKE
        if a.kind == OTHER:
            if fa == "none":
                return b
            if fb == "none":
                return a
            if fa in CONTAINERS:
                return a
            return b if fb in CONTAINERS else NOT_TENSOR
        return UNKNOWN_VALUE
    high, low = (a, b) if a.kind > b.kind else (b, a)
    if high.kind == TENSOR and low.kind == SEQUENCE:  # one or several: an operator may as well join two lists
        return ONE_OR_SEVERAL
    if high.kind == UNKNOWN:
        return high if low.detail == ("none",) or high == ONE_OR_SEVERAL else UNKNOWN_VALUE
    if low == ONE_OR_SEVERAL:
        return ONE_OR_SEVERAL
    if high.kind == SEQUENCE and form_of(low) in CONTAINERS:
        form = "dict" if form_of(high) == "dict" else "list"
        if form_of(high) == form_of(low) == "tuple":
            return high
        return container(form, join(_content(high), _content(low)))
    if high.kind == TENSOR and high.detail not in (None, "like"):
        return TENSOR_VALUE
    return high


def _content(value: Value) -> Value:
    detail = value.detail
    if detail[0] == "tuple":
        return join_all(detail[1])
    return detail[1]


def join_all(values: Iterable[Value]) -> Value:
    """Return the join of several values; unknown if there is none."""
    result = None
    for value in values:
        result = value if result is None else join(result, value)
    return UNKNOWN_VALUE if result is None else result


def plain(value: Value) -> Value:
    """Return an unknown without its origin, which means nothing in another function."""
    return UNKNOWN_VALUE if value.kind == UNKNOWN and value.detail != ("mixed",) else value


def portable(value: Value) -> Value:
    """Return a value as it can leave its function, its process and the run.

    Unknowns lose their origin at every depth; a value of too many parts, such as nested tuples, counts as unknown.
    """
    stack, count, is_plain = [(value, 0)], 0, True
    while stack:
        part, depth = stack.pop()
        count += 1
        if count > _LARGEST or depth > _DEEPEST:
            return UNKNOWN_VALUE
        detail = part.detail
        if part.kind == UNKNOWN and detail is not None and detail != ("mixed",):
            is_plain = False
        elif type(detail) is tuple and detail[0] in _HOLDERS:
            stack += [(member, depth + 1) for member in (detail[1] if detail[0] == "tuple" else detail[1:])]
    return value if is_plain else _without_origins(value)


def _without_origins(value: Value) -> Value:
    detail = value.detail
    if type(detail) is not tuple or detail[0] not in _HOLDERS:
        return plain(value)
    content = detail[1]
    inner = tuple(map(_without_origins, content)) if detail[0] == "tuple" else _without_origins(content)
    return Value(value.kind, (detail[0], inner))


def note_value(node: Any, value: Value) -> None:
    """Leave a value on a syntax node, where the rules find it."""
    node.ev = value

"""Pytrees: nested containers of values.

A tree is a dict, a list, a tuple, a named tuple, None (a container of nothing) or an object of a registered class, with
trees in it; everything else is a leaf. Classes that merely derive from these containers are leaves until registered.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

__all__ = ["Structure", "flatten", "known_leaves", "map_tree", "register_node"]


class _Node(NamedTuple):
    """How to flatten objects of a class into parts and a note, and to rebuild them."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, list[Any]], Any]
    by_key: bool = False


_NODES: dict[type, _Node] = {
    dict: _Node(lambda x: (x.values(), tuple(x)), lambda keys, parts: dict(zip(keys, parts, strict=True)), True),
    list: _Node(lambda x: (x, len(x)), lambda _, parts: parts),
    tuple: _Node(lambda x: (x, len(x)), lambda _, parts: tuple(parts)),
    type(None): _Node(lambda _: ((), None), lambda _, __: None),
}
_LEAVES: set[type] = {bool, int, float, complex, str}
_NAMED = _Node(lambda x: (x, type(x)), lambda cls, parts: cls(*parts))
_NODES[OrderedDict] = _NODES[dict]._replace(unflatten=lambda keys, parts: OrderedDict(zip(keys, parts, strict=True)))


def register_node(
    cls: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]], unflatten: Callable[[Any, list[Any]], Any]
) -> None:
    """Make the objects of ``cls`` containers.

    ``flatten(x)`` returns the parts of ``x`` and a note of the rest; ``unflatten(note, parts)`` rebuilds the object.
    Two objects have the same structure where their notes are equal and their parts alike.

    >>> from ember_ml.core.trees import map_tree, register_node
    >>> class Pair:
    ...     def __init__(self, first, second):
    ...         self.first, self.second = first, second
    >>> register_node(Pair, lambda p: ((p.first, p.second), None), lambda note, parts: Pair(*parts))
    >>> map_tree(abs, Pair(-1, -2)).second
    2
    """
    if cls in _NODES:
        raise ValueError(f"{cls.__name__} is a container already")
    _LEAVES.discard(cls)
    _NODES[cls] = _Node(flatten, unflatten)


def known_leaves(*classes: type) -> None:
    """Register classes whose objects are leaves, to recognize them at once."""
    _LEAVES.update(classes)


def _node(cls: type) -> _Node | None:
    node = _NODES.get(cls)
    return _NAMED if node is None and issubclass(cls, tuple) and getattr(cls, "_fields", None) is not None else node


class Structure:
    """A tree without its leaves; calling it with leaves builds the tree that holds them."""

    __slots__ = ("_children", "_class", "_hash", "_is_flat", "_node", "_note", "count")

    _node: _Node | None
    _class: type
    _note: Any
    _children: tuple[Structure, ...]
    count: int
    """How many leaves the tree has."""

    def __init__(self, tree: Any, leaves: list[Any]) -> None:
        cls = type(tree)
        node = _node(cls)
        self._hash: int | None = None
        self._node, self._class, self._note, self._children, self._is_flat = node, cls, None, (), True
        if node is None:
            leaves.append(tree)
            self.count = 1
            return
        before = len(leaves)
        parts, self._note = node.flatten(tree)
        self._children = tuple([_structure(part, leaves) for part in parts])
        self.count = len(leaves) - before
        for child in self._children:
            if child is not _LEAF:
                self._is_flat = False
                break

    def __call__(self, leaves: Iterable[Any]) -> Any:
        leaves = list(leaves)
        if len(leaves) != self.count:
            raise ValueError(f"the tree has {self.count} leaves, not {len(leaves)}: {self}")
        if self._is_flat and self._node is not None:
            return self._node.unflatten(self._note, leaves)
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self._node is None:
            return next(leaves)
        if self._is_flat:
            return self._node.unflatten(self._note, list(islice(leaves, self.count)))
        parts = [
            next(leaves) if child is _LEAF else None if child is _NONE else child._build(leaves)
            for child in self._children
        ]
        return self._node.unflatten(self._note, parts)

    def leaves(self, tree: Any) -> list[Any]:
        """Return the leaves of ``tree`` in this structure's order; ``ValueError`` where its structure differs."""
        found: list[Any] = []
        self._match(tree, found, ())
        return found

    def _match(self, tree: Any, found: list[Any], place: tuple[Any, ...]) -> None:
        cls = type(tree)
        if self._node is None:
            if _node(cls) is not None:
                raise _difference(place, "a leaf", _describe(cls))
            found.append(tree)
            return
        if cls is not self._class:
            raise _difference(place, _describe(self._class), "a leaf" if _node(cls) is None else _describe(cls))
        keys = self._note
        if self._node.by_key:
            if tree.keys() != set(keys):
                raise _difference(place, f"the keys {list(keys)}", f"the keys {list(tree)}")
            parts: Any = [tree[key] for key in keys]
        else:
            parts, note = self._node.flatten(tree)
            if note != self._note:
                raise _difference(place, f"{_describe(cls)} of {self._note}", f"one of {note}")
            keys = range(len(self._children))
        for key, child, part in zip(keys, self._children, parts, strict=True):
            child._match(part, found, (place, key))

    def __eq__(self, other: object) -> bool:
        """Whether both are the same containers, with keys in the same order."""
        return isinstance(other, Structure) and (
            (self is other)
            or (self._node is None and other._node is None)
            or (self._class is other._class and self._note == other._note and self._children == other._children)
        )

    def __hash__(self) -> int:
        if not hasattr(self, "_hash"):  # torch 2.13: torch.compile hashes an unfinished object
            return 0
        if self._hash is None:
            self._hash = hash((None if self._node is None else self._class, self._children))
        return self._hash

    def __repr__(self) -> str:
        return repr(self._build(iter([_STAR] * self.count)))


class _Star:
    def __repr__(self) -> str:
        return "*"


_STAR = _Star()
_LEAF = Structure(_STAR, [])
_NONE = Structure(None, [])


def _structure(tree: Any, leaves: list[Any]) -> Structure:
    cls = type(tree)
    if cls in _LEAVES or _node(cls) is None:
        leaves.append(tree)
        return _LEAF
    return _NONE if tree is None else Structure(tree, leaves)


_flat_ones: dict[tuple[type, int], Structure] = {
    (cls, count): Structure(cls([_STAR] * count), []) for cls in (list, tuple) for count in range(9)
}


def _flat_structure(cls: type, count: int) -> Structure:
    """Return the structure of a list or tuple of so many leaves."""
    return _flat_ones.get((cls, count)) or Structure(cls([_STAR] * count), [])


def _describe(cls: type) -> str:
    return "None" if cls is type(None) else f"a {cls.__name__}"


def _difference(place: tuple[Any, ...], expected: str, found: str) -> ValueError:
    where = ""
    while place:
        place, key = place
        where = f"[{key!r}]{where}"
    where = f"at {where}" if where else "at the top"
    return ValueError(f"two trees differ in structure {where}: one has {expected}, the other {found}")


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of ``tree`` and its structure, which builds a tree from such leaves again.

    >>> from ember_ml.core.trees import flatten
    >>> leaves, rebuild = flatten({"w": [1, 2], "b": (3, None)})
    >>> leaves
    [1, 2, 3]
    >>> rebuild([10, 20, 30])
    {'w': [10, 20], 'b': (30, None)}
    """
    cls = type(tree)
    if cls is list or cls is tuple:  # mostly of leaves only
        for part in tree:
            if type(part) not in _LEAVES:
                break
        else:
            return list(tree), _flat_structure(cls, len(tree))
    leaves: list[Any] = []
    return leaves, _structure(tree, leaves)


def map_tree(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Map ``f(leaf, *leaves)`` over the leaves of ``tree`` and the corresponding ones of ``rest``.

    Dicts are matched by key and keep the order of the first; trees of different structure are a ``ValueError``.

    >>> from ember_ml.core.trees import map_tree
    >>> map_tree(lambda a, b: a + b, {"x": 1, "y": [2]}, {"y": [20], "x": 10})
    {'x': 11, 'y': [22]}
    """
    leaves, structure = flatten(tree)
    return structure([f(*group) for group in zip(leaves, *(structure.leaves(other) for other in rest), strict=True)])

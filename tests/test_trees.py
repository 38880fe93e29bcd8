"""Nested containers come apart and together again, and differences are named."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ember_ml.core.trees import flatten, map_tree, register_node

Point = namedtuple("Point", ["x", "y"])


class Box:
    """A container that the test registers."""

    def __init__(self, label: str, content: Any) -> None:
        self.label, self.content = label, content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Box) and (self.label, self.content) == (other.label, other.content)

    def __repr__(self) -> str:
        return f"Box({self.label!r}, {self.content!r})"


register_node(Box, lambda box: ((box.content,), box.label), lambda label, parts: Box(label, *parts))

TREES = st.recursive(
    st.integers() | st.none(),
    lambda part: (
        st.lists(part, max_size=3)
        | st.lists(part, max_size=3).map(tuple)
        | st.dictionaries(st.sampled_from("abcd"), part, max_size=3)
        | st.dictionaries(st.integers(0, 3), part, max_size=3).map(OrderedDict)
        | st.builds(Point, part, part)
        | st.builds(Box, st.sampled_from(["one", "two"]), part)
    ),
    max_leaves=12,
)


def _integers(tree: Any) -> list[int]:
    """The integers of a tree in order, found without the functions under test."""
    if isinstance(tree, Box):
        return _integers(tree.content)
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [number for part in tree for number in _integers(part)]
    return [] if tree is None else [tree]


@given(TREES)
def test_rebuilding_gives_the_tree_back(tree: Any) -> None:
    leaves, rebuild = flatten(tree)
    assert leaves == _integers(tree)
    again = rebuild(leaves)
    assert again == tree
    assert type(again) is type(tree)
    assert flatten(again)[1] == rebuild
    assert rebuild.leaves(tree) == leaves
    assert rebuild.count == len(leaves)


@given(TREES)
def test_map_reaches_every_leaf(tree: Any) -> None:
    doubled = map_tree(lambda x, y: x + y, tree, tree)
    assert _integers(doubled) == [2 * number for number in _integers(tree)]


@given(TREES, TREES)
def test_structures_are_equal_where_trees_match(first: Any, second: Any) -> None:
    structures = [flatten(tree)[1] for tree in (first, second)]
    if structures[0] == structures[1]:
        assert structures[0].leaves(second) == _integers(second)
        assert hash(structures[0]) == hash(structures[1])
        assert repr(structures[0]) == repr(structures[1])


def test_dicts_are_matched_by_key_in_the_order_of_the_first() -> None:
    first, second = {"a": 1, "b": 2}, {"b": 20, "a": 10}
    assert list(map_tree(lambda x, y: (x, y), first, second).items()) == [("a", (1, 10)), ("b", (2, 20))]
    assert flatten(first)[1] != flatten(second)[1]


def test_a_class_that_derives_from_a_container_is_a_leaf() -> None:
    class Numbers(list[int]):
        pass

    numbers = Numbers([1, 2])
    assert flatten({"n": numbers})[0][0] is numbers


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 2], [1], r"at the top: one has a list of 2, the other one of 1"),
        ({"a": 1}, {"b": 1}, r"at the top: one has the keys \['a'\], the other the keys \['b'\]"),
        ({"a": [1, (2,)]}, {"a": [1, 2]}, r"at \['a'\]\[1\]: one has a tuple, the other a leaf"),
        ((1,), [1], r"one has a tuple, the other a list"),
        (1, [1], r"one has a leaf, the other a list"),
        ([None], [1], r"at \[0\]: one has None, the other a leaf"),
        (Point(1, 2), (1, 2), r"one has a Point, the other a tuple"),
        (Box("one", 1), Box("two", 1), r"one has a Box of one, the other one of two"),
    ],
)
def test_a_difference_is_named(first: Any, second: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        map_tree(lambda x, y: x, first, second)
    assert flatten(first)[1] != flatten(second)[1]


@pytest.mark.parametrize("leaves", [[], [1], [1, 2, 3]])
def test_a_wrong_number_of_leaves(leaves: list[int]) -> None:
    with pytest.raises(ValueError, match=rf"has 2 leaves, not {len(leaves)}: \{{'a': \*, 'b': \[\*\]\}}"):
        flatten({"a": 1, "b": [2]})[1](leaves)


def test_a_class_is_registered_once() -> None:
    with pytest.raises(ValueError, match="Box is a container already"):
        register_node(Box, lambda box: ((), None), lambda note, parts: None)

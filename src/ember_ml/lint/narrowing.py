"""Narrow the values of names by the tests that they pass."""

from __future__ import annotations

import ast
from typing import Any

from ember_ml.lint import natives
from ember_ml.lint.values import (
    NONE,
    NOT_TENSOR,
    OTHER,
    PORTABLE,
    SEQUENCE,
    TENSOR,
    TENSOR_LIST,
    TENSOR_VALUE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Value,
    form_of,
)
from ember_ml.lint.walker import Walker

_EXACT = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)


class NarrowingMixin(Walker):
    """The part of the walker that learns from tests."""

    def narrowing(self, test: Any, holds: bool) -> dict[str, Value] | None:
        """Return the values of names after a test that held (or did not)."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.narrowing(test.operand, not holds)
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) is holds:
                changes: dict[str, Value] = {}
                for value in test.values:
                    changes.update(self.narrowing(value, holds) or {})
                return changes
            return None
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Call):
            return self.exact_class(test.left, test.ops[0], test.comparators[0], holds)
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
            op, right = test.ops[0], test.comparators[0]
            if isinstance(right, ast.Constant) and right.value is None and isinstance(op, (ast.Is, ast.IsNot)):
                return {test.left.id: NONE} if isinstance(op, ast.Is) is holds else None
            if holds and isinstance(op, (ast.Eq, ast.In)) and isinstance(right, (ast.Constant, ast.List, ast.Tuple)):
                first = (
                    right.value
                    if isinstance(right, ast.Constant)
                    else getattr(right.elts[0], "value", None)
                    if right.elts
                    else None
                )
                if isinstance(first, str):
                    return {test.left.id: NOT_TENSOR}
            return None
        if isinstance(test, ast.Call) and test.args and isinstance(test.args[0], ast.Name):
            name = test.args[0].id
            called = self.dotted(test.func) or ""
            if called == "builtins.isinstance" and len(test.args) == 2:
                kinds = self.class_kinds(test.args[1])
                if not holds:
                    return {name: NOT_TENSOR} if kinds == {TENSOR} else None
                if kinds == {TENSOR}:
                    return {name: self.made_by(test.args[1])}
                if kinds == {OTHER}:
                    present = self.name(test.args[0])
                    return {name: present if form_of(present) in ("list", "tuple", "dict", "inst") else NOT_TENSOR}
                if kinds == {SEQUENCE}:
                    present = self.name(test.args[0])
                    return {
                        name: present
                        if present.kind == SEQUENCE or form_of(present) is not None
                        else TENSOR_LIST
                        if present.kind == TENSOR
                        else UNKNOWN_VALUE
                    }
                return None
            if called == "builtins.callable":
                return {name: NOT_TENSOR} if holds else None
            if called.endswith((".is_tensor", ".is_keras_tensor")):
                return {name: TENSOR_VALUE} if holds else None
        return None

    def exact_class(self, call: ast.Call, op: ast.cmpop, right: Any, holds: bool) -> dict[str, Value] | None:
        """Narrow ``x`` by ``type(x) is C``; if it fails nothing is known, since the class may be a subclass."""
        if self.dotted(call.func) != "builtins.type" or len(call.args) != 1 or not isinstance(op, _EXACT):
            return None
        asked = call.args[0]
        if not isinstance(asked, ast.Name) or isinstance(op, (ast.Is, ast.Eq)) is not holds:
            return None
        return {asked.id: self.made_by(right)} if self.class_kinds(right) == {TENSOR} else None

    def made_by(self, node: Any) -> Value:
        """Return the value of an object of a tensor class."""
        return PORTABLE if (self.dotted(node) or "").endswith(".EmberTensor") else TENSOR_VALUE

    def class_kinds(self, node: Any) -> set[int]:
        """Return which kinds the classes of an isinstance test stand for."""
        if isinstance(node, ast.Tuple):
            return set().union(*(self.class_kinds(element) for element in node.elts)) if node.elts else {UNKNOWN}
        if isinstance(node, ast.BinOp):
            return self.class_kinds(node.left) | self.class_kinds(node.right)
        dotted = self.dotted(node)
        if dotted is None:
            return {UNKNOWN}
        if dotted in natives.TENSOR_TYPES or dotted in self.profile.tensor_types:
            return {TENSOR}
        if dotted in ("builtins.list", "builtins.tuple"):
            return {SEQUENCE}
        if dotted.startswith("builtins.") or self.facts.read("def:" + self.facts.canonical(dotted)) is not None:
            return {OTHER}
        return {UNKNOWN} if natives.library_of(dotted) else {OTHER}

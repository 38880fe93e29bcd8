"""A pytest plugin that labels operators: a library is rewritten as it is imported, and each operator notes what it met.

``pytest -p lint_recorder`` with ``LINT_RECORD_PACKAGE`` (the package), ``LINT_RECORD_ROOT`` (its folder) and
``LINT_RECORD_OUT`` (where the labels go, JSON). An operator's label is 1 if it ever had a tensor as operand while the
library's own tests ran, 0 if it was run but never had one. Nobody labels by hand.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import operator
import os
import sys
from collections.abc import Callable
from typing import Any

PACKAGE = os.environ["LINT_RECORD_PACKAGE"]
ROOT = os.path.abspath(os.environ["LINT_RECORD_ROOT"])
OUT = os.environ["LINT_RECORD_OUT"]
SEEN: dict[str, int] = {}

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "MatMult": operator.matmul,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
_UNARY: dict[str, Callable[[Any], Any]] = {"USub": operator.neg, "UAdd": operator.pos, "Invert": operator.invert}
_IN_PLACE: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod,
    "Pow": operator.ipow,
    "MatMult": operator.imatmul,
    "BitAnd": operator.iand,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
}
_TENSOR_NAMES = {"Tensor", "ndarray", "Array", "KerasTensor", "Variable", "Parameter", "ArrayImpl", "Tracer", "array"}
_KNOWN: dict[type, bool] = {}


def _is_tensor(value: Any) -> bool:
    kind = type(value)
    known = _KNOWN.get(kind)
    if known is None:
        known = _KNOWN[kind] = any(
            base.__name__ in _TENSOR_NAMES
            and base.__module__.split(".")[0]
            in ("torch", "numpy", "array_api_strict", "keras", "jax", "jaxlib", "dask")
            for base in kind.__mro__
        )
    return known


def _note(key: str, tensor: bool) -> None:
    if tensor:
        SEEN[key] = 1
    else:
        SEEN.setdefault(key, 0)


def _binary(key: str, op: str, left: Any, right: Any) -> Any:
    _note(key, _is_tensor(left) or _is_tensor(right))
    return _BINARY[op](left, right)


def _unary(key: str, op: str, value: Any) -> Any:
    _note(key, _is_tensor(value))
    return _UNARY[op](value)


def _in_place(key: str, op: str, left: Any, right: Any) -> Any:
    _note(key, _is_tensor(left) or _is_tensor(right))
    return _IN_PLACE[op](left, right)


class _Rewriter(ast.NodeTransformer):
    def __init__(self, path: str) -> None:
        self.path = path

    def _key(self, node: ast.expr | ast.stmt) -> ast.Constant:
        return ast.Constant(f"{self.path}:{node.lineno}:{node.col_offset}:{node.end_lineno}:{node.end_col_offset}")

    def _call(self, name: str, node: ast.expr | ast.stmt, *parts: ast.expr) -> ast.Call:
        call = ast.Call(func=ast.Name(name, ast.Load()), args=[self._key(node), *parts], keywords=[])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("emb_binary__", node, ast.Constant(type(node.op).__name__), node.left, node.right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op).__name__ not in _UNARY or isinstance(node.operand, ast.Constant):
            return node
        return self._call("emb_unary__", node, ast.Constant(type(node.op).__name__), node.operand)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1 or type(node.ops[0]).__name__ not in _BINARY:
            return node
        return self._call(
            "emb_binary__", node, ast.Constant(type(node.ops[0]).__name__), node.left, node.comparators[0]
        )

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name) or type(node.op).__name__ not in _IN_PLACE:
            return node
        value = self._call(
            "emb_in_place__",
            node,
            ast.Constant(type(node.op).__name__),
            ast.Name(node.target.id, ast.Load()),
            node.value,
        )
        return ast.fix_missing_locations(ast.copy_location(ast.Assign([node.target], value), node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        return node


class _Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        tree = ast.parse(data, path)
        tree = ast.fix_missing_locations(_Rewriter(os.path.relpath(path, ROOT)).visit(tree))
        return compile(tree, path, "exec", dont_inherit=True)

    def get_code(self, fullname: str) -> Any:  # never from or into a bytecode cache
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def exec_module(self, module: Any) -> None:
        module.__dict__["emb_binary__"] = _binary
        module.__dict__["emb_unary__"] = _unary
        module.__dict__["emb_in_place__"] = _in_place
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != PACKAGE and not fullname.startswith(PACKAGE + "."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if (
            spec is None
            or not spec.origin
            or not spec.origin.endswith(".py")
            or not os.path.abspath(spec.origin).startswith(ROOT)
        ):
            return None
        name = os.path.basename(spec.origin)
        if (
            name.startswith("test_")
            or name.endswith("_test.py")
            or name == "conftest.py"
            or f"{os.sep}tests{os.sep}" in spec.origin
        ):
            return None
        spec.loader = _Loader(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, _Finder())


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """Write the labels."""
    with open(OUT, "w", encoding="utf-8") as stream:
        json.dump(SEEN, stream)

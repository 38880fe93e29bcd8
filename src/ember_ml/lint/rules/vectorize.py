"""The repair for loops over all pairs: gather both rows of every pair, then compute on all at once."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint.fix import Edit, Fix

if TYPE_CHECKING:
    from ember_ml.lint.fix import FixContext

_REDUCTIONS = frozenset({"sum", "mean", "max", "min", "prod", "norm", "all", "any"})


def pairwise_fix(node: ast.For, context: FixContext) -> Fix | None:
    """Rewrite ``for i: for j > i: d = E(p[i], p[j]); out.append(d)`` after ``out = []``.

    Each row is taken to be a vector, so a full reduction in E becomes one over the last axis; the result is a tensor,
    not a list. Both are assumptions, so the repair is never called safe.
    """
    found = _match(node, context)
    prefix = context.prefix()
    if found is None or prefix is None:
        return None
    start_statement, points, outer, inner, expression, result = found
    text = _rewrite(expression, points, outer, inner, context)
    if text is None:
        return None
    source = context.module.source
    indent = source[source.rfind("\n", 0, context.start(node)) + 1 : context.start(node)]
    new = f"{outer}, {inner} = {prefix}.triu_indices(len({points}), k=1)\n{indent}{result} = {text}"
    drop_start = context.start(start_statement)
    return Fix("compute all pairs at once", (Edit(drop_start, context.end(node), new),), safe=False)


def _match(node: Any, context: FixContext) -> Any:
    parent = context.module.parent(node)
    body = getattr(parent, "body", [])
    at = next((i for i, s in enumerate(body) if s is node), 0)
    if at == 0 or len(node.body) != 1 or not isinstance(node.body[0], ast.For):
        return None
    start = body[at - 1]
    inner = node.body[0]
    if not (
        isinstance(start, ast.Assign)
        and isinstance(start.targets[0], ast.Name)
        and isinstance(start.value, ast.List)
        and not start.value.elts
    ):
        return None
    result = start.targets[0].id
    last = inner.body[-1]
    if not (
        isinstance(last, ast.Expr)
        and isinstance(last.value, ast.Call)
        and ast.unparse(last.value.func) == f"{result}.append"
        and len(last.value.args) == 1
    ):
        return None
    expression = last.value.args[0]
    if (
        len(inner.body) == 2
        and isinstance(inner.body[0], ast.Assign)
        and ast.unparse(inner.body[0].targets[0]) == ast.unparse(expression)
    ):
        expression = inner.body[0].value
    elif len(inner.body) != 1:
        return None
    outer_name, inner_name = getattr(node.target, "id", None), getattr(inner.target, "id", None)
    counts = ast.unparse(node.iter)
    if not (
        outer_name
        and inner_name
        and counts.startswith("range(len(")
        and ast.unparse(inner.iter) == f"range({outer_name} + 1, {counts[6:-1]})"
    ):
        return None
    return start, counts[10:-2], outer_name, inner_name, expression, result


def _rewrite(node: Any, points: str, outer: str, inner: str, context: FixContext) -> str | None:
    if isinstance(node, ast.Subscript) and ast.unparse(node) in (f"{points}[{outer}]", f"{points}[{inner}]"):
        return f"{context.prefix()}.take({points}, {ast.unparse(node.slice)}, axis=0)"
    if isinstance(node, ast.Constant):
        return context.text(node)
    if isinstance(node, ast.Call) and not node.keywords:
        op = context.flow.profile.op(context.flow.dotted(node.func) or "")
        parts = [_rewrite(arg, points, outer, inner, context) for arg in node.args]
        texts = [part for part in parts if part is not None]
        if op is None or len(texts) < len(parts):
            return None
        if op in _REDUCTIONS and len(texts) == 1:
            texts.append("axis=-1")
        return f"{context.text(node.func)}({', '.join(texts)})"
    return None

"""Local data flow: one walk over the syntax tree that assigns a value to every expression and calls the rules.

Every function is a unit that can be walked again when a fact it has read changes. Within a unit, statements are
executed abstractly in order: branches are joined, loops are walked until their variables are stable (twice at most).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ember_ml.lint import hints
from ember_ml.lint.calls import CallMixin
from ember_ml.lint.expressions import ExpressionMixin
from ember_ml.lint.facts import Facts
from ember_ml.lint.narrowing import NarrowingMixin
from ember_ml.lint.statements import StatementMixin
from ember_ml.lint.unit import Unit
from ember_ml.lint.values import (
    NONE,
    NOT_TENSOR,
    NUMBER,
    OTHER,
    SEQUENCE,
    TENSOR,
    TENSOR_VALUE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Value,
    container,
    form_of,
    join,
    join_all,
    plain,
    ref,
)

if TYPE_CHECKING:
    from ember_ml.lint.module import Module

LAYER_ENDINGS = (
    "Layer",
    "Module",
    "Model",
    "Cell",
    "Block",
    "Network",
    "RNN",
    "Wrapper",
    "Loss",
    "Metric",
    "Constraint",
    "Regularizer",
)
_NEVER_TENSOR = frozenset({"inst", "ref", "bound", "text", "dict", "list", "lambda"})


class Flow(ExpressionMixin, CallMixin, StatementMixin, NarrowingMixin):
    """The walker of one file."""

    def __init__(self, module: Module, shared: dict[str, Any], rules_by_node: dict[type, list[Any]]) -> None:
        self.module = module
        self.profile = module.profile
        self.facts = Facts(shared)
        self.rules = rules_by_node
        self.units: list[Unit] = []
        self.top: dict[str, Value] = {}
        self.scopes: list[dict[str, Value]] = [self.top]
        self.env = self.top
        self.unit = Unit(module.name, module.tree, None, None)
        self.units.append(self.unit)
        self.pending: dict[int, Unit] = {}
        self.seen: set[str] = set()  # all facts that were ever read
        self.guards = 0  # depth of blocks in which a TypeError is expected
        self.expressions: dict[type, Any] = {
            ast.Name: self.name,
            ast.Constant: self.constant,
            ast.Attribute: self.attribute,
            ast.Call: self.call,
            ast.BinOp: self.binop,
            ast.UnaryOp: self.unary,
            ast.Compare: self.compare,
            ast.BoolOp: self.boolop,
            ast.Subscript: self.subscript,
            ast.Tuple: self.tuple_,
            ast.List: self.list_,
            ast.Set: self.list_,
            ast.Dict: self.dict_,
            ast.IfExp: self.ifexp,
            ast.JoinedStr: self.joined,
            ast.FormattedValue: self.formatted,
            ast.Lambda: self.lambda_,
            ast.ListComp: self.comprehension,
            ast.SetComp: self.comprehension,
            ast.GeneratorExp: self.comprehension,
            ast.DictComp: self.dictcomp,
            ast.Starred: self.starred,
            ast.NamedExpr: self.walrus,
            ast.Await: self.await_,
            ast.Yield: self.yield_,
            ast.YieldFrom: self.yield_from,
            ast.Slice: self.slice_,
        }
        self.statements: dict[type, Any] = {
            ast.Expr: self.expr_stmt,
            ast.Assign: self.assign,
            ast.AugAssign: self.augassign,
            ast.AnnAssign: self.annassign,
            ast.Return: self.return_,
            ast.If: self.if_,
            ast.For: self.for_,
            ast.AsyncFor: self.for_,
            ast.While: self.while_,
            ast.With: self.with_,
            ast.AsyncWith: self.with_,
            ast.Try: self.try_,
            ast.FunctionDef: self.function,
            ast.AsyncFunctionDef: self.function,
            ast.ClassDef: self.class_,
            ast.Import: self.import_,
            ast.ImportFrom: self.import_from,
            ast.Raise: self.raise_,
            ast.Assert: self.assert_,
            ast.Delete: self.delete,
            ast.Match: self.match_,
            ast.Break: self.stop,
            ast.Continue: self.stop,
        }
        if hasattr(ast, "TryStar"):
            self.statements[ast.TryStar] = self.try_

    # --- running units

    def walk_top(self) -> None:
        """Walk the statements at the top of the file; functions found become units."""
        unit = self.units[0]
        self._enter(unit, {})
        self.block(unit.node.body)
        self.top = self.env
        name = self.module.name
        for key, value in self.top.items():
            if value.kind >= SEQUENCE or (
                value.kind == OTHER and form_of(value) in ("inst", "number", "list", "tuple", "dict")
            ):
                self.facts.put(f"var:{name}.{key}", value)
        self._leave(unit)

    def walk(self, unit: Unit) -> None:
        """Walk one function, again if the walk itself gave evidence about its parameters."""
        for _ in range(3):
            before = len(unit.evidence) + len(unit.demanded)
            self._walk_function(unit)
            if len(unit.evidence) + len(unit.demanded) == before:
                break

    def _enter(self, unit: Unit, env: dict[str, Value]) -> None:
        self.unit = unit
        unit.reports = {}
        unit.returns = []
        unit.reads = self.facts.begin()
        # A function sees the variables of the functions around it, as they are when those have run.
        scopes = [env]
        around = unit.parent
        while around is not None:
            if not isinstance(around.node, ast.ClassDef):
                scopes.append(around.env)
            around = around.parent
        scopes.reverse()
        self.scopes = scopes
        self.env = env
        self.guards = 0

    def _leave(self, unit: Unit) -> None:
        unit.walked = True
        unit.env = self.env
        self.seen.update(unit.reads)

    def _walk_function(self, unit: Unit) -> None:
        node = unit.node
        env: dict[str, Value] = {}
        self._enter(unit, env)
        self.parameters(unit, node, env)
        self.hook(node)
        done = self.block(node.body)
        facts = self.facts
        declared = hints.read(node.returns, self) if node.returns is not None else None
        if declared is not None and declared.kind != UNKNOWN:
            facts.put("ret:" + unit.name, declared)
        elif unit.returns:
            result = join_all(unit.returns)
            if result.kind == TENSOR and any(form_of(value) in _NEVER_TENSOR for value in unit.returns):
                result = UNKNOWN_VALUE  # a function of many types: its result is unknown
            facts.put("ret:" + unit.name, plain(result))
        elif not done:
            facts.put("ret:" + unit.name, NONE)
        self._leave(unit)

    def parameters(self, unit: Unit, node: Any, env: dict[str, Value]) -> None:
        """Bind the parameters: annotation, then what callers pass, then name and default."""
        args = node.args
        names = [*args.posonlyargs, *args.args]
        first = 0
        if unit.class_name is not None and names and not _is_static(node):
            env[names[0].arg] = Value(OTHER, ("ref" if _is_class_method(node) else "inst", unit.class_name))
            names = names[1:]
            first = 1
        missing: list[ast.expr | None] = [None] * (len(names) + first - len(args.defaults))
        defaults = [*missing, *args.defaults]
        defaults = defaults[first:] if len(defaults) >= len(names) + first else defaults
        for index, arg in enumerate(names):
            default = defaults[index] if index < len(defaults) else None
            env[arg.arg] = self.parameter(unit, arg, default, index, first)
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            env[arg.arg] = self.parameter(unit, arg, default, None, first)
        if args.vararg:
            declared = hints.read(args.vararg.annotation, self) if args.vararg.annotation else None
            env[args.vararg.arg] = container("list", declared or UNKNOWN_VALUE)
        if args.kwarg:
            env[args.kwarg.arg] = container("dict", UNKNOWN_VALUE)

    def parameter(self, unit: Unit, arg: ast.arg, default: ast.expr | None, index: int | None, first: int) -> Value:
        """Return the value of one parameter."""
        name = arg.arg
        if arg.annotation is not None:
            declared = hints.read(arg.annotation, self)
            if declared.kind != UNKNOWN:
                return declared
        profile = self.profile
        if name in profile.namespace_parameters:
            return ref("@xp")
        if name in unit.evidence:
            return TENSOR_VALUE
        read = self.facts.read
        passed = read(f"par:{unit.name}:{name}")
        if index is not None:
            by_place = read(f"par:{unit.name}:{index}")
            if by_place is not None:
                passed = by_place if passed is None else join(passed, by_place)
        if passed is not None and (passed.kind >= SEQUENCE or form_of(passed) == "mixed"):
            return passed
        if default is not None and isinstance(default, ast.Constant) and default.value is not None:
            return NUMBER if isinstance(default.value, (int, float, complex)) else NOT_TENSOR
        if default is not None and isinstance(default, (ast.Tuple, ast.List, ast.Dict, ast.UnaryOp)):
            return NUMBER if isinstance(default, ast.UnaryOp) else NOT_TENSOR
        if name in profile.number_parameters:
            return NOT_TENSOR
        if name in profile.tensor_parameters:
            return TENSOR_VALUE
        if passed is not None and form_of(passed) in ("inst", "ref", "bound", "list", "dict", "tuple", "shape"):
            return passed
        if (
            index == 0
            and first
            and unit.name.rsplit(".", 1)[1] in profile.forward_methods
            and self.is_layer(unit.class_name)
        ):
            return TENSOR_VALUE
        if passed is not None and passed.kind == OTHER and name.startswith("_"):
            return passed
        return Value(UNKNOWN, ("param", name))

    def is_layer(self, class_name: str | None, depth: int = 0) -> bool:
        """Return whether a class is, by itself or by a base, a layer, a module or a model."""
        if class_name is None or depth > 6:
            return False
        if class_name.endswith(LAYER_ENDINGS):
            return True
        known = self.facts.read("def:" + self.facts.canonical(class_name))
        if known is None or known[0] != "class":
            return False
        return any(self.is_layer(base, depth + 1) for base in known[1])

    # --- rules

    def hook(self, node: Any) -> None:
        """Show a node to the rules that asked for its type."""
        rules = self.rules.get(node.__class__)
        if rules is not None:
            for rule in rules:
                rule.check(node, self)

    def report(self, rule: Any, node: Any, *details: str) -> None:
        """Note a finding; a second one of the same rule at the same node is the same finding."""
        self.unit.reports[rule.code, id(node)] = (rule, node, details)

    def is_tensor(self, node: Any) -> bool:
        """Return whether a walked expression is known to be a tensor (in strict mode: may be one)."""
        kind = node.ev.kind
        return kind == TENSOR or (kind == UNKNOWN and self.module.strict)

    def dotted(self, node: Any) -> str | None:
        """Return the dotted name an expression stands for, or ``None``."""
        value = getattr(node, "ev", None)
        if value is not None and type(value.detail) is tuple and value.detail[0] in ("ref", "bound"):
            return value.detail[1]
        return None

    # --- evidence

    def refine(self, value: Value) -> None:
        """Mark an unknown value as a tensor, as later use shows, back to where it came from."""
        detail = value.detail
        if value.kind != UNKNOWN or detail is None or len(detail) != 2:
            return
        what, source = detail
        unit = self.unit
        if what == "param":
            if source not in self.profile.number_parameters:
                unit.evidence.add(source)
                if self.env.get(source) is value or self.env.get(source) == value:
                    self.env[source] = TENSOR_VALUE
        elif what == "node":
            key = id(source)
            if key not in unit.demanded:
                unit.demanded.add(key)
                left, right = source.left.ev, source.right.ev
                if left.kind == OTHER:
                    self.refine(right)
                elif right.kind == OTHER:
                    self.refine(left)


def _is_static(node: Any) -> bool:
    return any(getattr(d, "id", None) == "staticmethod" for d in node.decorator_list)


def _is_class_method(node: Any) -> bool:
    return any(getattr(d, "id", None) == "classmethod" for d in node.decorator_list)

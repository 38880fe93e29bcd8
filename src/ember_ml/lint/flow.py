"""Local data flow: one walk over the syntax tree that gives every expression a value and calls the rules.

Every function is a unit that can be walked again when a fact it has read changes. Within a unit, statements are executed
abstractly in order: branches are joined, loops are walked until their variables are stable (twice at most).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ember_ml.lint import hints, natives
from ember_ml.lint.calls import CallMixin
from ember_ml.lint.values import (
    NONE,
    NOT_TENSOR,
    NUMBER,
    OTHER,
    SEQUENCE,
    SHAPE,
    TENSOR,
    TENSOR_LIST,
    TENSOR_VALUE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Value,
    container,
    element_of,
    form_of,
    join,
    join_all,
    ref,
)

if TYPE_CHECKING:
    from ember_ml.lint.module import Module

BUILTINS = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
LAYER_ENDINGS = ("Layer", "Module", "Model", "Cell", "Block", "Network", "RNN", "Wrapper", "Loss", "Metric", "Constraint", "Regularizer")
_NEVER_TENSOR = frozenset({"inst", "ref", "bound", "text", "dict", "list", "lambda"})
_UNSET = object()


class Unit:
    """One function, or the top level of a file, with what the last walk over it found."""

    __slots__ = ("class_name", "demanded", "env", "evidence", "name", "node", "parent", "reads", "reports", "returns", "walked")

    def __init__(self, name: str, node: ast.AST, parent: Unit | None, class_name: str | None) -> None:
        self.name = name
        self.node = node
        self.parent = parent
        self.env: dict[str, Value] = {}
        self.class_name = class_name
        self.reads: dict[str, object] = {}
        self.reports: dict[tuple[str, int], tuple] = {}
        self.evidence: set[str] = set()
        self.demanded: set[int] = set()
        self.returns: list[Value] = []
        self.walked = False


class Flow(CallMixin):
    """The walker of one file."""

    def __init__(self, module: Module, facts, rules_by_node: dict[type, list]) -> None:
        self.module = module
        self.profile = module.profile
        self.facts = facts
        self.rules = rules_by_node
        self.units: list[Unit] = []
        self.top: dict[str, Value] = {}
        self.scopes: list[dict[str, Value]] = [self.top]
        self.env = self.top
        self.unit = Unit(module.name, module.tree, None, None)
        self.units.append(self.unit)
        self.pending: dict[int, Unit] = {}
        self.produced: dict[str, object] = {}
        self.guards = 0  # depth of blocks in which a TypeError is expected
        self.expressions = {
            ast.Name: self.name, ast.Constant: self.constant, ast.Attribute: self.attribute, ast.Call: self.call, ast.BinOp: self.binop,
            ast.UnaryOp: self.unary, ast.Compare: self.compare, ast.BoolOp: self.boolop, ast.Subscript: self.subscript,
            ast.Tuple: self.tuple_, ast.List: self.list_, ast.Set: self.list_, ast.Dict: self.dict_, ast.IfExp: self.ifexp,
            ast.JoinedStr: self.joined, ast.FormattedValue: self.formatted, ast.Lambda: self.lambda_, ast.ListComp: self.comprehension,
            ast.SetComp: self.comprehension, ast.GeneratorExp: self.comprehension, ast.DictComp: self.dictcomp, ast.Starred: self.starred,
            ast.NamedExpr: self.walrus, ast.Await: self.await_, ast.Yield: self.yield_, ast.YieldFrom: self.yield_from, ast.Slice: self.slice_,
        }  # fmt: skip
        self.statements = {
            ast.Expr: self.expr_stmt, ast.Assign: self.assign, ast.AugAssign: self.augassign, ast.AnnAssign: self.annassign,
            ast.Return: self.return_, ast.If: self.if_, ast.For: self.for_, ast.AsyncFor: self.for_, ast.While: self.while_,
            ast.With: self.with_, ast.AsyncWith: self.with_, ast.Try: self.try_, ast.FunctionDef: self.function, ast.AsyncFunctionDef: self.function,
            ast.ClassDef: self.class_, ast.Import: self.import_, ast.ImportFrom: self.import_from, ast.Raise: self.raise_,
            ast.Assert: self.assert_, ast.Delete: self.delete, ast.Match: self.match_, ast.Break: self.stop, ast.Continue: self.stop,
        }  # fmt: skip
        if hasattr(ast, "TryStar"):
            self.statements[ast.TryStar] = self.try_

    # --- running units

    def walk_top(self) -> None:
        """Walk the statements at the top of the file; functions found become units."""
        unit = self.units[0]
        self._enter(unit, {})
        self.block(unit.node.body)  # type: ignore[attr-defined]
        self.top = self.env
        name = self.module.name
        for key, value in self.top.items():
            if value.kind >= SEQUENCE or (value.kind == OTHER and form_of(value) in ("inst", "number", "list", "tuple", "dict")):
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
        self.facts.reads = unit.reads = {}
        self.facts.produced = self.produced
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

    def _walk_function(self, unit: Unit) -> None:
        node = unit.node
        env: dict[str, Value] = {}
        self._enter(unit, env)
        self.parameters(unit, node, env)  # type: ignore[arg-type]
        self.hook(node)
        done = self.block(node.body)  # type: ignore[attr-defined]
        facts = self.facts
        declared = hints.read(node.returns, self) if node.returns is not None else None  # type: ignore[attr-defined]
        if declared is not None and declared.kind != UNKNOWN:
            facts.put("ret:" + unit.name, declared)
        elif unit.returns:
            result = join_all(unit.returns)
            if result.kind == TENSOR and any(form_of(value) in _NEVER_TENSOR for value in unit.returns):
                result = UNKNOWN_VALUE  # a function of many types: what a call gives cannot be told
            facts.put("ret:" + unit.name, _plain(result))
        elif not done:
            facts.put("ret:" + unit.name, NONE)
        self._leave(unit)

    def parameters(self, unit: Unit, node: ast.FunctionDef, env: dict[str, Value]) -> None:
        """Bind the parameters: annotation, then what callers pass, then name and default."""
        args = node.args
        names = [*args.posonlyargs, *args.args]
        first = 0
        if unit.class_name is not None and names and not _is_static(node):
            env[names[0].arg] = Value(OTHER, ("ref" if _is_class_method(node) else "inst", unit.class_name))
            names = names[1:]
            first = 1
        defaults: list[ast.expr | None] = [None] * (len(names) + first - len(args.defaults)) + list(args.defaults)
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
        """The value of one parameter."""
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
        if index == 0 and first and unit.name.rsplit(".", 1)[1] in profile.forward_methods and self.is_layer(unit.class_name):
            return TENSOR_VALUE
        if passed is not None and passed.kind == OTHER and name.startswith("_"):
            return passed
        return Value(UNKNOWN, ("param", name))

    def is_layer(self, class_name: str | None, depth: int = 0) -> bool:
        """Whether a class is, by itself or by a base, a layer, a module or a model."""
        if class_name is None or depth > 6:
            return False
        if class_name.endswith(LAYER_ENDINGS):
            return True
        known = self.facts.read("def:" + self.facts.canonical(class_name))
        if known is None or known[0] != "class":
            return False
        return any(self.is_layer(base, depth + 1) for base in known[1])

    # --- rules

    def hook(self, node: ast.AST) -> None:
        """Show a node to the rules that asked for its type."""
        rules = self.rules.get(node.__class__)
        if rules is not None:
            for rule in rules:
                rule.check(node, self)

    def report(self, rule, node: ast.AST, *details: str) -> None:
        """Note a finding; a second one of the same rule at the same node is the same finding."""
        self.unit.reports[rule.code, id(node)] = (rule, node, details)

    def is_tensor(self, node: ast.AST) -> bool:
        """Whether a walked expression is known to be a tensor (in strict mode: not known to be something else)."""
        kind = node.ev.kind  # type: ignore[attr-defined]
        return kind == TENSOR or (kind == UNKNOWN and self.module.strict)

    def dotted(self, node: ast.AST) -> str | None:
        """The dotted name an expression stands for, or ``None``."""
        value = getattr(node, "ev", None)
        if value is not None and type(value.detail) is tuple and value.detail[0] in ("ref", "bound"):
            return value.detail[1]
        return None

    # --- evidence

    def refine(self, value: Value) -> None:
        """Later use shows that an unknown value is a tensor: carry that back to where it came from."""
        detail = value.detail
        if value.kind != UNKNOWN or detail is None or len(detail) != 2:  # type: ignore[arg-type]
            return
        what, source = detail  # type: ignore[misc]
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

    # --- expressions

    def ev(self, node: ast.expr) -> Value:
        """Walk an expression and give its value."""
        value = self.expressions[node.__class__](node)
        node.ev = value  # type: ignore[attr-defined]
        rules = self.rules.get(node.__class__)
        if rules is not None:
            for rule in rules:
                rule.check(node, self)
        return value

    def name(self, node: ast.Name) -> Value:
        name = node.id
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in BUILTINS:
            return ref("builtins." + name)
        if not self.module.star_import:
            dotted = self.module.conventional(name)
            if dotted is not None:
                return ref(dotted)
        return UNKNOWN_VALUE

    def constant(self, node: ast.Constant) -> Value:
        value = node.value
        if type(value) is str:
            return Value(OTHER, ("text", value))
        if value is None:
            return NONE
        return NUMBER

    def attribute(self, node: ast.Attribute) -> Value:
        node.value.up = node  # type: ignore[attr-defined]
        base = self.ev(node.value)
        attr = node.attr
        kind = base.kind
        if kind == TENSOR:
            if attr in natives.ATTRIBUTES_OTHER:
                return SHAPE if attr == "shape" else NOT_TENSOR
            if attr in natives.ATTRIBUTES_TENSOR:
                return TENSOR_VALUE
            return UNKNOWN_VALUE
        if kind == OTHER:
            detail = base.detail
            if detail is None:
                return UNKNOWN_VALUE
            form = detail[0]  # type: ignore[index]
            if form == "ref":
                return self.member_of_ref(detail[1], attr)  # type: ignore[index]
            if form == "inst":
                return self.member_of_instance(detail[1], attr)  # type: ignore[index]
            return UNKNOWN_VALUE
        if kind == UNKNOWN:
            if attr == "shape":
                if base.detail is not None and not self.module.is_test:
                    self.refine(base)
                return SHAPE
            if attr == "ndim":
                if base.detail is not None and not self.module.is_test:
                    self.refine(base)
                return NOT_TENSOR
            if attr in ("name", "device", "dtype"):  # layers and optimizers have these too
                return NOT_TENSOR
        return UNKNOWN_VALUE

    def member_of_ref(self, owner: str, attr: str) -> Value:
        """``owner.attr`` where owner is a module or a class."""
        name = f"{owner}.{attr}"
        if natives.library_of(owner) or self.profile.is_namespace(owner):
            return ref(name)
        facts = self.facts
        name = facts.canonical(name)
        held = facts.read("var:" + name)
        if held is not None:
            return held
        known = facts.read("def:" + owner)
        if known is not None and known[0] == "class":
            found = self.find_member(owner, attr)
            if found is not None:
                return found
        return ref(name)

    def member_of_instance(self, class_name: str, attr: str) -> Value:
        """``x.attr`` where x is an instance of a class of the project, or of one outside it."""
        found = self.find_member(class_name, attr)
        if found is not None:
            if form_of(found) == "ref":
                known = self.facts.read("def:" + found.detail[1])  # type: ignore[index]
                if known is not None and known[0] == "func":
                    if known[1] == "property":
                        return self.facts.read("ret:" + found.detail[1]) or UNKNOWN_VALUE  # type: ignore[index]
                    return Value(OTHER, ("bound", found.detail[1]))  # type: ignore[index]
            return found
        if attr in ("shape", "input_shape", "output_shape"):
            return SHAPE
        return Value(UNKNOWN, None)

    def find_member(self, class_name: str, attr: str, depth: int = 0) -> Value | None:
        """A method or attribute by the class and its bases, nearest first; attributes of subclasses do not count."""
        if depth > 8:
            return None
        facts = self.facts
        held = facts.read(f"attr:{class_name}:{attr}")
        if held is not None:
            return held
        name = f"{class_name}.{attr}"
        if facts.read("def:" + name) is not None:
            return ref(name)
        known = facts.read("def:" + class_name)
        if known is None:
            target = facts.canonical(class_name)
            if target == class_name:
                return None
            return self.find_member(target, attr, depth + 1)
        if known[0] == "class":
            for base in known[1]:
                found = self.find_member(base, attr, depth + 1)
                if found is not None:
                    return found
        return None

    def binop(self, node: ast.BinOp) -> Value:
        left = self.ev(node.left)
        right = self.ev(node.right)
        lk, rk = left.kind, right.kind
        if lk == TENSOR or rk == TENSOR:
            if lk == OTHER and form_of(left) == "text":
                return left
            if joins_lists(node, left, right):
                return container("list", join(element_of(left), element_of(right)))
            dtype = None if "vector" in (left.detail, right.detail) else left.detail if lk == TENSOR and (rk != TENSOR or right.detail == left.detail) else right.detail if lk != TENSOR else None
            return Value(TENSOR, dtype) if dtype is not None and dtype != "like" else TENSOR_VALUE
        if lk == SEQUENCE or rk == SEQUENCE:
            high = left if lk == SEQUENCE else right
            return join(left, right) if lk == rk else high
        if lk == OTHER and rk == OTHER:
            fl, fr = form_of(left), form_of(right)
            if fl == fr and fl in ("list", "tuple") and isinstance(node.op, ast.Add):
                return container("list", join(element_of(left), element_of(right)))
            if fl in ("list", "shape", "text"):
                return left
            if fl == "number" and fr == "number":
                return NUMBER
            return NOT_TENSOR
        if lk == OTHER and form_of(left) in ("text", "list", "tuple", "shape", "dict"):
            return NOT_TENSOR if form_of(left) != "shape" else SHAPE
        if id(node) in self.unit.demanded:
            return TENSOR_VALUE
        if lk == UNKNOWN and isinstance(node.op, ast.MatMult):
            return TENSOR_VALUE
        return Value(UNKNOWN, ("node", node))

    def unary(self, node: ast.UnaryOp) -> Value:
        value = self.ev(node.operand)
        if isinstance(node.op, ast.Not):
            return NUMBER
        return value if value.kind in (TENSOR, UNKNOWN) else NUMBER

    def compare(self, node: ast.Compare) -> Value:
        for side in (node.left, *node.comparators):
            side.up = node  # type: ignore[attr-defined]
        left = self.ev(node.left)
        tensor = left.kind == TENSOR
        unknown = left.kind == UNKNOWN
        text = form_of(left) in ("text", "none")
        for comparator in node.comparators:
            right = self.ev(comparator)
            tensor = tensor or right.kind == TENSOR
            unknown = unknown or right.kind == UNKNOWN
            text = text or form_of(right) in ("text", "none", "tuple", "list", "shape")
        if not isinstance(node.ops[0], COMPARISONS) or text:
            return NUMBER
        return TENSOR_VALUE if tensor else UNKNOWN_VALUE if unknown else NUMBER

    def boolop(self, node: ast.BoolOp) -> Value:
        result = None
        saved = None
        for value in node.values:
            found = self.ev(value)
            result = found if result is None else join(result, found)
            if isinstance(value, (ast.Call, ast.UnaryOp, ast.Compare)):
                changes = self.narrowing(value, isinstance(node.op, ast.And))
                if changes:
                    if saved is None:
                        saved = dict(self.env)
                    self.env.update(changes)
        if saved is not None:
            for key in list(self.env):
                if key in saved:
                    self.env[key] = saved[key]
        return result  # type: ignore[return-value]

    def subscript(self, node: ast.Subscript) -> Value:
        base = self.ev(node.value)
        self.ev(node.slice)
        if base.kind == TENSOR:
            if base.detail == "vector" and not isinstance(node.slice, (ast.Slice, ast.Tuple)) and node.slice.ev.kind == OTHER:  # type: ignore[attr-defined]
                return NUMBER
            return TENSOR_VALUE if base.detail is None else Value(TENSOR, base.detail)
        form = form_of(base)
        if form == "mixed":
            return base if isinstance(node.slice, ast.Slice) else TENSOR_VALUE
        if form == "shape":
            return SHAPE if isinstance(node.slice, ast.Slice) else NUMBER
        if form == "dict":
            return base.detail[1]  # type: ignore[index]
        if form in ("list", "tuple", "iter"):
            if isinstance(node.slice, ast.Slice):
                return container("list", element_of(base)) if form != "list" else base
            return element_of(base, _constant_index(node.slice))
        if form == "text":
            return NOT_TENSOR
        if form == "ref":
            return self.subscripted_ref(base, node)
        return UNKNOWN_VALUE

    def subscripted_ref(self, base: Value, node: ast.Subscript) -> Value:
        name = base.detail[1]  # type: ignore[index]
        key = getattr(node.slice, "value", None)
        if name == "sys.modules" and isinstance(key, str) and natives.library_of(key):
            return ref(key)
        return base if natives.library_of(name) is None else UNKNOWN_VALUE

    def tuple_(self, node: ast.Tuple) -> Value:
        if isinstance(node.ctx, ast.Store):
            return UNKNOWN_VALUE
        members = []
        starred = False
        for element in node.elts:
            starred = starred or isinstance(element, ast.Starred)
            element.up = node  # type: ignore[attr-defined]
            members.append(self.ev(element))
        if starred:
            return container("list", join_all(members))
        return container("tuple", tuple(members))

    def list_(self, node: ast.List | ast.Set) -> Value:
        members = [self.ev(element) for element in node.elts]
        if not members:
            return Value(OTHER, ("list", UNKNOWN_VALUE))
        return container("list", join_all(members))

    def dict_(self, node: ast.Dict) -> Value:
        for key in node.keys:
            if key is not None:
                self.ev(key)
        members = [self.ev(value) for value in node.values]
        return container("dict", join_all(members))

    def ifexp(self, node: ast.IfExp) -> Value:
        self.ev(node.test)
        changes = self.narrowing(node.test, True)
        body = self._with(changes, node.body)
        changes = self.narrowing(node.test, False)
        return join(body, self._with(changes, node.orelse))

    def _with(self, changes: dict[str, Value] | None, node: ast.expr) -> Value:
        if not changes:
            return self.ev(node)
        saved = {key: self.env.get(key, _UNSET) for key in changes}
        self.env.update(changes)
        value = self.ev(node)
        for key, old in saved.items():
            if old is _UNSET:
                self.env.pop(key, None)
            else:
                self.env[key] = old  # type: ignore[assignment]
        return value

    def joined(self, node: ast.JoinedStr) -> Value:
        for value in node.values:
            self.ev(value)
        return Value(OTHER, ("text", None))

    def formatted(self, node: ast.FormattedValue) -> Value:
        self.ev(node.value)
        if node.format_spec is not None:
            self.ev(node.format_spec)
        return NOT_TENSOR

    def lambda_(self, node: ast.Lambda) -> Value:
        env: dict[str, Value] = {}
        args = node.args
        for default in [*args.defaults, *(d for d in args.kw_defaults if d is not None)]:
            self.ev(default)
        for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]:
            env[arg.arg] = TENSOR_VALUE if arg.arg in self.profile.tensor_parameters else UNKNOWN_VALUE
        if args.vararg:
            env[args.vararg.arg] = UNKNOWN_VALUE
        if args.kwarg:
            env[args.kwarg.arg] = UNKNOWN_VALUE
        result = self._in_scope(env, node.body)
        return Value(OTHER, ("lambda", result))

    def _in_scope(self, env: dict[str, Value], node: ast.expr) -> Value:
        outer = self.env
        self.scopes.append(env)
        self.env = env
        value = self.ev(node)
        self.scopes.pop()
        self.env = outer
        return value

    def comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        form = "iter" if isinstance(node, ast.GeneratorExp) else "list"
        return container(form, self._comprehension(node.generators, (node.elt,)))

    def dictcomp(self, node: ast.DictComp) -> Value:
        return container("dict", self._comprehension(node.generators, (node.key, node.value)))

    def _comprehension(self, generators: list[ast.comprehension], parts: tuple[ast.expr, ...]) -> Value:
        env: dict[str, Value] = {}
        outer = self.env
        first = True
        for generator in generators:
            iterated = self.ev(generator.iter)
            if first:
                self.scopes.append(env)
                self.env = env
                first = False
            self.bind(generator.target, element_of(iterated))
            for test in generator.ifs:
                self.ev(test)
                env.update(self.narrowing(test, True) or {})
            self.hook(generator)
        value = UNKNOWN_VALUE
        for part in parts:
            value = self.ev(part)
        self.scopes.pop()
        self.env = outer
        return value

    def starred(self, node: ast.Starred) -> Value:
        return element_of(self.ev(node.value))

    def walrus(self, node: ast.NamedExpr) -> Value:
        value = self.ev(node.value)
        self.bind(node.target, value)
        return value

    def await_(self, node: ast.Await) -> Value:
        return self.ev(node.value)

    def yield_(self, node: ast.Yield) -> Value:
        if node.value is not None:
            self.unit.returns.append(container("iter", self.ev(node.value)))
        return UNKNOWN_VALUE

    def yield_from(self, node: ast.YieldFrom) -> Value:
        self.unit.returns.append(container("iter", element_of(self.ev(node.value))))
        return UNKNOWN_VALUE

    def slice_(self, node: ast.Slice) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.ev(part)
        return NOT_TENSOR

    # --- statements

    def block(self, body: list[ast.stmt]) -> bool:
        """Execute statements; True if the end cannot be reached."""
        table = self.statements
        done = False
        for statement in body:
            handler = table.get(statement.__class__)
            if handler is not None and handler(statement):
                done = True
        return done

    def expr_stmt(self, node: ast.Expr) -> None:
        self.ev(node.value)

    def assign(self, node: ast.Assign) -> None:
        value = self.ev(node.value)
        for target in node.targets:
            self.bind(target, value)
        self.hook(node)

    def annassign(self, node: ast.AnnAssign) -> None:
        value = self.ev(node.value) if node.value is not None else None
        declared = hints.read(node.annotation, self)
        if declared.kind == UNKNOWN and value is not None:
            declared = value
        if value is not None or isinstance(node.target, ast.Name):
            self.bind(node.target, declared)
        if self.unit.class_name is not None and isinstance(self.unit.node, ast.ClassDef) and isinstance(node.target, ast.Name):
            self.facts.put(f"attr:{self.unit.class_name}:{node.target.id}", declared)
        self.hook(node)

    def augassign(self, node: ast.AugAssign) -> None:
        right = self.ev(node.value)
        target = node.target
        if isinstance(target, ast.Name):
            left = self.name(target)
        elif isinstance(target, ast.Attribute):
            left = self.attribute(target)
        else:
            left = self.subscript(target)
        target.ev = left  # type: ignore[attr-defined]
        self.hook(node)
        if left.kind == TENSOR or right.kind == TENSOR:
            result = TENSOR_VALUE if form_of(left) not in ("list", "text") else left
        elif left.kind == OTHER and right.kind == OTHER and form_of(left) not in ("list", "dict"):
            result = left
        elif form_of(left) in ("list", "tuple"):
            result = join(left, right) if form_of(right) in ("list", "tuple", "iter") else left
        else:
            result = UNKNOWN_VALUE
        self.bind(target, result)

    def bind(self, target: ast.expr, value: Value) -> None:
        """Store a value in a target."""
        if isinstance(target, ast.Name):
            self.env[target.id] = value
            target.ev = value  # type: ignore[attr-defined]
        elif isinstance(target, (ast.Tuple, ast.List)):
            after_star = False
            count = len(target.elts)
            for index, element in enumerate(target.elts):
                if isinstance(element, ast.Starred):
                    after_star = True
                    self.bind(element.value, container("list", element_of(value)))
                else:
                    self.bind(element, element_of(value, index - count if after_star else index))
        elif isinstance(target, ast.Attribute):
            base = self.ev(target.value)
            if base.kind == OTHER and form_of(base) == "inst":
                self.facts.put(f"attr:{base.detail[1]}:{target.attr}", _plain(value))  # type: ignore[index]
            target.ev = value  # type: ignore[attr-defined]
        elif isinstance(target, ast.Subscript):
            base = self.ev(target.value)
            self.ev(target.slice)
            self.add_to(target.value, base, value)
            target.ev = value  # type: ignore[attr-defined]
        elif isinstance(target, ast.Starred):
            self.bind(target.value, container("list", element_of(value)))

    def add_to(self, holder: ast.expr, base: Value, value: Value) -> None:
        """A container got another member."""
        if form_of(base) not in ("list", "dict", "tuple") or value.kind == UNKNOWN:
            return
        form = "dict" if form_of(base) == "dict" else "list"
        present = base.detail[1] if form_of(base) != "tuple" else element_of(base)  # type: ignore[index]
        grown = container(form, value if present is UNKNOWN_VALUE else join(present, value))
        if isinstance(holder, ast.Name):
            for scope in reversed(self.scopes):
                if holder.id in scope:
                    scope[holder.id] = grown
                    return
        elif isinstance(holder, ast.Attribute):
            owner = getattr(holder.value, "ev", UNKNOWN_VALUE)
            if form_of(owner) == "inst":
                self.facts.put(f"attr:{owner.detail[1]}:{holder.attr}", grown)

    def return_(self, node: ast.Return) -> bool:
        if node.value is not None:
            self.unit.returns.append(self.ev(node.value))
        else:
            self.unit.returns.append(NONE)
        self.hook(node)
        return True

    def raise_(self, node: ast.Raise) -> bool:
        if node.exc is not None:
            self.ev(node.exc)
        if node.cause is not None:
            self.ev(node.cause)
        return True

    def stop(self, node: ast.stmt) -> bool:
        return True

    def assert_(self, node: ast.Assert) -> None:
        self.ev(node.test)
        if node.msg is not None:
            self.ev(node.msg)
        self.hook(node)
        self.env.update(self.narrowing(node.test, True) or {})

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.ev(target)

    def if_(self, node: ast.If) -> bool:
        self.ev(node.test)
        self.hook(node)
        before = self.env
        yes = before.copy()
        yes.update(self.narrowing(node.test, True) or {})
        no = before
        no_changes = self.narrowing(node.test, False)
        self._switch(yes)
        done_yes = self.block(node.body)
        yes = self.env
        if no_changes:
            no = no.copy()
            no.update(no_changes)
        self._switch(no)
        done_no = self.block(node.orelse) if node.orelse else False
        no = self.env
        if done_yes and not done_no:
            self._switch(no)
        elif done_no and not done_yes:
            self._switch(yes)
        else:
            self._switch(_merge(yes, no))
        return done_yes and done_no

    def _switch(self, env: dict[str, Value]) -> None:
        self.scopes[-1] = env
        self.env = env

    def for_(self, node: ast.For) -> None:
        iterated = self.ev(node.iter)
        self.bind(node.target, element_of(iterated))
        self.hook(node)
        self._loop(node.body, lambda: self.bind(node.target, element_of(iterated)))
        self.block(node.orelse)

    def while_(self, node: ast.While) -> None:
        self.ev(node.test)
        self.hook(node)
        self._loop(node.body, lambda: self.ev(node.test))
        self.block(node.orelse)

    def _loop(self, body: list[ast.stmt], again) -> None:
        before = self.env.copy()
        self.block(body)
        joined = _merge(before, self.env)
        self._switch(joined)
        if any(joined[key] is not value and joined[key].kind != value.kind for key, value in before.items()):
            again()
            self.block(body)
            self._switch(_merge(joined, self.env))

    def with_(self, node: ast.With) -> None:
        guarded = False
        for item in node.items:
            value = self.ev(item.context_expr)
            name = self.dotted(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else None
            if name is not None and name.endswith((".raises", ".suppress", ".assertRaises")):
                guarded = True
            elif isinstance(item.context_expr, ast.Call) and getattr(item.context_expr.func, "attr", "") in ("raises", "assertRaises", "suppress"):
                guarded = True
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value if form_of(value) == "inst" else UNKNOWN_VALUE)
        self.hook(node)
        self.guards += guarded
        self.block(node.body)
        self.guards -= guarded

    def try_(self, node: ast.Try) -> bool:
        before = self.env.copy()
        guarded = any(_catches_type_error(handler) for handler in node.handlers)
        self.guards += guarded
        done = self.block(node.body)
        self.guards -= guarded
        after = self.env
        start = _merge(before, after) if node.handlers else after
        if not done:
            done = self.block(node.orelse)
        result = None if done else self.env
        for handler in node.handlers:
            self._switch(start.copy())
            if handler.type is not None:
                self.ev(handler.type)
            if handler.name:
                self.env[handler.name] = NOT_TENSOR
            if not self.block(handler.body):
                result = self.env if result is None else _merge(result, self.env)
        self._switch(result if result is not None else start)
        ended = self.block(node.finalbody)
        return ended or result is None

    def match_(self, node: ast.Match) -> None:
        subject = self.ev(node.subject)
        self.hook(node)
        before = self.env
        result = before
        for case in node.cases:
            self._switch(before.copy())
            for part in ast.walk(case.pattern):
                captured = getattr(part, "name", None) or getattr(part, "rest", None)
                if isinstance(captured, str):
                    self.env[captured] = subject if part is case.pattern else element_of(subject)
                if isinstance(part, ast.MatchValue):
                    self.ev(part.value)
            if case.guard is not None:
                self.ev(case.guard)
            if not self.block(case.body):
                result = _merge(result, self.env)
        self._switch(result)

    # --- definitions

    def function(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self.ev(decorator)
        args = node.args
        for default in [*args.defaults, *(d for d in args.kw_defaults if d is not None)]:
            self.ev(default)
        owner = self.unit.node
        in_class = isinstance(owner, ast.ClassDef)
        name = f"{self.unit.name}.{node.name}"
        self.env[node.name] = ref(name)
        self.facts.put("def:" + name, ("func", _form(node)))
        unit = self.pending.get(id(node))
        if unit is None:
            unit = Unit(name, node, self.unit, self.unit.class_name if in_class else None)
            self.pending[id(node)] = unit
            self.units.append(unit)

    def class_(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.ev(decorator)
        bases = []
        for base in node.bases:
            self.ev(base)
            dotted = self.dotted(base)
            bases.append(dotted if dotted is not None else getattr(base, "attr", None) or getattr(base, "id", "?"))
        for keyword in node.keywords:
            self.ev(keyword.value)
        self.hook(node)
        outer = self.unit
        name = f"{outer.name}.{node.name}"
        self.facts.put("def:" + name, ("class", tuple(bases)))
        self.env[node.name] = ref(name)
        inner = Unit(name, node, outer, name)
        inner.reports = outer.reports
        inner.reads = outer.reads
        self.unit = inner
        env: dict[str, Value] = {}
        self.scopes.append(env)
        self.env = env
        self.block(node.body)
        for key, value in self.env.items():
            if value.kind >= SEQUENCE or form_of(value) in ("inst", "number", "text", "list", "dict", "tuple"):
                self.facts.put(f"attr:{name}:{key}", value)
        self.scopes.pop()
        self.env = self.scopes[-1]
        self.unit = outer

    def import_(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.asname:
                self.env[alias.asname] = ref(alias.name)
                self._alias(alias.asname, alias.name)
            else:
                root = alias.name.split(".", 1)[0]
                self.env[root] = ref(root)
        self.hook(node)

    def import_from(self, node: ast.ImportFrom) -> None:
        source = self.module.absolute(node.module, node.level)
        for alias in node.names:
            if alias.name == "*":
                continue
            target = f"{source}.{alias.name}" if source else alias.name
            name = alias.asname or alias.name
            value = None
            if natives.library_of(target) is None:
                held = self.facts.read("var:" + self.facts.canonical(target))
                value = held
            self.env[name] = value if value is not None else ref(target)
            self._alias(name, target)
        self.hook(node)

    def _alias(self, name: str, target: str) -> None:
        if self.unit.node is self.module.tree:
            own = f"{self.module.name}.{name}"
            if own != target:
                self.facts.put("alias:" + own, target)

    # --- narrowing

    def narrowing(self, test: ast.expr, holds: bool) -> dict[str, Value] | None:
        """What a test that held (or did not) says about names."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self.narrowing(test.operand, not holds)
        if isinstance(test, ast.BoolOp):
            if isinstance(test.op, ast.And) is holds:
                changes: dict[str, Value] = {}
                for value in test.values:
                    changes.update(self.narrowing(value, holds) or {})
                return changes
            return None
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
            op, right = test.ops[0], test.comparators[0]
            if isinstance(right, ast.Constant) and right.value is None and isinstance(op, (ast.Is, ast.IsNot)):
                return {test.left.id: NONE} if isinstance(op, ast.Is) is holds else None
            if holds and isinstance(op, (ast.Eq, ast.In)) and isinstance(right, (ast.Constant, ast.List, ast.Tuple)):
                first = right.value if isinstance(right, ast.Constant) else getattr(right.elts[0], "value", None) if right.elts else None
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
                    return {name: TENSOR_VALUE}
                if kinds == {OTHER}:
                    present = self.name(test.args[0])
                    return {name: present if form_of(present) in ("list", "tuple", "dict", "inst") else NOT_TENSOR}
                if kinds == {SEQUENCE}:
                    present = self.name(test.args[0])
                    return {name: present if present.kind == SEQUENCE or form_of(present) is not None else TENSOR_LIST if present.kind == TENSOR else UNKNOWN_VALUE}
                return None
            if called == "builtins.callable":
                return {name: NOT_TENSOR} if holds else None
            if called.endswith((".is_tensor", ".is_keras_tensor")):
                return {name: TENSOR_VALUE} if holds else None
        return None

    def class_kinds(self, node: ast.expr) -> set[int]:
        """Which kinds the classes of an isinstance test stand for."""
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


def _plain(value: Value) -> Value:
    """An unknown without its origin, which means nothing in another function."""
    return UNKNOWN_VALUE if value.kind == UNKNOWN and value.detail != ("mixed",) else value


def joins_lists(node: ast.BinOp, left: Value, right: Value) -> bool:
    """Whether ``+`` or ``*`` here builds a list or tuple: no tensor library adds a tensor to a Python list."""
    sides = (form_of(left), form_of(right))
    if isinstance(node.op, ast.Add):
        return "list" in sides or "tuple" in sides or "shape" in sides
    return isinstance(node.op, ast.Mult) and sides[0] in ("list", "tuple") and right.kind != TENSOR


def _merge(a: dict[str, Value], b: dict[str, Value]) -> dict[str, Value]:
    if a is b:
        return a
    result = a.copy()
    for key, value in b.items():
        present = result.get(key)
        if present is None:
            result[key] = value
        elif present is not value:
            result[key] = join(present, value)
    return result


def _constant_index(node: ast.expr) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
        return -node.operand.value
    return None


def _form(node: ast.FunctionDef) -> str:
    for decorator in node.decorator_list:
        name = getattr(decorator, "attr", None) or getattr(decorator, "id", None)
        if name in ("property", "cached_property"):
            return "property"
        if name == "staticmethod":
            return "static"
    return "plain"


def _is_static(node: ast.FunctionDef) -> bool:
    return any(getattr(d, "id", None) == "staticmethod" for d in node.decorator_list)


def _is_class_method(node: ast.FunctionDef) -> bool:
    return any(getattr(d, "id", None) == "classmethod" for d in node.decorator_list)


def _catches_type_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(getattr(part, "id", None) in ("TypeError", "Exception", "BaseException") for part in ast.walk(handler.type))

"""Evaluate expressions: the part of the walker that assigns a value to every expression."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from ember_ml.lint import natives
from ember_ml.lint.values import (
    NONE,
    NOT_TENSOR,
    NUMBER,
    OTHER,
    SEQUENCE,
    SHAPE,
    TENSOR,
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
from ember_ml.lint.walker import Walker

BUILTINS = frozenset(dir(builtins))
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class ExpressionMixin(Walker):
    """The part of the walker that handles expressions."""

    def ev(self, node: Any) -> Value:
        """Walk an expression and return its value."""
        value = self.expressions[node.__class__](node)
        node.ev = value
        if node.__class__ in self.rules:
            self.hook(node)
        return value

    def name(self, node: Any) -> Value:
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

    def constant(self, node: Any) -> Value:
        value = node.value
        if type(value) is str:
            return Value(OTHER, ("text", value))
        if value is None:
            return NONE
        return NUMBER

    def attribute(self, node: Any) -> Value:
        node.value.up = node
        base = self.ev(node.value)
        attr = node.attr
        kind = base.kind
        if kind == TENSOR:
            if attr in natives.ATTRIBUTES_OTHER:
                return SHAPE if attr == "shape" else NOT_TENSOR
            if attr in natives.ATTRIBUTES_TENSOR:
                return base if base.detail == "portable" else TENSOR_VALUE
            return UNKNOWN_VALUE
        if kind == OTHER:
            detail = base.detail
            if detail is None:
                return UNKNOWN_VALUE
            form = detail[0]
            if form == "ref":
                return self.member_of_ref(detail[1], attr)
            if form == "inst":
                return self.member_of_instance(detail[1], attr)
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
        """Return ``owner.attr`` where owner is a module or a class."""
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
        """Return ``x.attr`` where x is an instance of a class of the project, or of one outside it."""
        found = self.find_member(class_name, attr)
        if found is not None:
            if form_of(found) == "ref":
                known = self.facts.read("def:" + found.detail[1])
                if known is not None and known[0] == "func":
                    if known[1] == "property":
                        return self.facts.read("ret:" + found.detail[1]) or UNKNOWN_VALUE
                    return Value(OTHER, ("bound", found.detail[1]))
            return found
        if attr in ("shape", "input_shape", "output_shape"):
            return SHAPE
        return Value(UNKNOWN, None)

    def find_member(self, class_name: str, attr: str, depth: int = 0) -> Value | None:
        """Find a method or attribute in the class and its bases, nearest first; subclasses do not count."""
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

    def binop(self, node: Any) -> Value:
        """Walk a chain of operators from its first operand on: calls cannot be nested as deep as a long sum."""
        outer = []
        while node.left.__class__ is ast.BinOp:
            outer.append(node)
            node = node.left
        value = self.combined(node, self.ev(node.left), self.ev(node.right))
        while outer:
            node.ev = value
            self.hook(node)
            node = outer.pop()
            value = self.combined(node, value, self.ev(node.right))
        return value

    def combined(self, node: Any, left: Value, right: Value) -> Value:
        """Return the value of an operator for those of its operands."""
        lk, rk = left.kind, right.kind
        if lk == TENSOR or rk == TENSOR:
            if lk == OTHER and form_of(left) == "text":
                return left
            if joins_lists(node, left, right):
                return container("list", join(element_of(left), element_of(right)))
            dtype = (
                None
                if "vector" in (left.detail, right.detail)
                else left.detail
                if lk == TENSOR and (rk != TENSOR or right.detail == left.detail)
                else right.detail
                if lk != TENSOR
                else None
            )
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

    def unary(self, node: Any) -> Value:
        value = self.ev(node.operand)
        if isinstance(node.op, ast.Not):
            return NUMBER
        return value if value.kind in (TENSOR, UNKNOWN) else NUMBER

    def compare(self, node: Any) -> Value:
        for side in (node.left, *node.comparators):
            side.up = node
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

    def boolop(self, node: Any) -> Value:
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
        return UNKNOWN_VALUE if result is None else result

    def subscript(self, node: Any) -> Value:
        base = self.ev(node.value)
        self.ev(node.slice)
        if base.kind == TENSOR:
            if (
                base.detail == "vector"
                and not isinstance(node.slice, (ast.Slice, ast.Tuple))
                and node.slice.ev.kind == OTHER
            ):
                return NUMBER
            return TENSOR_VALUE if base.detail is None else Value(TENSOR, base.detail)
        form = form_of(base)
        if form == "mixed":
            return base if isinstance(node.slice, ast.Slice) else TENSOR_VALUE
        if form == "shape":
            return SHAPE if isinstance(node.slice, ast.Slice) else NUMBER
        if form == "dict":
            return base.detail[1]
        if form in ("list", "tuple", "iter"):
            if isinstance(node.slice, ast.Slice):
                return container("list", element_of(base)) if form != "list" else base
            return element_of(base, _constant_index(node.slice))
        if form == "text":
            return NOT_TENSOR
        if form == "ref":
            return self.subscripted_ref(base, node)
        return UNKNOWN_VALUE

    def subscripted_ref(self, base: Value, node: Any) -> Value:
        name = base.detail[1]
        key = getattr(node.slice, "value", None)
        if name == "sys.modules" and isinstance(key, str) and natives.library_of(key):
            return ref(key)
        return base if natives.library_of(name) is None else UNKNOWN_VALUE

    def tuple_(self, node: Any) -> Value:
        if isinstance(node.ctx, ast.Store):
            return UNKNOWN_VALUE
        members = []
        starred = False
        for element in node.elts:
            _note_place(element, node)
            starred = starred or isinstance(element, ast.Starred)
            members.append(self.ev(element))
        if starred:
            return container("list", join_all(members))
        return container("tuple", tuple(members))

    def list_(self, node: Any) -> Value:
        members = [self.ev(element) for element in node.elts]
        if not members:
            return Value(OTHER, ("list", UNKNOWN_VALUE))
        return container("list", join_all(members))

    def dict_(self, node: Any) -> Value:
        for key in node.keys:
            if key is not None:
                self.ev(key)
        members = [self.ev(value) for value in node.values]
        return container("dict", join_all(members))

    def ifexp(self, node: Any) -> Value:
        self.ev(node.test)
        changes = self.narrowing(node.test, True)
        body = self._with(changes, node.body)
        changes = self.narrowing(node.test, False)
        return join(body, self._with(changes, node.orelse))

    def _with(self, changes: dict[str, Value] | None, node: Any) -> Value:
        if not changes:
            return self.ev(node)
        saved = {key: self.env[key] for key in changes if key in self.env}
        self.env.update(changes)
        value = self.ev(node)
        for key in changes:
            if key in saved:
                self.env[key] = saved[key]
            else:
                self.env.pop(key, None)
        return value

    def joined(self, node: Any) -> Value:
        for value in node.values:
            self.ev(value)
        return Value(OTHER, ("text", None))

    def formatted(self, node: Any) -> Value:
        self.ev(node.value)
        if node.format_spec is not None:
            self.ev(node.format_spec)
        return NOT_TENSOR

    def lambda_(self, node: Any) -> Value:
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

    def _in_scope(self, env: dict[str, Value], node: Any) -> Value:
        outer = self.env
        self.scopes.append(env)
        self.env = env
        value = self.ev(node)
        self.scopes.pop()
        self.env = outer
        return value

    def comprehension(self, node: Any) -> Value:
        form = "iter" if isinstance(node, ast.GeneratorExp) else "list"
        return container(form, self._comprehension(node.generators, (node.elt,)))

    def dictcomp(self, node: Any) -> Value:
        return container("dict", self._comprehension(node.generators, (node.key, node.value)))

    def _comprehension(self, generators: list[ast.comprehension], parts: Any) -> Value:
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

    def starred(self, node: Any) -> Value:
        return element_of(self.ev(node.value))

    def walrus(self, node: Any) -> Value:
        value = self.ev(node.value)
        self.bind(node.target, value)
        return value

    def await_(self, node: Any) -> Value:
        return self.ev(node.value)

    def yield_(self, node: Any) -> Value:
        if node.value is not None:
            self.unit.returns.append(container("iter", self.ev(node.value)))
        return UNKNOWN_VALUE

    def yield_from(self, node: Any) -> Value:
        self.unit.returns.append(container("iter", element_of(self.ev(node.value))))
        return UNKNOWN_VALUE

    def slice_(self, node: Any) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.ev(part)
        return NOT_TENSOR


def joins_lists(node: Any, left: Value, right: Value) -> bool:
    """Return whether ``+`` or ``*`` here builds a list or tuple: no tensor library adds a tensor to a Python list."""
    sides = (form_of(left), form_of(right))
    if isinstance(node.op, ast.Add):
        return "list" in sides or "tuple" in sides or "shape" in sides
    return isinstance(node.op, ast.Mult) and sides[0] in ("list", "tuple") and right.kind != TENSOR


def _constant_index(node: Any) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and type(node.operand.value) is int
    ):
        return -node.operand.value
    return None


def _note_place(node: Any, around: Any) -> None:
    """Leave on a syntax node what it is part of."""
    node.up = around

"""Execute statements abstractly: assignments, branches, loops, definitions and imports."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ember_ml.lint import hints, natives
from ember_ml.lint.unit import Unit
from ember_ml.lint.values import (
    NONE,
    NOT_TENSOR,
    OTHER,
    SEQUENCE,
    TENSOR,
    TENSOR_VALUE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Value,
    container,
    element_of,
    form_of,
    join,
    note_value,
    plain,
    ref,
)
from ember_ml.lint.walker import Walker


class StatementMixin(Walker):
    """The part of the walker that handles statements."""

    def block(self, body: list[ast.stmt]) -> bool:
        """Execute statements; True if the end cannot be reached."""
        table = self.statements
        done = False
        for statement in body:
            handler = table.get(statement.__class__)
            if handler is not None and handler(statement):
                done = True
        return done

    def expr_stmt(self, node: Any) -> None:
        self.ev(node.value)

    def assign(self, node: Any) -> None:
        value = self.ev(node.value)
        for target in node.targets:
            self.bind(target, value)
        self.hook(node)

    def annassign(self, node: Any) -> None:
        value = self.ev(node.value) if node.value is not None else None
        declared = hints.read(node.annotation, self)
        if declared.kind == UNKNOWN and value is not None:
            declared = value
        if value is not None or isinstance(node.target, ast.Name):
            self.bind(node.target, declared)
        if (
            self.unit.class_name is not None
            and isinstance(self.unit.node, ast.ClassDef)
            and isinstance(node.target, ast.Name)
        ):
            self.facts.put(f"attr:{self.unit.class_name}:{node.target.id}", declared)
        self.hook(node)

    def augassign(self, node: Any) -> None:
        right = self.ev(node.value)
        target: Any = node.target
        if isinstance(target, ast.Name):
            left = self.name(target)
        elif isinstance(target, ast.Attribute):
            left = self.attribute(target)
        else:
            left = self.subscript(target)
        note_value(target, left)
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

    def bind(self, target: Any, value: Value) -> None:
        """Store a value in a target."""
        if isinstance(target, ast.Name):
            self.env[target.id] = value
            note_value(target, value)
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
                self.facts.put(f"attr:{base.detail[1]}:{target.attr}", plain(value))
            note_value(target, value)
        elif isinstance(target, ast.Subscript):
            base = self.ev(target.value)
            self.ev(target.slice)
            self.add_to(target.value, base, value)
            note_value(target, value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, container("list", element_of(value)))

    def add_to(self, holder: Any, base: Value, value: Value) -> None:
        """Add a member to a container."""
        if form_of(base) not in ("list", "dict", "tuple") or value.kind == UNKNOWN:
            return
        form = "dict" if form_of(base) == "dict" else "list"
        present = base.detail[1] if form_of(base) != "tuple" else element_of(base)
        grown = container(form, value if present == UNKNOWN_VALUE else join(present, value))
        if isinstance(holder, ast.Name):
            for scope in reversed(self.scopes):
                if holder.id in scope:
                    scope[holder.id] = grown
                    return
        elif isinstance(holder, ast.Attribute):
            owner = getattr(holder.value, "ev", UNKNOWN_VALUE)
            if form_of(owner) == "inst":
                self.facts.put(f"attr:{owner.detail[1]}:{holder.attr}", grown)

    def return_(self, node: Any) -> bool:
        if node.value is not None:
            self.unit.returns.append(self.ev(node.value))
        else:
            self.unit.returns.append(NONE)
        self.hook(node)
        return True

    def raise_(self, node: Any) -> bool:
        if node.exc is not None:
            self.ev(node.exc)
        if node.cause is not None:
            self.ev(node.cause)
        return True

    def stop(self, node: Any) -> bool:
        return True

    def assert_(self, node: Any) -> None:
        self.ev(node.test)
        if node.msg is not None:
            self.ev(node.msg)
        self.hook(node)
        self.env.update(self.narrowing(node.test, True) or {})

    def delete(self, node: Any) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.ev(target)

    def if_(self, node: Any) -> bool:
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

    def for_(self, node: Any) -> None:
        iterated = self.ev(node.iter)
        self.bind(node.target, element_of(iterated))
        self.hook(node)
        self._loop(node.body, lambda: self.bind(node.target, element_of(iterated)))
        self.block(node.orelse)

    def while_(self, node: Any) -> None:
        self.ev(node.test)
        self.hook(node)
        self._loop(node.body, lambda: self.ev(node.test))
        self.block(node.orelse)

    def _loop(self, body: list[ast.stmt], again: Callable[[], object]) -> None:
        before = self.env.copy()
        self.block(body)
        joined = _merge(before, self.env)
        self._switch(joined)
        if any(joined[key] is not value and joined[key].kind != value.kind for key, value in before.items()):
            again()
            self.block(body)
            self._switch(_merge(joined, self.env))

    def with_(self, node: Any) -> None:
        guarded = False
        for item in node.items:
            value = self.ev(item.context_expr)
            name = self.dotted(item.context_expr.func) if isinstance(item.context_expr, ast.Call) else None
            if (name is not None and name.endswith((".raises", ".suppress", ".assertRaises"))) or (
                isinstance(item.context_expr, ast.Call)
                and getattr(item.context_expr.func, "attr", "")
                in (
                    "raises",
                    "assertRaises",
                    "suppress",
                )
            ):
                guarded = True
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value if form_of(value) == "inst" else UNKNOWN_VALUE)
        self.hook(node)
        self.guards += guarded
        self.block(node.body)
        self.guards -= guarded

    def try_(self, node: Any) -> bool:
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

    def match_(self, node: Any) -> None:
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

    def function(self, node: Any) -> None:
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

    def class_(self, node: Any) -> None:
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

    def import_(self, node: Any) -> None:
        for alias in node.names:
            if alias.asname:
                self.env[alias.asname] = ref(alias.name)
                self._alias(alias.asname, alias.name)
            else:
                root = alias.name.split(".", 1)[0]
                self.env[root] = ref(root)
        self.hook(node)

    def import_from(self, node: Any) -> None:
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


def _form(node: Any) -> str:
    for decorator in node.decorator_list:
        name = getattr(decorator, "attr", None) or getattr(decorator, "id", None)
        if name in ("property", "cached_property"):
            return "property"
        if name == "staticmethod":
            return "static"
    return "plain"


def _catches_type_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(
        getattr(part, "id", None) in ("TypeError", "Exception", "BaseException") for part in ast.walk(handler.type)
    )

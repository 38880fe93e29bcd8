"""Evaluate calls: their results, and what they imply about the function and its arguments."""

from __future__ import annotations

import ast
from typing import Any

from ember_ml.lint import natives, opnames
from ember_ml.lint.tables import words
from ember_ml.lint.values import (
    NONE,
    NOT_TENSOR,
    NUMBER,
    OTHER,
    PORTABLE,
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
from ember_ml.lint.walker import Walker

_NUMBERS = frozenset(
    {
        "len",
        "int",
        "float",
        "bool",
        "complex",
        "hash",
        "id",
        "ord",
        "isinstance",
        "issubclass",
        "hasattr",
        "callable",
        "any",
        "all",
    }
)
_PLAIN = frozenset(
    {
        "str",
        "repr",
        "format",
        "print",
        "range",
        "type",
        "open",
        "bytes",
        "object",
        "slice",
        "chr",
        "hex",
        "bin",
        "input",
        "dir",
        "vars",
        "bytearray",
    }
)
_TRAINING = words("evaluate fit fit_generator partial_fit save score train")
"""Methods of trainers and estimators that take tensors and return a history, the object itself, or numbers."""
_PASSING = frozenset({"list", "tuple", "reversed", "sorted", "iter", "set", "frozenset"})


class CallMixin(Walker):
    """The part of the walker that handles calls."""

    def call(self, node: Any) -> Value:
        func: Any = node.func
        func.up = node
        callee = self.ev(func)
        args: list[Value] = []
        starred = False
        for arg in node.args:
            arg.up = node
            if isinstance(arg, ast.Starred):
                starred = True
            args.append(self.ev(arg))
        keywords = {keyword.arg: self.ev(keyword.value) for keyword in node.keywords}
        detail = callee.detail
        if callee.kind == OTHER and type(detail) is tuple:
            form = detail[0]
            if form == "ref":
                return self.call_ref(detail[1], node, args, keywords, starred)
            if form == "bound":
                if detail[1].rsplit(".", 1)[-1] in self.profile.tensor_methods:
                    self.call_function(detail[1], args, keywords, starred)
                    return TENSOR_VALUE
                return self.call_function(detail[1], args, keywords, starred)
            if form == "inst":
                return self.call_instance(detail[1], args, keywords, starred)
            if form == "lambda":
                return detail[1]
        if isinstance(func, ast.Attribute):
            owner: Any = func.value
            return self.call_method(node, func, owner.ev, args, keywords)
        return UNKNOWN_VALUE

    def call_ref(self, name: str, node: Any, args: list[Value], keywords: dict, starred: bool) -> Value:
        """Evaluate a call of something known by its dotted name."""
        if name.startswith("builtins."):
            return self.call_builtin(name[9:], node, args)
        if name in self.profile.tensor_types:
            return PORTABLE if name.endswith(".EmberTensor") else TENSOR_VALUE
        if (
            not args
            and not keywords
            and name.rsplit(".", 1)[-1] in natives.BACKEND_FUNCTIONS
            and name != "builtins.backend"
        ):
            return Value(OTHER, ("backend",))
        op = self.profile.op(name)
        if op is None and natives.library_of(name) is None:
            canonical = self.facts.canonical(name)
            if canonical != name:
                op = self.profile.op(canonical)
                name = canonical
        if op is not None:
            return self.call_op(op, node, args, keywords, starred)
        if natives.library_of(name):
            return self.call_native(name, args, keywords)
        last = name.rsplit(".", 1)[-1]
        if last in self.profile.namespace_functions:
            return ref("@xp")
        if (
            name in ("importlib.import_module",)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            return ref(node.args[0].value)
        if name in self.profile.tensor_types:
            return PORTABLE if name.endswith(".EmberTensor") else TENSOR_VALUE
        known = self.facts.read("def:" + name)
        if known is None:
            return self.call_outside(name, args)
        if known[0] == "class":
            self.pass_arguments(f"{name}.__init__", args, keywords, starred)
            init = self.find_member(name, "__init__")
            if init is not None and form_of(init) == "ref" and init.detail[1] != f"{name}.__init__":
                self.pass_arguments(init.detail[1], args, keywords, starred)
            return Value(OTHER, ("inst", name))
        if (
            known[1] != "static"
            and self.facts.read("def:" + name.rpartition(".")[0]) is not None
            and known[0] == "func"
        ):
            owner = self.facts.read("def:" + name.rpartition(".")[0])
            if owner[0] == "class" and args:  # Class.method(self, ...)
                return self.call_function(name, args[1:], keywords, starred)
        return self.call_function(name, args, keywords, starred)

    def call_op(self, op: str, node: Any, args: list[Value], keywords: dict, starred: bool) -> Value:
        """Evaluate a call of an op of the profile."""
        if not starred and args and not self.module.is_test:
            if op in opnames.STRONG_FIRST:
                self.refine(args[0])
            if op in opnames.STRONG_SECOND and len(args) > 1:
                self.refine(args[1])
            if op in opnames.BINARY and len(args) == 2:
                self.refine_mixed(args)
        profile = self.profile
        if op in profile.returns_tensors:
            return container("list", TENSOR_VALUE)
        if op in profile.returns_tensor:
            dtype = self.written_dtype(op, node, args, keywords)
            return TENSOR_VALUE if dtype is None else Value(TENSOR, dtype)
        if op in ("shape", "broadcast_shapes"):
            return SHAPE
        if op in ("ndim", "size", "item", "seed"):
            return NUMBER
        if op in profile.returns_other:
            return NOT_TENSOR
        return UNKNOWN_VALUE

    def refine_mixed(self, args: list[Value]) -> None:
        """Take three plain parameters in ``ops.multiply(a + b, c)`` for tensors: ops on numbers are pointless."""
        for one, other in (args, args[::-1]):
            if one.kind == UNKNOWN == other.kind and form_of(one) == "node" and form_of(other) == "param":
                operation = one.detail[1]
                if all(
                    form_of(side.ev) == "param" and side.ev.kind == UNKNOWN
                    for side in (operation.left, operation.right)
                ):
                    self.unit.demanded.add(id(operation))

    def written_dtype(self, op: str, node: Any, args: list[Value], keywords: dict) -> str | None:
        """Return the dtype a creation, cast or dtype-keeping op was given, if it can be read off."""
        place = next((k.value for k in node.keywords if k.arg == "dtype"), None)
        if place is None and op in ("cast", "astype") and len(node.args) > 1:
            place = node.args[1]
        if place is not None:
            if isinstance(place, ast.Constant) and isinstance(place.value, str):
                return place.value if place.value in opnames.DTYPES else None
            dotted = self.dotted(place)
            last = dotted.rsplit(".", 1)[-1] if dotted else ""
            return last if last in opnames.DTYPES else None
        if op in _KEEPS_DTYPE and args and args[0].kind == TENSOR and args[0].detail != "like":
            return args[0].detail
        return None

    def call_native(self, name: str, args: list[Value], keywords: dict) -> Value:
        """Evaluate a call into a tensor library."""
        if natives.library_of(name) in self.module.allowed:
            return NOT_TENSOR
        last = name.rsplit(".", 1)[-1]
        if last in natives.NOT_TENSOR_FUNCTIONS:
            return SHAPE if last == "shape" else NUMBER
        if name.startswith("torch.nn.functional.") or name in natives.TENSOR_TYPES:
            return TENSOR_VALUE
        if name.startswith(natives.NOT_TENSOR_MODULES):
            return Value(OTHER, ("native", name))
        if last in natives.SEQUENCE_FUNCTIONS:
            return TENSOR_LIST
        if last in natives.DTYPE_NAMES:
            return TENSOR_VALUE if any(a.kind == TENSOR for a in args) else NUMBER
        if last[:1].isupper() or last.startswith("set_"):
            return UNKNOWN_VALUE
        if name in natives.DEVICE_NAMES:
            return UNKNOWN_VALUE
        if name.startswith("numpy.") and last not in natives.NUMPY_CREATION and not name.startswith("numpy.random."):
            given = (*args, *keywords.values())
            if all(a.kind < SEQUENCE for a in given):  # np.prod(shape) and np.sqrt(2) are numbers, not arrays
                return NUMBER if args and all(a.kind == OTHER for a in args) else UNKNOWN_VALUE
        if (
            name in ("numpy.array", "numpy.asarray")
            and args
            and form_of(args[0]) == "list"
            and element_of(args[0]).kind == OTHER
            and form_of(element_of(args[0])) == "number"
        ):
            return Value(TENSOR, "vector")
        return TENSOR_VALUE

    def call_outside(self, name: str, args: list[Value]) -> Value:
        """Evaluate a call of something that is neither of the project nor of a tensor library."""
        root, _, last = name.rpartition(".")
        if root == "math":
            return NUMBER
        if root in ("copy",) and args:
            return args[0]
        if root in ("functools", "itertools") and last == "reduce" and len(args) > 1:
            return element_of(args[1])
        if last[:1].isupper():
            if self.is_layer(name):
                return Value(OTHER, ("inst", name))
            return Value(OTHER, ("inst", name)) if root else UNKNOWN_VALUE
        return UNKNOWN_VALUE

    def call_function(self, name: str, args: list[Value], keywords: dict, starred: bool) -> Value:
        """Evaluate a call of a function of the project: note its arguments, look up its result."""
        self.pass_arguments(name, args, keywords, starred)
        return self.facts.read("ret:" + name) or UNKNOWN_VALUE

    def pass_arguments(self, name: str, args: list[Value], keywords: dict, starred: bool) -> None:
        """Note the arguments that a function is called with."""
        put = self.facts.put
        if not starred:
            for index, value in enumerate(args):
                if value.kind != UNKNOWN or value.detail == ("mixed",):
                    put(f"par:{name}:{index}", value)
        for key, value in keywords.items():
            if key is not None and (value.kind != UNKNOWN or value.detail == ("mixed",)):
                put(f"par:{name}:{key}", value)

    def call_instance(self, class_name: str, args: list[Value], keywords: dict, starred: bool) -> Value:
        """Evaluate a call of an object: its ``__call__``, or the forward method of a layer."""
        for method in ("__call__", *self.profile.forward_methods):
            found = self.find_member(class_name, method)
            if found is not None and form_of(found) == "ref":
                result = self.call_function(found.detail[1], args, keywords, starred)
                if result.kind >= SEQUENCE:
                    return result
        if args and args[0].kind == TENSOR and self.is_layer(class_name):
            return TENSOR_VALUE
        return UNKNOWN_VALUE

    def call_method(self, node: Any, func: Any, owner: Value, args: list[Value], keywords: dict) -> Value:
        """Evaluate a method call on a value that is neither a module nor an instance of a known class."""
        method = func.attr
        kind = owner.kind
        if kind == TENSOR:
            if owner.detail == "portable" and method not in natives.METHODS_OTHER:
                return TENSOR_LIST if method in natives.METHODS_SEQUENCE else owner
            if method in natives.METHODS_OTHER:
                return SHAPE if method in ("size", "stride") and not args else NUMBER
            return TENSOR_LIST if method in natives.METHODS_SEQUENCE else TENSOR_VALUE
        form = form_of(owner)
        if form in ("list", "tuple", "dict", "iter"):
            return self.call_container_method(func, owner, method, args)
        if form == "text":
            return NOT_TENSOR
        if form == "inst" and method in self.profile.tensor_methods:
            return TENSOR_VALUE
        if kind == UNKNOWN:
            if method in natives.UNMISTAKABLE_METHODS:
                self.refine(owner)
                return TENSOR_VALUE
            detail = owner.detail
            if detail is not None and detail[0] == "node" and method in _REDUCTIONS:
                self.refine(owner)
                return TENSOR_VALUE
        if method in self.profile.tensor_methods:
            return TENSOR_VALUE
        if method in ("keys", "format", "join", "startswith", "endswith", "strip", "lower", "upper"):
            return NOT_TENSOR
        # self.activation(x): an attribute that holds a function of tensors
        if args and args[0].kind == TENSOR and isinstance(func.value, ast.Name) and form_of(owner) == "inst":
            return UNKNOWN_VALUE if method in _TRAINING else TENSOR_VALUE
        return UNKNOWN_VALUE

    def call_container_method(self, func: Any, owner: Value, method: str, args: list[Value]) -> Value:
        """Evaluate a method call on a list, tuple, dict or iterator."""
        form = form_of(owner)
        if method in ("append", "insert", "add", "appendleft") and args:
            self.add_to(func.value, owner, args[-1])
            return NONE
        if method == "extend" and args:
            self.add_to(func.value, owner, element_of(args[0]))
            return NONE
        if form == "dict":
            content = owner.detail[1]
            if method == "items":
                return container("iter", container("tuple", (NOT_TENSOR, content)))
            if method == "values":
                return container("iter", content)
            if method in ("get", "pop", "setdefault"):
                return content
            return owner if method == "copy" else NOT_TENSOR
        if method in ("pop", "popleft"):
            return element_of(owner)
        if method in ("index", "count"):
            return NUMBER
        return owner if method == "copy" else UNKNOWN_VALUE

    def call_builtin(self, name: str, node: Any, args: list[Value]) -> Value:
        """Evaluate a call of one of Python's own functions."""
        if name in _NUMBERS:
            return NUMBER
        if name in _PASSING:
            return container("list", element_of(args[0])) if args else Value(OTHER, ("list", UNKNOWN_VALUE))
        if name in ("abs", "round", "pow"):
            return args[0] if args else UNKNOWN_VALUE
        if name == "sum":
            element = element_of(args[0]) if args else UNKNOWN_VALUE
            return TENSOR_VALUE if element.kind == TENSOR else NUMBER if element.kind == OTHER else UNKNOWN_VALUE
        if name in ("max", "min"):
            candidates = [element_of(args[0])] if len(args) == 1 else args
            return join_all(candidates)
        if name == "zip":
            return container("iter", container("tuple", tuple(element_of(a) for a in args)))
        if name == "enumerate":
            return container("iter", container("tuple", (NUMBER, element_of(args[0]) if args else UNKNOWN_VALUE)))
        if name == "map":
            return self.call_map(node, args)
        if name == "filter":
            return container("iter", element_of(args[1])) if len(args) > 1 else UNKNOWN_VALUE
        if name == "dict":
            return (
                container("dict", join_all(k.value.ev for k in node.keywords))
                if node.keywords
                else Value(OTHER, ("dict", UNKNOWN_VALUE))
            )
        if name == "next":
            return element_of(args[0]) if args else UNKNOWN_VALUE
        if name == "super":
            return self.call_super()
        if name == "getattr":
            return join(args[2], UNKNOWN_VALUE) if len(args) > 2 and args[2].kind == TENSOR else UNKNOWN_VALUE
        if (
            name == "__import__"
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            return ref(node.args[0].value)
        if name == "range":
            return container("iter", NUMBER)
        if name in ("str", "repr", "format"):
            return Value(OTHER, ("text", None))
        return NOT_TENSOR if name in _PLAIN else UNKNOWN_VALUE

    def call_map(self, node: Any, args: list[Value]) -> Value:
        """Evaluate ``map(f, xs)``: the results of f."""
        if len(args) < 2:
            return UNKNOWN_VALUE
        func, elements = args[0], [element_of(a) for a in args[1:]]
        if form_of(func) == "ref":
            return container(
                "iter",
                self.call_ref(func.detail[1], ast.Call(func=node.args[0], args=[], keywords=[]), elements, {}, True),
            )
        if form_of(func) == "lambda":
            return container("iter", func.detail[1])
        return UNKNOWN_VALUE

    def call_super(self) -> Value:
        """Evaluate ``super()``: an instance of the first base."""
        unit = self.unit
        while unit is not None and unit.class_name is None:
            unit = unit.parent
        if unit is None or unit.class_name is None:
            return UNKNOWN_VALUE
        known = self.facts.read("def:" + unit.class_name)
        if known is not None and known[0] == "class" and known[1]:
            return Value(OTHER, ("inst", self.facts.canonical(known[1][0])))
        return UNKNOWN_VALUE


_REDUCTIONS = words(
    "mean sum std var max min argmax argmin reshape astype flatten squeeze transpose any all item tolist"
)
_KEEPS_DTYPE = words(
    """
    reshape transpose expand_dims squeeze ravel flatten flip roll tile repeat pad relu exp sin cos tanh sqrt square abs
    negative zeros_like ones_like softmax sigmoid take copy convert_to_tensor
    """
)

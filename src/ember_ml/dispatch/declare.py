"""Declaring ops: each one once, with its signature, its meaning, its dtype rule.

``@primitive(rule)`` declares an op for which every backend brings a body. ``@derived(rule)`` declares one whose body,
written on other ops, serves every backend that has nothing better. What is public is one function object per op, for
good: a switch of the backend changes the code inside it, so that no reference to it can be stale.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast

from ember_ml.backend.contract import Backend, ByDType, TapeBackend
from ember_ml.backend.loading import on_load
from ember_ml.dispatch.dtype_rules import KEEP, Rule
from ember_ml.errors import BrokenBackend, UnsupportedOp
from ember_ml.tensor.in_place import RULES, ViewRule, link_view

__all__ = [
    "DATA",
    "DEVICE",
    "DTYPE",
    "INDEX",
    "INDICES",
    "KEY",
    "MASK",
    "MASKS",
    "OPS",
    "SEQUENCE",
    "TENSOR",
    "VALUE",
    "Op",
    "adapt_bodies_with",
    "derived",
    "gradient",
    "plain",
    "primitive",
    "read_names",
    "view",
    "views",
]

F = TypeVar("F", bound=Callable[..., Any])

# The roles of parameters that dispatch prepares; all others reach the body as they are.
TENSOR, SEQUENCE, INDEX, MASK, DTYPE, DEVICE = "tensor", "sequence", "index", "mask", "dtype", "device"
KEY, VALUE, DATA, MASKS, INDICES = "key", "value", "data", "masks", "indices"
_ROLES = {
    "TensorLike": TENSOR,
    "Sequence[TensorLike]": SEQUENCE,
    "IndexLike": INDEX,
    "Sequence[IndexLike]": INDICES,
    "MaskLike": MASK,
    "Sequence[MaskLike]": MASKS,
    "DTypeLike": DTYPE,
    "DeviceLike": DEVICE,
    "KeyLike": KEY,
    "ValueLike": VALUE,
    "DataLike": DATA,
}
_ROLES |= {f"{annotation} | None": role for annotation, role in _ROLES.items()}

OPS: dict[str, Op] = {}
"""Every declared op by name."""


class Op:
    """One declared op: what dispatch, the tests, the inventory and the reference pages know of it."""

    __slots__ = (
        "aliases",
        "bodies",
        "codes",
        "declaration",
        "derived",
        "family",
        "function",
        "gives_constants",
        "gradients",
        "is_holomorphic",
        "is_plain",
        "is_plain_group",
        "link_views",
        "name",
        "namespace",
        "parameters",
        "roles",
        "rule",
        "settled",
        "view_rule",
    )

    name: str
    family: str
    declaration: FunctionType
    rule: Rule
    derived: bool
    is_plain: bool
    is_plain_group: bool
    aliases: tuple[str, ...]
    parameters: tuple[str, ...]
    roles: tuple[tuple[int, str], ...]
    function: FunctionType
    gradients: dict[str, Callable[..., Any] | None]
    gives_constants: bool
    """Whether the gradient rules are those of the first result, and the other results are constants."""
    is_holomorphic: bool
    bodies: dict[Any, ByDType | Callable[..., Any]]
    codes: dict[str, CodeType]
    """What :mod:`ember_ml.dispatch.codegen` made for each backend by name, and for none."""
    settled: dict[Any, dict[Any, Any]]
    view_rule: ViewRule | None
    """How the result shows elements of the first argument, for ops whose result always may."""
    link_views: Callable[[tuple[Any, ...], Any], None] | None
    """Links a portable result to the arguments that it shows elements of."""
    namespace: dict[str, Any]

    def __init__(self, declaration: FunctionType, rule: Rule, is_derived: bool, aliases: tuple[str, ...]) -> None:
        self.name = declaration.__name__
        self.family = declaration.__module__.rsplit(".", 1)[-1]
        self.declaration = declaration
        self.rule = rule
        self.derived = is_derived
        self.is_plain = False
        self.aliases = aliases
        code = declaration.__code__
        names, first, last = code.co_varnames, code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        starred = names[last : last + 1] if code.co_flags & inspect.CO_VARARGS else ()
        if is_derived and last + len(starred) > first:
            raise TypeError(f"the derived op {self.name} is called with positional arguments, one for each parameter")
        self.parameters = (*names[:first], *starred, *names[first:last])
        if "_" in [parameter[0] for parameter in self.parameters]:
            raise TypeError(f"the op {self.name}: names that begin with an underscore are those of generated code")
        annotations = declaration.__annotations__
        roles = [_ROLES.get(annotations.get(parameter, "")) for parameter in self.parameters]
        if starred and roles[first]:
            roles[first] = SEQUENCE
        self.roles = tuple([(index, role) for index, role in enumerate(roles) if role])
        self.is_plain_group = rule.promotes and not rule.by_value and {role for _, role in self.roles} == {TENSOR}
        self.gradients, self.is_holomorphic, self.gives_constants = {}, True, False
        self.settled = {}
        self.view_rule = self.link_views = None
        self.bodies, self.codes = {}, {}
        # "_ON" has the op's function for each backend of which a scope was opened; torch.compile asks for the builtins
        self.namespace = {"_OP": self, "_ON": {}, "__builtins__": __builtins__}
        self.function = FunctionType(_start.__code__, self.namespace, self.name, declaration.__defaults__)
        # what functools.update_wrapper would do, at a fifth of its cost: an import makes hundreds of ops
        made: Any = self.function
        made.__kwdefaults__, made.__module__ = declaration.__kwdefaults__, declaration.__module__
        made.__qualname__, made.__doc__ = declaration.__qualname__, declaration.__doc__
        made.__annotations__, made.__wrapped__ = annotations, declaration

    @classmethod
    def of_plain(cls, function: Any, family: str | None = None) -> Op:
        """The entry of a public function or class that computes no tensors: it is what it is on every backend."""
        op = cls(_signed_part(function), KEEP, False, ())
        op.name, op.declaration, op.function = function.__name__, function, function
        op.is_plain, op.roles, op.is_plain_group, op.family = True, (), False, family or op.family
        return op

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.declaration)

    def body(self, backend: Backend) -> ByDType | Callable[..., Any]:
        """The backend's body; the derived one where it has none; one that raises where there is neither."""
        key = backend.key
        found = self.bodies.get(key)
        if found is None:
            found = self.declaration if self.is_plain else self._find(backend)
            if not backend.is_tracing():
                self.bodies[key] = found
        return found

    def has_own_body(self, backend: Backend) -> bool:
        """Whether the backend itself brings a body, rather than inheriting the derived one or lacking it."""
        return any(self.name in vars(family) for family in self._places(backend))

    def _places(self, backend: Backend) -> list[Any]:
        """The backend's module named like this op's family; all of its modules where none is so named."""
        named = [family for family in backend.families if family.__name__.rpartition(".")[2] == self.family]
        return named or list(backend.families)

    def _find(self, backend: Backend) -> ByDType | Callable[..., Any]:
        if backend.is_tape:
            return cast(TapeBackend, backend).body(self)
        found = next((vars(family)[self.name] for family in self._places(backend) if self.name in vars(family)), None)
        if found is None:
            found = self.declaration if self.derived else _missing(self.name, backend.name)
        return _adapt_body(self, found, backend)

    def has_no_gradient(self) -> bool:
        """Whether the op takes and gives floats, and no rule nor a body on other ops says how it is differentiated."""
        takes_floats = any(role is TENSOR for _, role in self.roles) and any(
            d.kind == "float" for d in self.rule.domain
        )
        return takes_floats and not self.derived and not self.gradients and self.rule.result not in ("bool", "int64")


def _signed_part(function: Any) -> Any:
    """What has the signature: of a class, its constructor."""
    return vars(function)["__init__"] if isinstance(function, type) else function


def _missing(op: str, backend: str) -> Callable[..., Any]:
    def body(*args: Any) -> Any:
        raise UnsupportedOp(
            f"ops.{op} has no body on the backend {backend!r}; switch with ember_ml.use_backend(...), "
            "and see `ember-ml ops --gaps` for what each backend lacks"
        )

    return body


def _start(*args: Any, **kwargs: Any) -> Any:
    """Choose a backend: the code of every op until then."""
    from ember_ml.dispatch.install import start_op

    return start_op(_OP)(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


def _adapt_body(op: Op, body: ByDType | Callable[..., Any], backend: Backend, /) -> ByDType | Callable[..., Any]:
    """Return ``body`` as the backend's own engine of gradients needs it; autodiff brings what does that."""
    return body


def adapt_bodies_with(function: Callable[[Op, Any, Any], Any]) -> None:
    """Let ``function`` of an op, its body and the backend return the body that runs there."""
    global _adapt_body
    _adapt_body = function


def _declare(rule: Rule, is_derived: bool, aliases: tuple[str, ...]) -> Callable[[F], F]:
    def register(declaration: F) -> F:
        op = Op(declaration, rule, is_derived, aliases)
        if op.name in OPS:
            raise ValueError(f"the op {op.name} is declared twice")
        OPS[op.name] = op
        return op.function  # type: ignore[return-value]

    return register


def primitive(rule: Rule, *aliases: str) -> Callable[[F], F]:
    """Declare an op for which every backend brings a body."""
    return _declare(rule, False, aliases)


def derived(rule: Rule, *aliases: str) -> Callable[[F], F]:
    """Declare an op whose body, written on other ops, serves any backend that has nothing better."""
    return _declare(rule, True, aliases)


def plain(function: F, family: str | None = None) -> F:
    """List a public function that computes no tensors (it gives facts, host data, settings); it stays as it is.

    A class may be listed too. ``family`` is that of the file unless said otherwise.
    """
    if function.__name__ in OPS:
        raise ValueError(f"the op {function.__name__} is declared twice")
    OPS[function.__name__] = Op.of_plain(function, family)
    return function


def gradient(
    function: Callable[..., Any],
    *,
    holomorphic: bool = True,
    constants: bool = False,
    **rules: Callable[..., Any] | None,
) -> None:
    """Say how an op is differentiated: for each tensor parameter a rule, or None where the gradient is zero everywhere.

    A rule takes the gradient of the result, then whatever it reads, by name: arguments of the op, ``r`` for the result.
    What no rule names is not kept in memory; of what is named with a leading underscore (``_x``, ``_r``) the rule gets
    ``shape`` and ``dtype`` alone. A rule is written on ops and returns the gradient of its parameter, of the broadcast
    shape at will; for several results it gets a list of gradients, for a parameter that is a list of tensors it returns
    a list. With ``constants`` only the first of several results is differentiated, and ``r`` is that one. Where numbers
    are complex, a rule of a ``holomorphic`` op gets the conjugates, so that the rule for real numbers is right for them
    too.
    """
    op = OPS[function.__name__]
    unknown = set(rules) - set(op.parameters)
    if unknown:
        raise ValueError(f"ops.{op.name} has no parameter {', '.join(sorted(unknown))} to differentiate")
    for rule in filter(None, rules.values()):
        strangers = {name.removeprefix("_") for name in read_names(rule, 1)} - {"r", *op.parameters}
        if strangers:
            raise TypeError(f"a gradient rule of ops.{op.name} reads {', '.join(sorted(strangers))}, which it has not")
    op.gradients, op.is_holomorphic, op.gives_constants = dict(rules), holomorphic, constants


def read_names(rule: Callable[..., Any], first: int) -> tuple[str, ...]:
    """Return the names of what a gradient rule reads: its parameters from ``first`` on."""
    code = rule.__code__
    return code.co_varnames[first : code.co_argcount]


def view(
    function: Callable[..., Any],
    write: Callable[..., Any] | None,
    *,
    keeps_elements: bool = True,
    may_copy: bool = False,
) -> None:
    """Say that an op's result is a view of its first argument, and how it is changed through that view.

    ``write`` gets the new value of the view, the value of the argument, and the op's other arguments; it is written on
    ops and returns the new value of the argument. It is None where the view must not be changed.
    """
    op = OPS[function.__name__]
    rule = op.view_rule = RULES[op.name] = ViewRule(op.name, op.function, write, keeps_elements, may_copy)
    op.link_views = lambda args, result: link_view(args[0], rule, args[1:], result)


def views(function: Callable[..., Any], link: Callable[[tuple[Any, ...], Any], None]) -> None:
    """Say how the results of an op are linked to its arguments, where :func:`view` does not describe it."""
    OPS[function.__name__].link_views = link


def check_bodies(backend: Backend) -> None:
    """Raise ``BrokenBackend`` for a function that is named nearly like an op which the backend lacks."""
    names = {name for family in backend.families for name in vars(family)}
    lacking = [op.name for op in OPS.values() if not op.is_plain and op.name not in names]
    if not any(not OPS[name].derived for name in lacking):  # nothing that every backend must bring
        return
    from difflib import get_close_matches  # slow to import

    for family in backend.families:
        for name, body in vars(family).items():
            if name in OPS or name.startswith("_") or not isinstance(body, FunctionType):
                continue
            close = get_close_matches(name, lacking, 1, 0.85)
            if close and body.__module__ == family.__name__:
                raise BrokenBackend(
                    f"the backend {backend.name!r} has a body {family.__name__}.{name}, and there is no such op: "
                    f"name it {close[0]} if that is meant, or _{name} if it is a helper"
                )


on_load(check_bodies)

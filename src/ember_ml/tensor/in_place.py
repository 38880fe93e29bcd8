"""Views, and changes in place: a change of a tensor shows in every tensor that shares elements with it.

No native tensor is ever written to: the caller's own arrays never change, what was recorded for gradients stays valid,
and libraries with immutable tensors behave like the others. A view knows the tensor it was made of (its source), and
how its elements are read from there and written back; a source knows its living views by weak references. A change
computes the new value of the tensor, writes it back from source to source up to a tensor that is not a view, and reads
every other living view of those again.

``_views`` of a tensor is None until a view of it is made. It is then a weak reference to that view, or a list of such
references once there were several at a time. Of a view it is the empty tuple, or the list of references to its own
views. Where it is a tuple or a list, ``_base`` is set: None, or the source, the rule, and the arguments of the op.
PyTorch's compiler cannot follow weak references: a list of views takes their place while ``ops.compile`` traces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from ember_ml.backend.common.indexing import are_disjoint
from ember_ml.backend.common.strides import Layout, describe, outline, positions, trace
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import is_active, use_backend
from ember_ml.tensor.kinds import Kind, kind_of
from ember_ml.tensor.var import Var

__all__ = [
    "RULES",
    "ViewRule",
    "change",
    "end_trace",
    "freeze",
    "is_part",
    "is_shared",
    "is_view",
    "link",
    "link_view",
    "start_trace",
]

_DEEPEST = 8
"""As many views of views of a tensor there are before one is linked to that tensor itself: sources are kept alive."""
_FEWEST = 16
"""References to dead views are removed when there are this many in a list, and each time it has doubled."""


class ViewRule:
    """How the result of an op shows elements of its first argument.

    ``read`` is the op on native tensors. ``write`` takes the new value of the view, the value of its source and the
    other arguments of the op, and returns the new value of the source; it is None where several elements of the view
    may be one element of the source. ``keeps_elements`` says that the result consists of whole elements of the source.
    ``decided`` is set for ops whose result is a view only where the strides allow it: the rule to use where they do.
    """

    __slots__ = ("decided", "keeps_elements", "name", "read", "write")

    decided: ViewRule | None
    keeps_elements: bool
    name: str
    read: Callable[..., Any]
    write: Callable[..., Any] | None

    def __init__(
        self,
        name: str,
        read: Callable[..., Any],
        write: Callable[..., Any] | None,
        keeps_elements: bool = True,
        may_copy: bool = False,
    ) -> None:
        self.name, self.read, self.write, self.keeps_elements = name, read, write, keeps_elements
        self.decided = ViewRule(name, read, write, keeps_elements) if may_copy else None

    def __repr__(self) -> str:
        return f"<view rule {self.name}>"


RULES: dict[str, ViewRule] = {}
"""The rules of the ops that make views, by name; ``declare.view`` adds them."""

_FROZEN = frozenset({int, tuple, str, type(None)})
_traced: list[Any] | None = None  # the views made in the function that PyTorch's compiler traces now


def start_trace() -> None:
    """Keep the views of a function that PyTorch's compiler traces in a list, until ``end_trace``."""
    global _traced
    _traced = []


def end_trace() -> None:
    """Forget the views of the function that was traced; its results are tensors of their own."""
    global _traced
    _traced = None


# Making views


def link_view(source: Any, rule: ViewRule, args: tuple[Any, ...], view: Any) -> None:
    """Make ``view``, a fresh tensor, a view of ``source``, unless they are on two backends."""
    if type(source) is type(view) and source._kind.backend is view._kind.backend:
        view._base, view._views = (source, rule, *[freeze(arg) for arg in args]), ()
        link(source, view)


def freeze(value: Any) -> Any:
    """Return an argument such as a list of axes as what nobody can change."""
    return value if type(value) in _FROZEN or not hasattr(value, "__iter__") else tuple(value)


def link(source: Any, view: Any) -> None:
    """Register ``view``, whose ``_base`` is set, with its source."""
    compilation = source._kind.backend.compilation
    if compilation is not None and compilation.follows_python():
        if _traced is None:  # torch.compile was called directly
            compilation.run_uncompiled(link, source, view)
        else:
            _traced.append(view)
        return
    links = source._views
    if links is None or (type(links) is ref and links() is None):
        source._views = ref(view)
        return
    if type(links) is ref:
        source._views, source._base = [links, ref(view)], None
        return
    if type(links) is tuple:
        source._views = [ref(view)]
    else:
        _append(source._views, view)
    depth, above = 0, source
    while above is not None:
        base = _base_of(above)
        depth, above = depth + 1, None if base is None else base[0]
    if depth > _DEEPEST:
        _shorten(view)


def _append(links: list[Any], view: Any) -> None:
    links.append(ref(view))
    count = len(links)
    if count >= _FEWEST and not count & (count - 1):
        links[:] = [link for link in links if link() is not None]


def _base_of(tensor: Any) -> Any:
    links = tensor._views
    return tensor._base if type(links) is tuple or type(links) is list else None


def _shorten(view: Any) -> None:
    """Link a view of views directly to the tensor that they show, where all of them show whole elements."""
    chain = [view]
    while (source := _source(chain[-1])) is not None and chain[-1]._base[1].keeps_elements:
        chain.append(source)
    top = chain.pop()
    if (
        len(chain) < 2 or _source(top) is not None
    ):  # the parts of complex numbers, bytes, and what was broadcast lie in another order
        return
    whole = part = outline(top.shape, top.itemsize)
    for tensor in reversed(chain):
        part = _trace(tensor, part)
        assert part is not None  # a copy would have no source
    view._base = (top, _STRIDED, describe(part, whole))
    link(top, view)


def _trace(tensor: Any, array: Any) -> Any:
    """Apply the op that made a view to the outline of its source; None where that needs a copy."""
    source, rule, *args = tensor._base
    if rule.name == "real" and source.dtype.kind != "complex":
        return array
    return trace(rule.name, array, tensor.shape, tuple(args))


def _source(view: Any) -> Any:
    """The tensor that ``view`` shows elements of; None where it has elements of its own."""
    base = _base_of(view)
    if base is None:
        return None
    source, rule, *args = base
    if rule.decided is not None:  # not when the view is made: that shall cost those nothing who change nothing
        if _needs_copy(view):
            view._base = None
            return None
        # a shape that was given as a list may be another one by now
        view._base = (source, rule.decided, *((tuple(view._array.shape),) if rule.name == "reshape" else args))
    return source


def _needs_copy(view: Any) -> bool:
    source = view._base[0]
    if _source(source) is None:
        return False
    chain = [source]
    while (above := _source(chain[-1])) is not None:
        chain.append(above)
    top = chain.pop()
    array = outline(top.shape, top.itemsize)
    for tensor in (*reversed(chain), view):
        array = _trace(tensor, array)
        if array is None:
            return True
    return False


def _views_of(tensor: Any) -> list[Any]:
    """The living tensors that show elements of ``tensor`` and were made of it directly."""
    links = tensor._views
    found = [links()] if type(links) is ref else [link() for link in links] if type(links) is list else []
    if _traced is not None:
        found += _traced
    return [
        view
        for view in found
        if view is not None and _base_of(view) is not None and view._base[0] is tensor and _source(view) is not None
    ]


def is_view(tensor: Any) -> bool:
    """Whether a tensor shows elements of the one that it was made of."""
    return _source(tensor) is not None


def is_part(view: Any, source: Any, key: tuple[Any, ...] | None) -> bool:
    """Whether ``view`` shows the elements of ``source`` that a basic key selects, in their order."""
    base = _base_of(view)
    return base is not None and base[0] is source and base[1] is RULES["get_item"] and base[2] == key


# Changing tensors


def change(tensor: Any, array: Any, kind: Kind, what: str) -> None:
    """Let ``tensor`` and all that shares elements with it hold the new value ``array``, or raise and change nothing."""
    if _is_variable(tensor._array):
        raise _variable_error(what)
    if tensor._views is None and _traced is None:
        tensor._array, tensor._kind = array, kind
        return
    compilation = kind.backend.compilation
    if _traced is None and compilation is not None and compilation.follows_python():
        compilation.run_uncompiled(change, tensor, array, kind, what)
        return
    backend = array.tape.base if type(array) is Var else kind.backend
    if is_active(backend):
        changes = _propagate(tensor, array, backend, what)
    else:
        with use_backend(backend.name):  # rules are written on ops
            changes = _propagate(tensor, array, backend, what)
    tensor._array, tensor._kind = array, kind
    for other, value in changes:
        other._array, other._kind = value, kind_of(value.tape if type(value) is Var else backend, value)
    if type(tensor._views) is ref and tensor._views() is None:
        tensor._views = None


def _propagate(tensor: Any, array: Any, backend: Backend, what: str) -> list[tuple[Any, Any]]:
    """The other tensors that change with ``tensor``, each with its new native value."""
    changes: list[tuple[Any, Any]] = []
    _read_views(tensor, array, None, changes, what)
    while (source := _source(tensor)) is not None:
        _, rule, *args = tensor._base
        if rule.write is None:
            raise ValueError(
                f"{what} would change a tensor that was broadcast, in which one element shows in several places; "
                "copy it first: y = ops.copy(y)"
            )
        if _is_variable(source._array):
            raise _variable_error(what)
        array = rule.write(array, source._array, *args)
        changes.append((source, array))
        _read_views(source, array, tensor, changes, what)
        tensor = source
    return changes


def _read_views(source: Any, array: Any, done: Any, changes: list[tuple[Any, Any]], what: str) -> None:
    """Read the living views of ``source``, whose new value is ``array``, except ``done``, which changed first."""
    for view in _views_of(source):
        if view is done or (done is not None and _are_apart(view._base, done._base, source)):
            continue
        if _is_variable(view._array):
            raise _variable_error(what)
        _, rule, *args = view._base
        value = rule.read(array, *args)
        changes.append((view, value))
        _read_views(view, value, None, changes, what)


def _are_apart(one: Any, other: Any, source: Any) -> bool:
    """Whether two views, by their bases, certainly have no element in common."""
    return one[1].name == other[1].name == "get_item" and are_disjoint(one[2], other[2], source._array.shape)


def is_shared(tensor: Any) -> bool:
    """Whether a change of a tensor that has no ``_views`` is more than storing its new value, or forbidden."""
    return _traced is not None or _is_variable(tensor._array)


def _is_variable(array: Any) -> bool:
    """Whether gradients are asked for with respect to this one, which would be lost with it."""
    if type(array) is Var:
        return array.node is not None and array.node.op is None
    return getattr(array, "requires_grad", False) and array.is_leaf  # emberlint: ignore[EMB502] PyTorch


def _variable_error(what: str) -> RuntimeError:
    return RuntimeError(
        f"{what} would change a variable, and its gradient would be lost; make a new one: "
        "x = x.detach() - step; x.requires_grad = True"
    )


# Views that no op makes


def _flatten(source: Any) -> Any:
    return RULES["ravel"].read(source)


def _read_strided(source: Any, layout: Layout) -> Any:
    flat = _flatten(source)
    return RULES["get_item"].read(flat, (positions(layout, flat.shape[0]),))


def _write_strided(value: Any, source: Any, layout: Layout) -> Any:
    write, flat = RULES["get_item"].write, _flatten(source)
    assert write is not None
    return RULES["reshape"].read(write(value, flat, (positions(layout, flat.shape[0]),)), tuple(source.shape))


_STRIDED = ViewRule("strided", _read_strided, _write_strided)

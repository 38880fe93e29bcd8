"""Let torch.compile trace the scopes of backends and of autocast, which context variables hold."""

from __future__ import annotations

from typing import Any

from ember_ml.backend import selection
from ember_ml.backend.contract import Backend
from ember_ml.backend.torch.compilation import follows_python, mark_constant

__all__: list[str] = []

# torch 2.13: torch.compile cannot trace context variables. A program is compiled for one backend, so that the scope in
# which it is traced is constant to it: an object for good, since it would be compiled anew for each block. The scopes
# that it opens itself are kept in a list while it is traced. torch.compiler.substitute_in_graph would do the same, and
# import the compiler: a second of every program.
_outer: dict[str, _Outer] = {}
_opened: list[tuple[Any, ...]] = []
_read_scopes, _open_scope, _close_scope = selection.scopes_here, selection.open_scope, selection.close_scope
_prepare_scopes = selection.prepare_scopes


class _Outer:
    """The innermost scope in which a program is traced."""

    def __init__(self, scope: selection.Scope) -> None:
        self.backend, self.chosen, self.half = scope.backend, scope.chosen, scope.half
        self.watcher = None  # the ops of a program are not watched
        self.target = scope.backend if scope.half is None else None
        self.key = selection.key_of(scope.backend, scope.half is not None)


@mark_constant
def _name_outer() -> str:
    scopes = _read_scopes()
    if not scopes:
        return ""
    scope = scopes[-1]
    name = f"{scope.key} {scope.half} {scope.chosen is None}"
    if name not in _outer:
        _outer[name] = _Outer(scope)
    return name


def _scopes_here() -> tuple[Any, ...]:
    if not follows_python():
        return _read_scopes()
    if _opened:
        return _opened[-1]
    name = _name_outer()
    return (_outer[name],) if name else ()


def _open(scope: selection.Scope) -> None:
    if not follows_python():
        _open_scope(scope)
        return
    # It is not reset when the scope is closed: the program would write False while another thread has a scope open.
    selection.has_scopes = True
    _opened.append((*_scopes_here(), scope))


def _close(scope: selection.Scope) -> None:
    if not follows_python():
        _close_scope(scope)
        return
    _opened.pop()


def _prepare(backend: Backend, is_half: bool) -> None:
    if follows_python():
        _prepare_now(backend.name, is_half)
    else:
        _prepare_scopes(backend, is_half)


@mark_constant
def _prepare_now(name: str, is_half: bool) -> None:
    """Prepare the ops while a program is traced that is the first to open a scope; it would wait for a lock."""
    _prepare_scopes(selection.load(name), is_half)


selection.scopes_here, selection.open_scope, selection.close_scope = _scopes_here, _open, _close
selection.prepare_scopes = _prepare

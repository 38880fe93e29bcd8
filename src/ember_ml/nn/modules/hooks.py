"""Functions that run before and after the ``forward`` of one module, and when gradients pass through it.

A module with hooks has a ``forward`` of its own among its attributes, which calls them. One without has none, so that
its calls do not even ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ember_ml import ops
from ember_ml.backend.selection import active, backend_of
from ember_ml.core import trees
from ember_ml.core.dtypes import as_dtype
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.var import Var
from ember_ml.transforms import change_counter

if TYPE_CHECKING:
    from ember_ml.nn.modules.module import Module

__all__ = ["HookHandle", "Hookable", "add_hook", "is_recorded", "pass_gradients", "without_hooks"]

Around = Callable[["Module", Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Gets the module, its forward pass with all other hooks, and the arguments; returns the result."""


class HookHandle:
    """What registering a hook returns: it takes the hook away again, by ``remove()`` or at the end of a block.

    >>> from ember_ml import nn, ops
    >>> layer, shapes = nn.Linear(2, 3), []
    >>> with layer.register_forward_hook(lambda module, args, result: shapes.append(ops.shape(result))):
    ...     y = layer(ops.ones((4, 2)))
    >>> y = layer(ops.ones((5, 2)))
    >>> shapes
    [(4, 3)]
    """

    __slots__ = ("_hooks", "_kind", "_number")

    _hooks: _Hooks
    _kind: str
    _number: int

    def __init__(self, hooks: _Hooks, kind: str, number: int) -> None:
        self._hooks, self._kind, self._number = hooks, kind, number

    def remove(self) -> None:
        """Take the hook away; once it is, this does nothing."""
        kept: dict[int, Any] = getattr(self._hooks, self._kind)
        if kept.pop(self._number, None) is not None:
            self._hooks.install()

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class Hookable:
    """The methods of a module that register hooks."""

    def register_forward_pre_hook(self, hook: Callable[[Any, tuple[Any, ...]], Any]) -> HookHandle:
        """Call ``hook(module, args)`` before each forward pass of this module; return a handle that removes it.

        What it returns takes the place of the positional arguments: a tuple of them, or one alone; None leaves them.
        """
        return add_hook(self, "before", hook)

    def register_forward_hook(self, hook: Callable[[Any, tuple[Any, ...], Any], Any]) -> HookHandle:
        """Call ``hook(module, args, result)`` after each forward pass; return a handle that removes it.

        What it returns takes the place of the result; None leaves it. Hooks run in the order of their registration. In
        a compiled function they are part of what is traced: what they return counts in each call, but they themselves
        may run only when the program is made. Copies of the module, and saved ones, have no hooks.

        >>> from ember_ml import nn, ops
        >>> layer = nn.Linear(2, 1).load_state_dict({"weight": [[1.0, 2.0]], "bias": [0.0]})
        >>> handle = layer.register_forward_hook(lambda module, args, result: ops.multiply(result, 10.0))
        >>> ops.to_numpy(layer([[1.0, 1.0]])).tolist()
        [[30.0]]
        >>> handle.remove()
        >>> ops.to_numpy(layer([[1.0, 1.0]])).tolist()
        [[3.0]]
        """
        return add_hook(self, "after", hook)

    def register_full_backward_pre_hook(self, hook: Callable[[Any, tuple[Any, ...]], Any]) -> HookHandle:
        """Call ``hook(module, grad_output)`` when the gradients of the result are there; return a handle.

        ``grad_output`` has one for each tensor in the result; the tuple that it returns takes their place.
        """
        return add_hook(self, "backward_before", hook)

    def register_full_backward_hook(self, hook: Callable[[Any, tuple[Any, ...], tuple[Any, ...]], Any]) -> HookHandle:
        """Call ``hook(module, grad_input, grad_output)`` when gradients have passed through; return a handle.

        ``grad_input`` has the gradient of each positional argument, None for one through which no gradient goes, and
        ``grad_output`` that of each tensor in the result. The tuple that the hook returns takes the place of
        ``grad_input``. It runs in gradients of every kind, ``nn.value_and_grad``, ``ops.grad`` and ``backward()``.

        >>> from ember_ml import nn, ops
        >>> layer = nn.Linear(2, 1).load_state_dict({"weight": [[1.0, 2.0]], "bias": [0.0]})
        >>> show = lambda module, inner, outer: print(ops.to_numpy(inner[0]).tolist(), ops.to_numpy(outer[0]).tolist())
        >>> with layer.register_full_backward_hook(show):
        ...     gradient = ops.grad(lambda x: ops.sum(layer(x)))(ops.ones((1, 2)))
        [[1.0, 2.0]] [[1.0]]
        """
        return add_hook(self, "backward", hook)


class _Hooks:
    """The hooks of one module, by kind and number, in the order of their registration."""

    __slots__ = ("after", "around", "backward", "backward_before", "before", "module", "own")

    after: dict[int, Callable[..., Any]]
    around: dict[int, Around]
    backward: dict[int, Callable[..., Any]]
    backward_before: dict[int, Callable[..., Any]]
    before: dict[int, Callable[..., Any]]
    module: Module
    own: Callable[..., Any] | None

    def __init__(self, module: Module) -> None:
        self.module = module
        self.own = module.__dict__.get("forward")
        """What the program itself has put in the place of the method, if anything."""
        self.before, self.after, self.backward_before, self.backward, self.around = {}, {}, {}, {}, {}

    def install(self) -> None:
        """Give the module a ``forward`` that calls the hooks there are now, or take that away where there are none."""
        held = self.module.__dict__
        number = change_counter.count_change()
        if self.before or self.after or self.backward or self.backward_before or self.around:
            held["_hooks"], held["forward"] = self, self._compose()
            held["_hooked"] = number  # compiled programs depend on the hooks
            return
        for name in ("_hooks", "forward", "_hooked"):
            held.pop(name, None)
        if self.own is not None:
            held["forward"] = self.own

    def _compose(self) -> Callable[..., Any]:
        module, own = self.module, self.own
        before, after = tuple(self.before.values()), tuple(self.after.values())
        gradient_hooks = tuple(self.backward.values()), tuple(self.backward_before.values())
        compute = type(module).forward.__get__(module) if own is None else own

        def forward(*args: Any, **kwargs: Any) -> Any:
            for hook in before:
                changed = hook(module, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
            passage = _Passage(module, *gradient_hooks) if gradient_hooks != ((), ()) else None
            if passage is not None:
                args = passage.enter(args)
            result = compute(*args, **kwargs)
            for hook in after:
                changed = hook(module, args, result)
                result = result if changed is None else changed
            return result if passage is None else passage.leave(result)

        for hook in self.around.values():  # the last one registered is the outermost
            forward = _put_around(hook, module, forward)
        return forward


def _put_around(hook: Around, module: Module, inner: Callable[..., Any]) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return hook(module, inner, args, kwargs)

    return forward


def add_hook(module: Any, kind: str, hook: Callable[..., Any]) -> HookHandle:
    """Register a hook: of kind "before", "after", "backward", "backward_before" or "around"."""
    if not callable(hook):
        raise TypeError(f"a hook is a function, not {type(hook).__name__}")
    hooks = module.__dict__.get("_hooks") or _Hooks(module)
    number = change_counter.count_change()
    getattr(hooks, kind)[number] = hook
    hooks.install()
    return HookHandle(hooks, kind, number)


def without_hooks(state: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a module as they are without its hooks, which a copy does not get."""
    hooks = state.get("_hooks")
    if hooks is None:
        return state
    state = {name: value for name, value in state.items() if name not in ("_hooks", "_hooked", "forward")}
    return state if hooks.own is None else {**state, "forward": hooks.own}


class _Passage:
    """One call of a module with backward hooks: the gradients of its results, until those of its arguments come."""

    def __init__(
        self, module: Module, hooks: Sequence[Callable[..., Any]], before: Sequence[Callable[..., Any]]
    ) -> None:
        self.module, self.hooks, self.before = module, hooks, before
        self.count = 0
        self.places: list[int] = []
        self.outer: tuple[Any, ...] = ()

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments, whose gradients will go through the hooks."""
        self.count = len(args)
        if not self.hooks:
            return args
        self.places = [place for place, x in enumerate(args) if is_recorded(x)]
        if not self.places:
            return args
        passed = iter(pass_gradients([args[place] for place in self.places], self._finish))
        return tuple([next(passed) if place in self.places else x for place, x in enumerate(args)])

    def leave(self, result: Any) -> Any:
        """Return the result, whose gradients will be given to the hooks."""
        leaves, structure = trees.flatten(result)
        places = [place for place, x in enumerate(leaves) if is_recorded(x)]
        if not places:
            return result

        def begin(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
            given = iter(gradients)
            outer = tuple([next(given) if place in places else None for place in range(len(leaves))])
            for hook in self.before:
                outer = _replace(outer, hook(self.module, outer), self.module, "result")
            self.outer = outer
            if self.hooks and not self.places:  # no gradient goes on to the arguments
                self._call((None,) * self.count)
            return tuple([outer[place] for place in places])

        passed = iter(pass_gradients([leaves[place] for place in places], begin))
        return structure([next(passed) if place in places else x for place, x in enumerate(leaves)])

    def _finish(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        given = iter(gradients)
        inner = self._call(tuple([next(given) if place in self.places else None for place in range(self.count)]))
        return tuple([inner[place] for place in self.places])

    def _call(self, inner: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            inner = _replace(inner, hook(self.module, inner, self.outer), self.module, "argument")
        return inner


def _replace(gradients: tuple[Any, ...], changed: Any, module: Module, what: str) -> tuple[Any, ...]:
    """Return what a hook gave in place of gradients; None leaves them."""
    if changed is None:
        return gradients
    changed = tuple(changed) if isinstance(changed, tuple | list) else (changed,)
    kind = type(module).__name__
    if len(changed) != len(gradients):
        raise ValueError(
            f"a backward hook of {kind} returned {len(changed)} gradients, and there is one for each "
            f"{what}: {len(gradients)}"
        )
    for old, new in zip(gradients, changed, strict=True):
        if old is not None and new is not None and tuple(ops.shape(new)) != tuple(old.shape):
            raise ValueError(
                f"a backward hook of {kind} returned a gradient of shape {tuple(ops.shape(new))}, and that of the "
                f"{what} has shape {tuple(old.shape)}"
            )
    return changed


def is_recorded(x: Any) -> bool:
    """Return whether ``x`` is a tensor through which a gradient could flow."""
    native = x._array if type(x) is EmberTensor else x
    if type(native) is Var:
        return True
    backend = backend_of(native)
    if backend is None or backend is not active() or as_dtype(native.dtype).kind not in ("float", "complex"):
        return False
    if backend.is_recorded(native):
        return True
    compilation = backend.compilation
    if compilation is None or compilation.differentiates_programs or not backend.is_tracing():
        return False
    return backend.is_traced(native)  # the program may be differentiated later


def pass_gradients(tensors: Sequence[Any], change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Sequence[Any]:
    """Return the tensors as they are; their gradients go through ``change``."""

    @ops.custom_gradient
    def passage(*given: Any) -> Any:
        if len(given) == 1:
            return given[0], lambda gradient: change((gradient,))[0]
        return given, lambda *gradients: change(gradients)

    found = passage(*tensors)
    return found if len(tensors) > 1 else (found,)

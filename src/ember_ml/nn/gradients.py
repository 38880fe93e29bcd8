"""Gradients of a loss with respect to the parameters of a module."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any

from ember_ml.autodiff.engines import run
from ember_ml.backend.contract import Backend
from ember_ml.backend.selection import active
from ember_ml.nn.modules.module import Module
from ember_ml.tensor.ember_tensor import EmberTensor
from ember_ml.tensor.variable import Variable, assign_all, keep, put_back, values_of
from ember_ml.transforms.arguments import Outputs, check_one_number, restore_kind
from ember_ml.typing import Tensor

__all__ = ["value_and_grad"]


_UNCHANGED = nullcontext()


def differentiate(
    function: Callable[[], tuple[Any, Any]],
    variables: Sequence[Variable],
    buffers: Sequence[Variable],
    backend: Backend,
    has_aux: bool,
) -> tuple[Any, Any, Sequence[Any]]:
    """Return the value of ``function`` and its second result, with the gradients with respect to ``variables``.

    The function reads the variables and returns one number and anything else, which is None here without ``has_aux``;
    the value is a native 0-d tensor. While the function runs, the variables hold tensors that are being differentiated;
    afterwards they are as before. The buffers keep the tensors that the function assigned to them.
    """
    natives, before = values_of(variables), values_of(buffers) if buffers else []
    outputs = Outputs(backend) if has_aux else None
    recording = variables[0].recording if variables else None
    kept = keep([*variables, *buffers])
    changed: list[Variable] = []

    def flat(*recorded: Any) -> tuple[Any, list[Any]]:
        for variable, x in zip(variables, recorded, strict=True):
            variable.held, variable.home = x, backend
        if buffers:
            assign_all(buffers, before)
        try:
            with _UNCHANGED if recording is None else recording():
                value, aux = function()
                value = check_one_number(value, backend)
                rest = [] if outputs is None else outputs.take(aux, strict=False)
            if not buffers:
                return value, rest
            # return the buffers as results: an engine's tensors may be invalid outside of the differentiated function
            changed[:] = [buffer for buffer, old in zip(buffers, before, strict=True) if buffer.held is not old]
            return value, [*rest, *(buffer.held for buffer in changed)]
        finally:
            put_back(kept)

    value, rest, gradients = run("value_and_gradients", flat, backend, natives)
    if changed:
        count = len(rest) - len(changed)
        for buffer, new in zip(changed, rest[count:], strict=True):
            buffer.assign(new)
        rest = rest[:count]
    return value, None if outputs is None else outputs.tree(rest), gradients


def value_and_grad(
    model: Module, f: Callable[..., Any], has_aux: bool = False
) -> Callable[..., tuple[Any, dict[str, Tensor]]]:
    """Return a function that gives the value of ``f`` and its gradients by name with respect to ``model``'s parameters.

    It takes the arguments of ``f``, which computes one number with the model; with ``has_aux`` that and anything else,
    which is passed on. Frozen parameters have no gradient. What :meth:`Optimizer.update` takes.

    >>> from ember_ml import nn, ops
    >>> model = nn.Linear(2, 1, bias=False).load_state_dict({"weight": [[1.0, 2.0]]})
    >>> step = nn.value_and_grad(model, lambda x: ops.sum(ops.square(model(x))))
    >>> value, gradients = step(ops.array([[3.0, 1.0]]))
    >>> ops.item(value), ops.to_numpy(gradients["weight"]).tolist()
    (25.0, [[30.0, 10.0]])
    """
    if not isinstance(model, Module) or not callable(f):
        raise TypeError("nn.value_and_grad takes a module and a function that computes a number with it")

    @wraps(f)
    def value_and_gradients(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Tensor]]:
        state = model.trained_state()
        if not state.is_built:
            build(model, f, args, kwargs)
            state = model.trained_state()
        backend, is_portable = active(), False

        def function() -> tuple[Any, Any]:
            nonlocal is_portable
            value, rest = f(*args, **kwargs) if has_aux else (f(*args, **kwargs), None)
            is_portable = type(value) is EmberTensor
            return value, rest

        variables = list(state.named.values())
        trained = set(map(id, variables))
        others = [x for x in state.variables if id(x) not in trained]  # buffers, and parameters that are frozen
        value, rest, gradients = differentiate(function, variables, others, backend, has_aux)
        value = restore_kind(value, is_portable, backend)
        return ((value, rest) if has_aux else value), dict(zip(state.named, gradients, strict=True))

    return value_and_gradients


def build(model: Module, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Call ``f`` once in evaluation mode, so that layers whose sizes were left out are built."""
    modules = [module for _, module in model.named_modules()]
    modes = [module.training for module in modules]
    model.eval()
    try:
        f(*args, **kwargs)
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode

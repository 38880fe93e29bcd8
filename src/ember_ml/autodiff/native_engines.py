"""Bodies for a library's own engine: the rules beside the op where it has no gradient, an error where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from ember_ml.autodiff.engines import while_on
from ember_ml.autodiff.recorder import is_tracked, not_differentiable
from ember_ml.autodiff.reverse_pass import conjugated, unbroadcast
from ember_ml.backend.contract import Backend, Body, ByDType
from ember_ml.core.dtypes import EmberDType, as_dtype
from ember_ml.dispatch.declare import OPS, TENSOR, VALUE, Op, adapt_bodies_with, read_names
from ember_ml.tensor.ember_tensor import EmberTensor

__all__ = ["refusing", "with_rules"]


def _adapt_body(op: Op, body: Body | ByDType, backend: Backend) -> Body | ByDType:
    """Return ``body`` as the backend's own engine needs it: with the op's rules, refusing, or as it is."""
    if backend.gradients is None:
        return body
    lacking = backend.gradients.without_gradient.get(op.name)
    if lacking:
        return with_rules(op, body, backend, lacking)
    return refusing(op, body, backend) if op.has_no_gradient() else body


adapt_bodies_with(_adapt_body)


def refusing(op: Op, body: Body | ByDType, backend: Backend) -> Body | ByDType:
    """``body`` of an op that has no gradient, which says so rather than give zeros."""
    tensors = [index for index, role in op.roles if role is TENSOR]

    def refused(found: Body) -> Body:
        @wraps(found)
        def checked(*args: Any) -> Any:
            result = found(*args)
            for index in tensors:
                if backend.is_native(args[index]) and backend.is_recorded(args[index]) and is_tracked(result, backend):
                    raise not_differentiable(op, op.parameters[index])
            return result

        return checked

    if not isinstance(body, ByDType):
        return refused(body)
    others = {dtype: refused(other) for dtype, other in body.others.items()}
    return ByDType(refused(body.native), others, body.general and refused(body.general), body.when)


def with_rules(op: Op, body: Body | ByDType, backend: Backend, dtypes: frozenset[EmberDType]) -> Body | ByDType:
    """``body``, which the backend's engine differentiates by the gradient rules of ``op``, for these dtypes."""
    given = body if isinstance(body, ByDType) else ByDType(body)

    def ruled(found: Body) -> Body:
        return _with_rules(op, found, backend)

    held = op.rule.domain & backend.dtypes.keys()
    if held <= dtypes:
        others = {dtype: ruled(other) for dtype, other in given.others.items()}
        engine = backend.gradients
        plain = given.native if engine is not None and engine.records_apart else None
        return ByDType(ruled(given.native), others, given.general and ruled(given.general), given.when, plain)
    usual = given.general or given.native
    others = {**given.others, **{d: ruled(given.others.get(d, usual)) for d in held & dtypes}}
    return ByDType(given.native, others, given.general, given.when)


def _with_rules(op: Op, body: Body, backend: Backend) -> Body:
    tensors = [index for index, role in op.roles if role in (TENSOR, VALUE)]
    rules = {index: op.gradients[op.parameters[index]] for index in tensors}
    engine = backend.gradients
    assert engine is not None
    assert engine.ruled is not None
    compute = engine.ruled
    is_needed = engine.is_differentiating if op.name in engine.ruled_inside_gradients else None
    names = (*op.parameters, "r")
    reads = {
        index: [] if rule is None else [names.index(name.removeprefix("_")) for name in read_names(rule, 1)]
        for index, rule in rules.items()
    }

    def ruled(*args: Any) -> Any:
        form: Any = None
        given = [index for index in tensors if args[index] is not None]
        dtype = next(args[index].dtype for index in given if backend.is_native(args[index]))

        def put(leaves: Sequence[Any]) -> list[Any]:
            found = list(args)
            for index, leaf in zip(given, leaves, strict=True):
                found[index] = leaf
            return found

        def outputs_of(*leaves: Any) -> list[Any]:
            nonlocal form
            with while_on(backend):
                result = body(*put(leaves))
            form = type(result) if isinstance(result, tuple) else None
            return [_native(x) for x in ([result] if form is None else result)]

        def pull(leaves: Sequence[Any], gradients: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
            with while_on(backend):
                gradient = gradients[0] if form is None else list(gradients)
                known = [*put(leaves), outputs[0] if form is None else list(outputs)]
                if op.is_holomorphic:
                    known = conjugated(known)
                return [
                    _of_leaf(rules[place], gradient, [known[index] for index in reads[place]], x)
                    for place, x in zip(given, leaves, strict=True)
                ]

        # the hot path leaves Python numbers as they are
        found = [x if backend.is_native(x) else backend.scalar(x, dtype, None) for x in map(args.__getitem__, given)]
        outputs = compute(outputs_of, pull, found)
        return outputs[0] if form is None else form(*outputs)

    if is_needed is None:
        return ruled
    # a function of its own: Python would make the variables of the inner functions at each call
    return lambda *args: ruled(*args) if is_needed() else body(*args)


def _native(x: Any) -> Any:
    """``x``, unwrapped where a portable setting of the op has made it portable."""
    return x._array if type(x) is EmberTensor else x


def _of_leaf(rule: Callable[..., Any] | None, gradient: Any, read: Sequence[Any], leaf: Any) -> Any:
    found = None if rule is None else _native(rule(gradient, *read))
    if found is None:
        return OPS["zeros"].function(tuple(leaf.shape), as_dtype(leaf.dtype))
    return found if tuple(found.shape) == tuple(leaf.shape) else unbroadcast(found, tuple(leaf.shape))

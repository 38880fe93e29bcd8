"""Gradients on JAX, by its own transforms of functions."""

# JAX 0.10: takes gradients of complex numbers to be those of df/dz; the contract's are their conjugates, which point
# uphill. Hence the conjugates on the way into each vjp and out of it.

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero

from ember_ml.backend.jax.sharding import recomputing_wholes
from ember_ml.backend.jax.tracing import is_differentiating, is_tracing
from ember_ml.core import dtypes as dt
from ember_ml.errors import UnsupportedOp

__all__ = [
    "checkpoint",
    "custom",
    "is_differentiating",
    "jacobian",
    "pullback",
    "pushes_forward",
    "pushforward",
    "records_apart",
    "refuses_captured",
    "ruled",
    "ruled_inside_gradients",
    "sees_arguments_only",
    "stop_gradient",
    "unrecorded",
    "value_and_gradients",
    "variable",
    "vmap",
    "without_gradient",
]

stop_gradient = lax.stop_gradient
sees_arguments_only = True
refuses_captured = True
variable = unrecorded = None

# JAX 0.10: no gradient of eigenvectors, of complete or wide QR, of full SVD; NaN for equal eigenvalues
_FACTORIZATIONS = """
    cholesky det eig eigh eigvals eigvalsh inv lstsq lu_factor pinv qr slogdet solve solve_triangular svd svdvals
"""

# JAX 0.10: no gradient of products by segments; NaN for the norm and the angle of zeros and powers of 0; 1 for abs and
# hypot of 0; at ties the gradient of fmax and fmin goes to one side; that of i0 is 0 at 0, that of the sign of complex
# numbers is 0 everywhere, those of logaddexp and logsumexp of nothing but -inf are NaN
_OTHERS = "abs arctan2 fmax fmin hypot i0 logaddexp logsumexp power segment_prod sign vector_norm"

without_gradient: dict[str, frozenset[dt.EmberDType]] = dict.fromkeys((_FACTORIZATIONS + _OTHERS).split(), dt.ALL)
"""The ops and dtypes of which JAX has no gradient, or a wrong one, or NaN where there is one."""

records_apart = True
ruled_inside_gradients = frozenset(without_gradient)

Arrays = Sequence[jax.Array]


class _State(threading.local):
    forward = 0


_state = _State()


def _conjugate(xs: Arrays) -> list[jax.Array]:
    return [jnp.conj(x) if jnp.iscomplexobj(x) else x for x in xs]


def value_and_gradients(
    function: Callable[..., Any], leaves: Arrays
) -> tuple[jax.Array, list[Any], Sequence[jax.Array]]:
    def split(*variables: jax.Array) -> tuple[jax.Array, Any]:
        value, rest = function(*variables)
        return value, list(rest)

    value, pull, rest = jax.vjp(recomputing_wholes(split), *leaves, has_aux=True)
    return value, rest, _conjugate(_pull(pull, jnp.ones_like(value)))


def _pull(pull: Callable[[Any], Arrays], seeds: Any) -> Arrays:
    """Call a vjp of JAX's, and say what to do about loops that have none."""
    try:
        return pull(seeds)
    except ValueError as error:
        if "Reverse-mode differentiation does not work" not in str(error):
            raise
        raise UnsupportedOp(
            "JAX has no gradient of a compiled loop that ends by a value: give it a fixed number of steps, by ops.scan "
            "or by ops.fori_loop with Python integers as bounds, or take the gradient without compiling the function"
        ) from error


def pullback(
    function: Callable[..., Any], leaves: Arrays
) -> tuple[list[jax.Array], Callable[[Sequence[jax.Array]], Sequence[jax.Array]]]:
    """Return the outputs of ``function`` and its vjp with respect to the leaves."""
    outputs, pull = jax.vjp(function, *leaves)
    saved, form = jax.tree.flatten(pull)  # JAX 0.11: hides them in an object, where no outer rule finds its tensors

    def pull_all(gradients: Arrays) -> list[jax.Array]:
        seeds = [_seed(g, y) for g, y in zip(_conjugate(gradients), outputs, strict=True)]
        return _conjugate(_pull(jax.tree.unflatten(form, saved), type(outputs)(seeds)))

    return outputs, pull_all


def _seed(gradient: jax.Array, output: jax.Array) -> Any:
    """Return the gradient of an output as JAX takes it: integers have one of a dtype without values."""
    if jnp.issubdtype(output.dtype, jnp.inexact):
        return gradient
    return np.zeros(output.shape, jax.dtypes.float0)


@contextmanager
def _forward(more: int) -> Any:
    """Open a block inside of so many more forward derivatives."""
    _state.forward += more
    try:
        yield
    finally:
        _state.forward -= more


def pushes_forward() -> bool:
    """Whether tangents are pushed through what is computed now."""
    return _state.forward > 0


def pushforward(
    function: Callable[..., Any], leaves: Arrays, tangents: Arrays
) -> tuple[list[jax.Array], list[jax.Array]]:
    with _forward(1):
        return jax.jvp(function, tuple(leaves), tuple(tangents))


def jacobian(function: Callable[..., Any], leaves: Arrays) -> list[list[jax.Array]]:
    """Return for each output the derivatives with respect to each leaf, of shape output + leaf."""
    outputs, pull = pullback(function, leaves)
    zeros, found = [jnp.zeros_like(y) for y in outputs], []
    for place, output in enumerate(outputs):

        def row(seed: jax.Array, place: int = place) -> Arrays:
            return pull([seed if other == place else zero for other, zero in enumerate(zeros)])

        basis = jnp.eye(output.size, dtype=output.dtype).reshape(output.size, *output.shape)
        rows = jax.vmap(row)(basis) if output.size else [jnp.zeros((0, *x.shape), x.dtype) for x in leaves]
        found.append([part.reshape(*output.shape, *x.shape) for part, x in zip(rows, leaves, strict=True)])
    return found


def vmap(function: Callable[..., Any], leaves: Arrays, axes: Sequence[int | None], out_axis: int) -> list[jax.Array]:
    return jax.vmap(function, tuple(axes), out_axis)(*leaves)


def checkpoint(function: Callable[..., Any], leaves: Arrays, is_complete: bool) -> Any:
    """Return the outputs: eagerly by a second run of the function, in a program by a second run of its part of it."""
    if not is_complete or is_tracing():
        return jax.checkpoint(function)(*leaves)
    if _state.forward:  # where nothing is kept
        return function(*leaves)

    def pull(variables: Arrays, gradients: Arrays, outputs: Arrays) -> Sequence[jax.Array]:
        return pullback(function, variables)[1](gradients)

    return _ruled_backward(function, pull, leaves)


def custom(function: Callable[..., Any], leaves: Arrays) -> Sequence[jax.Array]:
    """Return the outputs of ``function``, which also returns its own vjp."""

    def pull(leaves: Arrays, gradients: Arrays, outputs: Arrays) -> Sequence[jax.Array]:
        return function(*leaves)[1](gradients)

    return ruled(lambda *variables: list(function(*variables)[0]), pull, leaves)


def ruled(
    function: Callable[..., Any], pull: Callable[[Any, Any, Any], Sequence[jax.Array]], leaves: Arrays
) -> Sequence[jax.Array]:
    """Return the list that ``function`` returns; ``pull`` is its vjp with respect to the leaves."""
    return (_ruled_forward if _state.forward else _ruled_backward)(function, pull, leaves)


def _ruled_backward(function: Callable[..., Any], pull: Callable[..., Any], leaves: Arrays) -> Sequence[jax.Array]:
    given = jax.custom_vjp(function)

    def forward(*variables: jax.Array) -> Any:
        outputs = given(*variables)  # so that a second derivative uses the rule too
        return outputs, (variables, outputs)

    def backward(saved: Any, gradients: Arrays) -> tuple[Any, ...]:
        variables, outputs = saved
        found = pull(variables, _floating(_conjugate(gradients), outputs), outputs)
        return tuple(_seed(g, x) for g, x in zip(_conjugate(found), variables, strict=True))

    given.defvjp(forward, backward)
    return given(*leaves)


def _floating(gradients: Arrays, outputs: Arrays) -> list[jax.Array]:
    """Return the gradients with zeros of the outputs' own dtypes where JAX gives none, for integers."""
    return [jnp.zeros_like(y) if g.dtype == jax.dtypes.float0 else g for g, y in zip(gradients, outputs, strict=True)]


def _ruled_forward(function: Callable[..., Any], pull: Callable[..., Any], leaves: Arrays) -> Sequence[jax.Array]:
    """The same where tangents are pushed forward, by the transpose of the vjp, which must be linear for that."""
    # JAX 0.10: cannot push tangents through a function that has a vjp of its own
    given = jax.custom_jvp(function)

    def push_forward(primals: Arrays, tangents: Sequence[Any]) -> Any:
        outputs = given(*primals)
        live = [place for place, y in enumerate(outputs) if jnp.issubdtype(y.dtype, jnp.inexact)]
        # a constant has no part in it: 0 times the infinite or undefined derivative by it would be NaN
        inputs = [place for place, dx in enumerate(tangents) if not isinstance(dx, SymbolicZero)]

        def pull_live(*gradients: jax.Array) -> list[jax.Array]:
            seeds = dict(zip(live, _conjugate(gradients), strict=True))
            with _forward(-1):  # the rule is transposed, not pushed through
                found = pull(primals, [seeds.get(p, jnp.zeros_like(y)) for p, y in enumerate(outputs)], outputs)
            return [x for place, x in enumerate(_conjugate(found)) if place in inputs]

        _, push = jax.vjp(pull_live, *(jnp.zeros_like(outputs[place]) for place in live))
        changes = dict(zip(live, push([tangents[place] for place in inputs]), strict=True))
        return outputs, [changes.get(place, np.zeros(y.shape, jax.dtypes.float0)) for place, y in enumerate(outputs)]

    given.defjvp(push_forward, symbolic_zeros=True)
    return given(*leaves)

"""Solvers, written on ops: linear systems by iteration, and roots.

The unknowns may be one tensor of any shape or nested containers of tensors. Half precision is computed in float32.
Gradients do not go through the iterations, except in functions that PyTorch compiles: they follow from the equation
that the solution satisfies, at the cost of one more solution. Where the equation is not solved, they are as wrong as
the solution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ember_ml import ops
from ember_ml.backend.common.named_results import SolverResult
from ember_ml.backend.selection import active
from ember_ml.dispatch.declare import plain
from ember_ml.transforms.flat_vector import Packed
from ember_ml.transforms.loop_state import Tree, constant, traced_control_flow
from ember_ml.typing import Tensor, TensorLike

__all__ = ["conjugate_gradient", "gmres", "newton_root"]

Operator = Callable[[Any], Any]
Linear = TensorLike | Callable[[Tree], Tree]
"""A square matrix, or a linear function of the unknowns."""


class _System:
    """A linear system on vectors: the caller's matrices and functions as operators, and when to stop."""

    def __init__(self, op: str, A: Linear, b: Tree, x0: Tree, M: Linear | None, tol: float, atol: float) -> None:
        matrices = [matrix for matrix in (A, M) if matrix is not None and not callable(matrix)]
        self.form = Packed(op, b, x0, matrices)
        self.op, self.tol, self.atol = op, tol, atol
        self.b = self.form.vector(b, "b")
        self.x0 = ops.zeros_like(constant(self.b)) if x0 is None else constant(self.form.vector(x0, "x0"))
        self.A = self._operator(A, "A")
        self.M = _identity if M is None else self._operator(M, "M")

    def _operator(self, A: Any, name: str) -> Operator:
        form = self.form
        if callable(A):
            return lambda v: form.vector(A(form.tree(v)), f"what {name} gives")
        matrix = form.tensor(A)
        if tuple(matrix.shape) != (form.size, form.size):
            raise ValueError(
                f"ops.{self.op}: for {form.size} unknowns {name} must be a matrix of shape {(form.size, form.size)}, "
                f"not {tuple(matrix.shape)}"
            )
        matrix = ops.cast(matrix, form.dtype)
        return lambda v: ops.matmul(matrix, v)

    def result(self, x: Any, info: Any) -> SolverResult:
        return SolverResult(self.form.result(x), self.form.portable_number(info))


def _identity(x: Any) -> Any:
    return x


def _detach(x: Any) -> Any:
    """Detach ``x``, except in a compiled function, whose gradient goes through the iterations."""
    return constant(x) if traced_control_flow(active()) is None else x


def _attach_gradient(x: Any, b: Any, A: Operator, adjoint_solve: Operator) -> Any:
    """Return the solution ``x`` of ``A x = b``, with the first and second derivatives that the equation says.

    The residual has the right derivatives by ``b`` and by whatever ``A`` depends on; what is left is to take a gradient
    back through the inverse of ``A``. With a constant ``x`` in the residual only the first derivative is right: hence
    the second residual, of the solution which the first one made differentiable.
    """
    if traced_control_flow(active()) is not None:
        return x

    @ops.custom_gradient
    def correction(residual: Any) -> Any:
        return ops.zeros_like(residual), adjoint_solve

    x = ops.add(x, correction(ops.subtract(b, A(x))))

    @ops.custom_gradient
    def solution(x: Any, residual: Any) -> Any:
        def rule(g: Any) -> tuple[Any, Any]:
            found = adjoint_solve(g)
            return _adjoint(A, x)(found), found  # the first cancels the gradient by x that goes through the residual

        return x, rule

    return solution(x, ops.subtract(b, A(x)))


def _solve_scaled(
    solve: Callable[[Any, Any, Any], tuple[Any, Any, Any]], b: Any, x0: Any, tol: float, atol: float
) -> Any:
    """Run ``solve(b, x0, target)`` for a right-hand side whose largest element is 1, so that no square overflows.

    Return the solution and 0, or the number of steps where the residual is still larger than the target.
    """
    b = _detach(b)
    scale = ops.max(ops.abs(b))
    is_zero = ops.equal(scale, 0)
    scale = ops.where(is_zero, ops.ones_like(scale), scale)
    b = ops.divide(b, scale)
    x0 = ops.where(is_zero, ops.zeros_like(x0), ops.divide(x0, scale))
    target = ops.maximum(ops.multiply(ops.vector_norm(b), tol), ops.divide(atol, scale))
    x, size, steps = solve(b, x0, target)
    info = ops.where(ops.less_equal(size, target), ops.zeros_like(steps), ops.maximum(steps, 1))
    return ops.multiply(x, scale), info


@plain
def conjugate_gradient(
    A: Linear,
    b: Tree,
    x0: Tree = None,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Linear | None = None,
) -> SolverResult:
    """The solution of ``A x = b`` for a symmetric (Hermitian), positive definite ``A``, and how that went.

    ``A`` is a matrix or a linear function of what ``b`` is. The iteration starts at ``x0``, or at zero, and ends when
    the norm of ``b - A x`` is at most ``tol`` times that of ``b``, or ``atol``; after ``maxiter`` steps (10 for each
    unknown, if not given) it gives up. ``M`` approximates the inverse of ``A``. The result has the fields ``x`` and
    ``info``: 0 where the residual is as small as asked, else the number of steps.

    Differentiable twice by ``b`` and by what ``A`` depends on, through another solution with the same ``A``.

    >>> from ember_ml import ops
    >>> A, b = ops.array([[4.0, 1.0], [1.0, 3.0]]), ops.array([1.0, 2.0])
    >>> x, info = ops.conjugate_gradient(A, b)
    >>> ops.to_numpy(ops.round(11 * x)).tolist(), ops.item(info)
    ([1.0, 7.0], 0)
    """
    system = _System("conjugate_gradient", A, b, x0, M, tol, atol)
    limit = 10 * system.form.size if maxiter is None else maxiter

    def solve(A: Operator, M: Operator, b: Any, x0: Any) -> tuple[Any, Any]:
        x, info = _solve_scaled(lambda b, x0, target: _conjugate_gradient(A, M, b, x0, target, limit), b, x0, tol, atol)
        return _attach_gradient(x, b, A, lambda g: solve(A, M, g, ops.zeros_like(_detach(g)))[0]), info

    return system.result(*solve(system.A, system.M, system.b, system.x0))


def _conjugate_gradient(A: Operator, M: Operator, b: Any, x: Any, target: Any, limit: int) -> tuple[Any, Any, Any]:
    def residual(x: Any) -> Any:
        return ops.subtract(b, _detach(A(x)))

    def step(x: Any, r: Any, p: Any, rz: Any, size: Any, steps: Any) -> tuple[Any, ...]:
        Ap = _detach(A(p))
        alpha = ops.divide(rz, ops.vdot(p, Ap))
        x = ops.add(x, ops.multiply(alpha, p))
        r = ops.subtract(r, ops.multiply(alpha, Ap))
        z = _detach(M(r))
        before, rz = rz, ops.vdot(r, z)
        p = ops.add(z, ops.multiply(ops.divide(rz, before), p))
        return x, r, p, rz, ops.vector_norm(r), ops.add(steps, 1)

    steps = ops.zeros((), dtype="int64", device=ops.get_device(b))
    r = residual(x)
    # The updated residual drifts from the true one; the second pass starts from the true one.
    for _ in range(2):
        z = _detach(M(r))
        x, _, _, _, _, steps = ops.while_loop(
            lambda x, r, p, rz, size, steps: ops.logical_and(ops.greater(size, target), ops.less(steps, limit)),
            step,
            (x, r, z, ops.vdot(r, z), ops.vector_norm(r), steps),
        )
        r = residual(x)
    return x, ops.vector_norm(r), steps


@plain
def gmres(
    A: Linear,
    b: Tree,
    x0: Tree = None,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Linear | None = None,
) -> SolverResult:
    """The solution of ``A x = b`` for any invertible ``A``, by restarted GMRES, and how that went.

    ``A``, ``x0``, ``tol``, ``atol`` and the result are those of :func:`conjugate_gradient`. After ``restart`` steps the
    iteration starts anew from what it has, ``maxiter`` times at most (10 for each unknown, if not given). ``M``
    approximates the inverse of ``A`` and is applied from the right, so that the residual itself is made small.

    Differentiable twice by ``b`` and by what ``A`` depends on, through a solution with the adjoint of ``A``.

    >>> from ember_ml import ops
    >>> A, b = ops.array([[1.0, 2.0], [3.0, 4.0]]), ops.array([5.0, 11.0])
    >>> x, info = ops.gmres(A, b)
    >>> ops.to_numpy(ops.round(x)).tolist(), ops.item(info)
    ([1.0, 2.0], 0)
    """
    system = _System("gmres", A, b, x0, M, tol, atol)
    if restart < 1:
        raise ValueError(f"ops.gmres: restart must be at least 1, not {restart}")
    limit = 10 * system.form.size if maxiter is None else maxiter
    length = min(restart, system.form.size)

    def solve(A: Operator, M: Operator, b: Any, x0: Any) -> tuple[Any, Any]:
        x, info = _solve_scaled(lambda b, x0, target: _gmres(A, M, b, x0, target, length, limit), b, x0, tol, atol)

        def adjoint_solve(g: Any) -> Any:
            start = ops.zeros_like(_detach(g))
            return solve(_adjoint(A, g), _adjoint(M, g), g, start)[0]

        return _attach_gradient(x, b, A, adjoint_solve), info

    return system.result(*solve(system.A, system.M, system.b, system.x0))


def _adjoint(A: Operator, x: Any) -> Operator:
    """Return the adjoint of a linear function of vectors like ``x``."""
    if A is _identity:
        return A
    pull = ops.vjp(A, ops.zeros_like(_detach(x)))[1]
    return lambda v: pull(v)[0]


def _gmres(A: Operator, M: Operator, b: Any, x: Any, target: Any, length: int, limit: int) -> tuple[Any, Any, Any]:
    def residual(x: Any) -> Any:
        return ops.subtract(b, _detach(A(x)))

    def cycle(x: Any, r: Any, size: Any, cycles: Any, steps: Any) -> tuple[Any, ...]:
        change, taken = _solve_krylov(A, M, r, size, target, length)
        x = ops.add(x, change)
        r = residual(x)
        return x, r, ops.vector_norm(r), ops.add(cycles, 1), ops.add(steps, taken)

    r, zero = residual(x), ops.zeros((), dtype="int64", device=ops.get_device(b))
    x, _, size, _, steps = ops.while_loop(
        lambda x, r, size, cycles, steps: ops.logical_and(ops.greater(size, target), ops.less(cycles, limit)),
        cycle,
        (x, r, ops.vector_norm(r), zero, zero),
    )
    return x, size, steps


def _solve_krylov(A: Operator, M: Operator, r: Any, size: Any, target: Any, length: int) -> tuple[Any, Any]:
    """Return the change of x that minimizes the residual ``r`` within ``length`` steps, and the number of steps.

    ``V`` holds an orthonormal basis in its rows, and is zero beyond the step reached. The matrix of the problem in that
    basis is kept as its QR decomposition: ``Q`` is the adjoint of the orthogonal factor, ``R`` holds the columns of the
    triangle in its rows.
    """
    dtype, n, device = ops.dtype(r), r.shape[0], ops.get_device(r)
    first = ops.divide(r, _replace_zeros(size))
    V = ops.concatenate([ops.expand_dims(first, 0), ops.zeros((length, n), dtype=dtype, device=device)])
    Q = ops.eye(length + 1, dtype=dtype, device=device)
    R = ops.zeros((length, length + 1), dtype=dtype, device=device)

    def step(V: Any, Q: Any, R: Any, left: Any, j: Any) -> tuple[Any, ...]:
        w = _detach(A(_detach(M(ops.take(V, j, axis=0)))))
        h, w = _orthogonalize(w, V)
        # again: the rounding error of the first pass may be as large as what is left of w
        again, w = _orthogonalize(w, V)
        norm = ops.vector_norm(w)
        following = ops.add(j, 1)
        V = ops.index_update(V, following, ops.divide(w, _replace_zeros(norm)))
        column = ops.matmul(Q, ops.index_update(ops.add(h, again), following, ops.cast(norm, dtype)))
        a, c = ops.take(column, j), ops.take(column, following)
        diagonal = ops.hypot(ops.abs(a), ops.abs(c))
        a = ops.where(ops.equal(diagonal, 0), ops.ones_like(a), a)
        rotated, t = (ops.take(Q, j, axis=0), ops.take(Q, following, axis=0)), _replace_zeros(diagonal)
        upper = ops.divide(ops.add(ops.multiply(ops.conj(a), rotated[0]), ops.multiply(c, rotated[1])), t)
        lower = ops.divide(ops.subtract(ops.multiply(a, rotated[1]), ops.multiply(c, rotated[0])), t)
        Q = ops.index_update(ops.index_update(Q, j, upper), following, lower)
        column = ops.index_update(ops.index_update(column, j, ops.cast(diagonal, dtype)), following, 0.0)
        R = ops.index_update(R, j, column)
        return V, Q, R, ops.multiply(size, ops.abs(ops.take(lower, 0))), following

    V, Q, R, _, steps = ops.while_loop(
        lambda V, Q, R, left, j: ops.logical_and(ops.greater(left, target), ops.less(j, length)),
        step,
        (V, Q, R, size, 0),
    )
    R = ops.matrix_transpose(ops.get_item(R, (slice(None), slice(length))))
    # Leave out columns that were not reached or that broke down: 1 on the diagonal, 0 on the right-hand side.
    is_used = ops.not_equal(ops.diagonal(R), 0)
    R = ops.add(R, ops.diag(ops.where(is_used, 0.0, ops.ones_like(ops.diagonal(R)))))
    wanted = ops.multiply(ops.get_item(Q, (slice(length), 0)), size)
    y = ops.solve_triangular(R, ops.where(is_used, wanted, ops.zeros_like(wanted)), lower=False)
    change = ops.matmul(y, ops.get_item(V, slice(length)))
    return _detach(M(change)), steps


def _orthogonalize(w: Any, V: Any) -> tuple[Any, Any]:
    """Return the coefficients of ``w`` along the rows of ``V``, and ``w`` without its projection on them."""
    h = ops.matmul(ops.conj(V), w)
    return h, ops.subtract(w, ops.matmul(h, V))


def _replace_zeros(x: Any) -> Any:
    return ops.where(ops.equal(x, 0), ops.ones_like(x), x)


@plain
def newton_root(
    f: Callable[[Tree], Tree],
    x0: Tree,
    jacobian: Callable[[Tree], Tensor] | None = None,
    tol: float | None = None,
    maxiter: int = 50,
) -> SolverResult:
    """A root of ``f``, which gives as many numbers as it takes, by Newton's method from ``x0``, and how that went.

    The iteration ends when a step changes no unknown by more than ``tol`` times the largest of them (or 1): the root is
    then accurate to about the square of that. Not given, ``tol`` is the two-thirds power of the dtype's precision. The
    matrix of derivatives is found by :func:`jacobian`, or given by a function ``jacobian`` of the unknowns. The result
    has the fields ``x`` and ``info``: 0 where the iteration ended so, else the number of steps. A singular matrix is
    ``LinAlgError``.

    Differentiable twice by whatever ``f`` depends on; once on MLX, whose engine loses second derivatives when a value
    is read after an inner derivative: ``LostGradient`` there.

    >>> from ember_ml import ops
    >>> x, info = ops.newton_root(lambda x: x * x - 2.0, 1.0)
    >>> round(ops.item(x), 6), ops.item(info)
    (1.414214, 0)
    """
    form = Packed("newton_root", x0)
    if form.dtype.kind == "complex" and jacobian is None:
        raise TypeError("ops.newton_root finds derivatives by real numbers; for complex unknowns, give jacobian")
    size, own = form.size, jacobian

    def values(x: Any) -> Any:
        return form.vector(f(form.tree(x)), "what f gives")

    def derivatives(x: Any) -> Any:
        found = ops.jacobian(values)(x) if own is None else ops.cast(form.tensor(own(form.tree(x))), form.dtype)
        return ops.reshape(found, (size, size))

    precision = float(ops.finfo(form.dtype).eps) ** (2 / 3) if tol is None else tol
    x = _detach(form.vector(x0, "x0"))

    def step(x: Any, change: Any, steps: Any) -> tuple[Any, ...]:
        difference = ops.solve(_detach(derivatives(x)), _detach(values(x)))
        x = ops.subtract(x, difference)
        change = ops.divide(ops.max(ops.abs(difference)), ops.maximum(ops.max(ops.abs(x)), 1.0))
        return x, change, ops.add(steps, 1)

    x, change, steps = ops.while_loop(
        lambda x, change, steps: ops.greater(change, precision),
        step,
        (x, ops.full_like(ops.max(ops.abs(x)), float("inf")), 0),
        maximum_iterations=maxiter,
    )
    info = ops.where(ops.less_equal(change, precision), ops.zeros_like(steps), ops.maximum(steps, 1))
    # Two more steps, for the derivatives: f is 0 here, so that the first step carries the first derivative of the root,
    # and the second step the second one.
    x = ops.subtract(x, ops.solve(_detach(derivatives(x)), values(x)))
    x = ops.subtract(x, ops.solve(derivatives(x), values(x)))
    return SolverResult(form.result(x), form.portable_number(info))

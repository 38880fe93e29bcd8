"""Solvers: agreement with NumPy and SciPy in double precision, gradients against formulas, and how they fail."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.errors import LinAlgError, UnsupportedOp
from ember_ml.nn.tensor import EmberTensor
from tests.reference.matrices import definite, difference, linalg, numpy, random, regular, wide

DTYPES = ("float32", "float64", "complex64", "complex128")
PRECISION = {"float32": 1e-6, "float64": 1e-13, "complex64": 1e-6, "complex128": 1e-13}


@pytest.fixture(params=DTYPES)
def dtype(request: pytest.FixtureRequest, backend: str) -> str:
    if backend == "mlx" and request.param == "complex128":
        pytest.skip("mlx has no complex128")
    return request.param


def relative(got: Any, want: Any) -> float:
    """The largest difference, measured against the largest magnitude."""
    return float(numpy.abs(wide(ops.to_numpy(got)) - want).max() / numpy.abs(want).max())


def laplacian(n: int) -> Any:
    """The matrix of second differences, whose condition grows with the square of its size."""
    return 2 * numpy.eye(n) - numpy.eye(n, k=1) - numpy.eye(n, k=-1)


@pytest.mark.parametrize("size", [1, 2, 40])
def test_conjugate_gradient_solves_definite_systems(size: int, dtype: str) -> None:
    A, b = definite((size, size), dtype), random((size,), dtype, seed=1)
    x, info = ops.conjugate_gradient(ops.asarray(A), ops.asarray(b), tol=PRECISION[dtype])
    assert ops.item(info) == 0
    assert ops.dtype(x) == dtype
    assert relative(x, linalg.solve(wide(A), wide(b))) < 20 * PRECISION[dtype]


@pytest.mark.parametrize("size", [1, 2, 50])
@pytest.mark.parametrize("restart", [5, 20, 100])
def test_gmres_solves_any_regular_system(size: int, restart: int, dtype: str) -> None:
    A, b = regular((size, size), dtype), random((size,), dtype, seed=1)
    x, info = ops.gmres(ops.asarray(A), ops.asarray(b), tol=PRECISION[dtype], restart=restart)
    assert ops.item(info) == 0
    assert ops.dtype(x) == dtype
    assert relative(x, linalg.solve(wide(A), wide(b))) < 20 * PRECISION[dtype]


@pytest.mark.parametrize("name", installed_backends())
@given(size=st.integers(1, 12), seed=st.integers(0, 1000), tolerance=st.sampled_from([1e-2, 1e-6, 1e-10]))
def test_residual_is_as_small_as_asked(name: str, size: int, seed: int, tolerance: float) -> None:
    b = random((size,), seed=seed + 1)
    with ember_ml.use_backend(name):
        for method, A in (
            ("conjugate_gradient", definite((size, size), seed=seed)),
            ("gmres", regular((size, size), seed=seed)),
        ):
            x, info = getattr(ops, method)(ops.asarray(A), ops.asarray(b), tol=tolerance)
            assert ops.item(info) == 0
            assert linalg.norm(A @ ops.to_numpy(x) - b) <= 1.000001 * tolerance * linalg.norm(b)


@pytest.mark.parametrize("name", installed_backends())
@given(roots=st.lists(st.floats(0.5, 3.0), min_size=1, max_size=4))
def test_newton_root_finds_roots_that_are_known(name: str, roots: list[float]) -> None:
    with ember_ml.use_backend(name):
        wanted = ops.array(roots, dtype="float64")
        x, info = ops.newton_root(lambda x: ops.subtract(ops.exp(x), ops.exp(wanted)), ops.add(wanted, 0.3))
        assert ops.item(info) == 0
        assert relative(x, ops.to_numpy(wanted)) < 1e-14


def test_conjugate_gradient_ends_after_as_many_steps_as_there_are_eigenvalues(backend: str) -> None:
    A = numpy.diag([1.0, 1.0, 5.0, 5.0, 9.0])
    calls = []

    def apply(v: Any) -> Any:
        calls.append(v)
        return ops.matmul(ops.asarray(A), v)

    found = ops.conjugate_gradient(apply, ops.asarray(random((5,))), tol=1e-12)
    assert ops.item(found.info) == 0
    assert len(calls) < 10  # 3 steps, the residuals of both passes, those of the derivatives


def test_ill_conditioned_system_to_the_accuracy_of_its_residual(backend: str) -> None:
    A, b = laplacian(60), random((60,))
    wanted = linalg.solve(A, b)
    for solve in (ops.conjugate_gradient, lambda *args, **options: ops.gmres(*args, restart=60, **options)):
        x, info = solve(ops.asarray(A), ops.asarray(b), tol=1e-11)
        assert ops.item(info) == 0
        assert linalg.norm(b - A @ ops.to_numpy(x)) <= 1.01e-11 * linalg.norm(b)
        assert relative(x, wanted) < 1e-8


def test_a_good_preconditioner_saves_steps(backend: str) -> None:
    A = laplacian(50) + numpy.diag(numpy.linspace(0, 100, 50))
    b = ops.asarray(random((50,)))
    inverse = ops.asarray(linalg.inv(A))
    jacobi = ops.asarray(1 / numpy.diag(A))
    for solve in (ops.conjugate_gradient, ops.gmres):
        for M, at_most in ((None, 100), (lambda v: ops.multiply(jacobi, v), 40), (inverse, 8)):
            calls = []

            def apply(v: Any, calls: list[Any] = calls) -> Any:
                calls.append(None)
                return ops.matmul(ops.asarray(A), v)

            x, info = solve(apply, b, tol=1e-10, M=M)
            assert ops.item(info) == 0
            assert relative(x, linalg.solve(A, ops.to_numpy(b))) < 1e-8
            assert len(calls) < at_most


def test_start_and_zero(backend: str) -> None:
    A, wanted = definite((8, 8)), random((8,), seed=2)
    b = A @ wanted
    for solve in (ops.conjugate_gradient, ops.gmres):
        x, info = solve(ops.asarray(A), ops.asarray(b), x0=ops.asarray(wanted), maxiter=0)
        assert ops.item(info) == 0
        assert relative(x, wanted) < 1e-14
        x, info = solve(ops.asarray(A), ops.zeros(8, dtype="float64"), x0=ops.asarray(wanted))
        assert (ops.to_numpy(x).tolist(), ops.item(info)) == ([0.0] * 8, 0)
        x, info = solve(ops.asarray(A), ops.asarray(b), atol=1e10)
        assert (ops.to_numpy(x).tolist(), ops.item(info)) == ([0.0] * 8, 0)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_squares_do_not_overflow(scale: float, backend: str) -> None:
    A, b = definite((6, 6), "float32"), random((6,), "float32")
    wanted = linalg.solve(wide(A), wide(b)) * scale
    for solve in (ops.conjugate_gradient, ops.gmres):
        x, info = solve(ops.asarray(A), ops.multiply(ops.asarray(b), scale))
        assert ops.item(info) == 0
        assert relative(x, wanted) < 1e-4


def test_what_is_not_reached_is_said(backend: str) -> None:
    A, b = ops.asarray(laplacian(60)), ops.asarray(random((60,)))
    assert ops.item(ops.conjugate_gradient(A, b, tol=1e-12, maxiter=7).info) == 7
    assert ops.item(ops.gmres(A, b, tol=1e-12, restart=5, maxiter=3).info) == 15
    assert ops.item(ops.conjugate_gradient(A, b, maxiter=0).info) == 1
    singular = ops.array([[1.0, 1.0], [1.0, 1.0]])
    for solve in (ops.conjugate_gradient, ops.gmres):
        assert ops.item(solve(singular, ops.array([1.0, -1.0]), maxiter=20).info) > 0
    indefinite = ops.array([[0.0, 1.0], [1.0, 0.0]])
    assert ops.item(ops.conjugate_gradient(indefinite, ops.array([1.0, -1.0])).info) == 0  # an eigenvector
    assert ops.item(ops.conjugate_gradient(indefinite, ops.array([1.0, 0.0]), maxiter=20).info) > 0
    assert ops.item(ops.gmres(indefinite, ops.array([1.0, 0.0])).info) == 0


def test_unknowns_in_containers(backend: str) -> None:
    A, b = definite((5, 5)), random((5,))
    wanted = linalg.solve(A, b)

    def apply(x: dict[str, Any]) -> Any:
        v = ops.concatenate([ops.reshape(x["grid"], (4,)), ops.reshape(x["rest"][0], (1,))])
        w = ops.matmul(ops.asarray(A), v)
        return {"grid": ops.reshape(w[:4], (2, 2)), "rest": (w[4],)}

    right = {"grid": ops.asarray(b[:4].reshape(2, 2)), "rest": (ops.asarray(b[4]),)}
    for solve in (ops.conjugate_gradient, ops.gmres):
        x, info = solve(apply, right, tol=1e-12)
        assert ops.item(info) == 0
        assert difference(ops.to_numpy(x["grid"]), wanted[:4].reshape(2, 2)) < 1e5
        assert difference(ops.to_numpy(x["rest"][0]), wanted[4]) < 1e5


def test_dtypes_and_portable_tensors(backend: str) -> None:
    A, b = [[4, 1], [1, 3]], [1, 2]
    for solve in (ops.conjugate_gradient, ops.gmres):
        assert ops.dtype(solve(ops.array(A), ops.array(b)).x) == ops.float32
        assert ops.dtype(solve(ops.array(A, dtype="float64"), ops.array(b, dtype="float32")).x) == ops.float32
        half = solve(ops.array(A, dtype="float16"), ops.array(b, dtype="float16"), tol=1e-6)
        assert (ops.dtype(half.x), ops.item(half.info)) == (ops.float16, 0)
        assert relative(half.x, numpy.array([1 / 11, 7 / 11])) < 1e-3
        x, info = solve(EmberTensor(A, dtype="float32"), ops.array(b))
        assert (type(x), type(info)) == (EmberTensor, EmberTensor)


@pytest.mark.parametrize("solve", ["conjugate_gradient", "gmres"])
def test_misuse_is_explained(solve: str, backend: str) -> None:
    function = getattr(ops, solve)
    with pytest.raises(
        ValueError, match=rf"ops\.{solve}: for 3 unknowns A must be a matrix of shape \(3, 3\), not \(2, 2\)"
    ):
        function(ops.eye(2), ops.ones(3))
    with pytest.raises(ValueError, match=r"what A gives must have the shape of the unknowns, \(3,\), not \(2,\)"):
        function(lambda v: v[:2], ops.ones(3))
    with pytest.raises(ValueError, match=r"x0 must have the shape"):
        function(ops.eye(3), ops.ones(3), x0=ops.ones(2))
    with pytest.raises(ValueError, match=r"what M gives must have the structure"):
        function(ops.eye(3), ops.ones(3), M=lambda v: (v, v))
    with pytest.raises(ValueError, match="restart"):
        ops.gmres(ops.eye(3), ops.ones(3), restart=0)


@pytest.mark.parametrize("form", ["matrix", "function"])
@pytest.mark.parametrize("method", ["conjugate_gradient", "gmres"])
def test_gradients_of_linear_solutions(method: str, form: str, backend: str) -> None:
    A = definite((6, 6)) if method == "conjugate_gradient" else regular((6, 6))
    b, weights = random((6,), seed=1), random((6,), seed=2)
    w = ops.asarray(weights)

    def loss(A: Any, b: Any) -> Any:
        operator = A if form == "matrix" else lambda v: ops.matmul(A, v)
        return ops.sum(ops.multiply(w, getattr(ops, method)(operator, b, tol=1e-13).x))

    by_matrix, by_vector = ops.grad(loss, argnums=(0, 1))(ops.asarray(A), ops.asarray(b))
    adjoint = linalg.solve(A.T, weights)
    assert relative(by_vector, adjoint) < 1e-11
    assert relative(by_matrix, -numpy.outer(adjoint, linalg.solve(A, b))) < 1e-11


@pytest.mark.parametrize("method", ["conjugate_gradient", "gmres"])
def test_second_derivative_of_a_linear_solution(method: str, backend: str) -> None:
    A = definite((5, 5)) if method == "conjugate_gradient" else regular((5, 5))
    b, weights = random((5,), seed=1), random((5,), seed=2)

    def loss(shift: Any) -> Any:
        x = getattr(ops, method)(
            lambda v: ops.add(ops.matmul(ops.asarray(A), v), ops.multiply(shift, v)), ops.asarray(b), tol=1e-13
        ).x
        return ops.sum(ops.multiply(ops.asarray(weights), x))

    found = ops.grad(ops.grad(loss))(ops.array(0.5, dtype="float64"))
    inverse = linalg.inv(A + 0.5 * numpy.eye(5))
    assert relative(found, numpy.asarray(2 * weights @ inverse @ inverse @ inverse @ b)) < 1e-9


def test_complex_gradients_follow_the_adjoint(backend: str) -> None:
    if backend == "mlx":
        pytest.skip("mlx has no complex128")
    A, b, weights = regular((4, 4), "complex128"), random((4,), "complex128", 1), random((4,), "complex128", 2)

    def loss(b: Any) -> Any:
        x = ops.gmres(lambda v: ops.matmul(ops.asarray(A), v), b, tol=1e-13).x
        return ops.real(ops.vdot(ops.asarray(weights), x))

    assert relative(ops.grad(loss)(ops.asarray(b)), linalg.solve(A.conj().T, weights)) < 1e-11


@pytest.mark.parametrize("dtype_name", ["float32", "float64"])
def test_newton_root_of_a_system(dtype_name: str, backend: str) -> None:
    def f(x: Any) -> Any:  # a circle and a cubic
        return ops.stack([x[0] * x[0] + x[1] * x[1] - 4.0, x[1] - x[0] * x[0] * x[0]])

    def jacobian(x: Any) -> Any:
        return ops.stack([ops.stack([x[0] * 2.0, x[1] * 2.0]), ops.stack([x[0] * x[0] * -3.0, ops.ones_like(x[0])])])

    roots = numpy.roots([1, 0, 0, 0, 1, 0, -4])  # of x^6 + x^2 - 4
    first = next(float(r.real) for r in roots if abs(r.imag) < 1e-12 and r.real > 0)
    for own in (None, jacobian):
        x, info = ops.newton_root(f, ops.array([1.0, 1.0], dtype=dtype_name), jacobian=own)
        assert ops.item(info) == 0
        assert ops.dtype(x) == dtype_name
        assert difference(ops.to_numpy(x), numpy.array([first, first**3])) < 8


def test_newton_root_of_containers_and_portable_tensors(backend: str) -> None:
    def f(p: dict[str, Any]) -> dict[str, Any]:
        return {"b": p["a"] - p["b"], "a": p["a"] * p["a"] + p["b"] * p["b"] - 2.0}

    x, info = ops.newton_root(f, {"a": EmberTensor([[2.0, 3.0]]), "b": EmberTensor([[0.5, 2.0]])})
    assert type(x["a"]) is EmberTensor
    assert ops.item(info) == 0
    assert difference(x["a"].numpy(), numpy.ones((1, 2))) < 4
    assert difference(x["b"].numpy(), numpy.ones((1, 2))) < 4


def test_newton_root_says_when_it_fails(backend: str) -> None:
    assert ops.item(ops.newton_root(lambda x: x * x + 1.0, ops.array(0.7), maxiter=6).info) == 6
    with pytest.raises(LinAlgError):
        ops.newton_root(lambda x: x * x + 1.0, ops.array(0.0))
    with pytest.raises(TypeError, match="give jacobian"):
        ops.newton_root(lambda z: z * z + 1.0, ops.array(1j))
    root = ops.newton_root(lambda z: z * z + 1.0, ops.array(1 + 1j), jacobian=lambda z: z * 2.0)
    assert abs(ops.item(root.x) - 1j) < 1e-6


def test_derivatives_of_a_root(backend: str) -> None:
    def root(a: Any) -> Any:  # x^3 + a x = 10 is solved by 2 where a is 1
        return ops.newton_root(lambda x: x * x * x + a * x - 10.0, ops.ones((), dtype="float64")).x

    a, x = ops.array(1.0, dtype="float64"), 2.0
    first = -x / (3 * x**2 + 1)
    assert ops.item(ops.grad(root)(a)) == pytest.approx(first, rel=1e-12)
    if backend == "mlx":
        return  # its engine loses second derivatives when a value is read after an inner derivative
    second = -(2 * first + 6 * x * first**2) / (3 * x**2 + 1)
    assert ops.item(ops.grad(ops.grad(root))(a)) == pytest.approx(second, rel=1e-10)


@pytest.mark.parametrize("transform", [ops.vmap, ops.compile])
def test_a_root_that_cannot_be_traced_says_so(backend: str, transform: Any) -> None:
    def root(p: Any) -> Any:
        return ops.newton_root(lambda x: ops.subtract(ops.multiply(x, x), p), ops.array(1.0))[0]

    x = ops.array([9.0, 9.0]) if transform is ops.vmap else ops.array(9.0)
    is_early = backend == "torch" and version("torch") < "2.13"  # which traces no derivative in a loop
    if is_early or backend == "mlx" or (backend in ("torch", "jax") and transform is ops.vmap):
        with pytest.raises(UnsupportedOp, match="loop"):
            transform(root)(x)
    else:
        assert ops.to_numpy(transform(root)(x)).ravel()[0] == pytest.approx(3.0)

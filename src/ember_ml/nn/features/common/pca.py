"""Principal components."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

from ember_ml import ops
from ember_ml.nn.features.common.estimator import Estimator
from ember_ml.nn.features.common.moments import Moments, center, column_moments, merge_moments
from ember_ml.nn.features.common.rows import read_rows
from ember_ml.nn.features.common.solvers import SOLVERS, Spectrum, choose_solver, decompose, full_spectrum
from ember_ml.ops.random import Generator
from ember_ml.typing import Tensor, TensorLike

__all__ = ["PCA"]


class PCA(Estimator):
    """Principal component analysis: the directions in which the data varies most, and the data in their coordinates.

    ``z = (x - mean) @ components.T``, with whitening divided by the deviations along the components. ``n_components``
    is their number: all where it is None; a fraction between 0 and 1 keeps as many as explain that part of the
    variance. Results have the dtype of the data, float32 where that is no float. Agrees with scikit-learn's ``PCA``,
    and ``partial_fit`` with its ``IncrementalPCA``.

    ``svd_solver`` is "full" (singular values of the data), "covariance_eigh" (eigenvalues of the covariance: quick for
    many rows of few columns), "randomized" (quick for few components of many; ``n_oversamples`` more directions than
    asked for, refined ``iterated_power`` times from a random start, which ``random_state`` fixes, the same on every
    backend), or "auto", which chooses as scikit-learn does.

    Learnt: ``components_``, ``explained_variance_``, ``explained_variance_ratio_``, ``singular_values_``, ``mean_`` and
    ``mean_rest_`` (what rounding took away from the mean), ``var_``, ``noise_variance_``, ``n_components_``,
    ``n_samples_seen_``, ``n_features_in_``, and ``feature_names_in_`` from a data frame.

    >>> from ember_ml import ops
    >>> from ember_ml.nn.features import PCA
    >>> pca = PCA(n_components=1).fit([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    >>> ops.to_numpy(ops.round(ops.abs(pca.transform([[9.0, 12.0]])))).tolist()
    [[10.0]]
    """

    components_: Tensor
    explained_variance_: Tensor
    explained_variance_ratio_: Tensor
    singular_values_: Tensor
    mean_: Tensor
    mean_rest_: Tensor
    var_: Tensor
    noise_variance_: Tensor
    n_components_: int
    n_samples_seen_: int
    n_features_in_: int
    feature_names_in_: list[str]

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        whiten: bool = False,
        svd_solver: str = "auto",
        n_oversamples: int = 10,
        iterated_power: int | str = "auto",
        random_state: int | Generator | None = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.n_oversamples = n_oversamples
        self.iterated_power = iterated_power
        self.random_state = random_state

    def fit(self, X: TensorLike, y: Any = None) -> Self:
        """Learn the components of the rows of ``X``, and forget what was learnt before."""
        if self.svd_solver not in SOLVERS:
            raise ValueError(f"svd_solver is one of {', '.join(SOLVERS)}, not {self.svd_solver!r}")
        rows = read_rows(self, X, fits=True, least=2)
        wanted = self._check_wanted(rows.x.shape)
        solver = choose_solver(self.svd_solver, rows.x.shape, wanted)
        found = column_moments(rows)
        spectrum = decompose(
            center(rows.x, found.mean, found.rest),
            solver,
            wanted,
            self.n_oversamples,
            self.iterated_power,
            self.random_state,
        )
        learnt = _describe_components(found, spectrum, wanted, min(rows.x.shape))
        self._forget()
        self._keep(**rows.columns(), **learnt)
        return self

    def _check_wanted(self, shape: tuple[int, ...]) -> int | float:
        """Return the number of components, or the fraction of the variance, that ``n_components`` asks for."""
        most = min(shape)
        wanted = most if self.n_components is None else self.n_components
        if isinstance(wanted, Integral) and 1 <= wanted <= most:
            return int(wanted)
        if isinstance(wanted, float) and 0.0 < wanted < 1.0:
            if self.svd_solver == "randomized":
                raise ValueError("the solver 'randomized' finds a number of components; for a fraction use 'full'")
            return wanted
        raise ValueError(
            f"n_components is a number from 1 to min(n_samples, n_features)={most}, a fraction between 0 and 1, "
            f"or None, not {wanted!r}"
        )

    def partial_fit(self, X: TensorLike, y: Any = None) -> Self:
        """Learn from some more rows, without the rows before: what was learnt of those stands for them.

        The components are exact as long as there are as many of them as the data has dimensions; else they are those
        of the nearest data of that many dimensions. The first batch must have as many rows as components.
        """
        rows = read_rows(self, X, fits=not self._get_learnt(), least=1)
        batch = column_moments(rows)
        x = center(rows.x, batch.mean, batch.rest)
        found, columns = batch, rows.columns()
        if self._get_learnt():
            columns = {}
            found, x = self._join_batch(x, batch)
        if found.count < 2:
            raise ValueError("the data has 1 sample while a minimum of 2 is required; one point varies in no direction")
        count = self._count_in_batches(rows.x.shape)
        self._keep(**columns, **_describe_components(found, full_spectrum(x), count, min(rows.x.shape)))
        return self

    def _join_batch(self, x: Tensor, batch: Moments) -> tuple[Moments, Tensor]:
        """Return the moments of all rows so far, and centered rows with the same scatter as all of them."""
        before = Moments(*(self._get_state(name, x) for name in ("n_samples_seen_", "mean_", "mean_rest_", "var_")))
        found = merge_moments(before, batch)
        distance = ops.add(ops.subtract(before.mean, batch.mean), ops.subtract(before.rest, batch.rest))
        moved = ops.multiply(distance, (before.count / found.count * batch.count) ** 0.5)
        lengths = ops.expand_dims(self._get_state("singular_values_", x), 1)
        old = ops.multiply(lengths, self._get_state("components_", x))
        return found, ops.concatenate([old, x, ops.expand_dims(moved, 0)], axis=0)

    def _count_in_batches(self, shape: tuple[int, ...]) -> int:
        rows, columns = shape
        if self._get_learnt():
            return self.n_components_
        count = min(shape) if self.n_components is None else self.n_components
        if not isinstance(count, Integral) or not 1 <= count <= columns:
            raise ValueError(f"partial_fit needs n_components from 1 to {columns} (n_features), not {count!r}")
        if count > rows:
            raise ValueError(f"the first batch has {rows} rows, too few for n_components={count}; give it more rows")
        return int(count)

    def transform(self, X: TensorLike) -> Tensor:
        """Return ``X`` in the coordinates of the components."""
        x, dtype, *_ = read_rows(self, X, fits=False)
        x = center(x, self._get_state("mean_", x), self._get_state("mean_rest_", x))
        z = ops.matmul(x, ops.matrix_transpose(self._get_state("components_", x)))
        return ops.cast(ops.divide(z, self._deviations(x)) if self.whiten else z, dtype)

    def fit_transform(self, X: TensorLike, y: Any = None) -> Tensor:
        """Learn from ``X``, and give it back in the coordinates of the components."""
        return self.fit(X).transform(X)

    def inverse_transform(self, X: TensorLike) -> Tensor:
        """Return the data whose coordinates are ``X``; what lay across the components is lost."""
        self._check_fitted()
        z, dtype, *_ = read_rows(self, X, fits=False, width=self.n_components_)
        if self.whiten:
            z = ops.multiply(z, self._deviations(z))
        x = ops.matmul(z, self._get_state("components_", z))
        return ops.cast(ops.add(ops.add(x, self._get_state("mean_rest_", z)), self._get_state("mean_", z)), dtype)

    def _deviations(self, x: Tensor) -> Tensor:
        """Return the standard deviations along the components; never 0."""
        found = ops.sqrt(self._get_state("explained_variance_", x))
        return ops.maximum(found, ops.finfo(ops.dtype(found)).eps)

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Return the names of the coordinates: pca0, pca1 and so on."""
        self._check_fitted()
        return [f"pca{i}" for i in range(self.n_components_)]


def _describe_components(found: Moments, spectrum: Spectrum, wanted: int | float, most: int) -> dict[str, Any]:
    """Return the learnt attributes from moments and spectrum; ``most`` is the number of components of the data."""
    freedom = float(found.count - 1)
    explained = ops.divide(ops.square(spectrum.lengths), freedom)
    total = ops.multiply(ops.sum(found.var), found.count / freedom)
    ratio = ops.divide(explained, total)
    count = wanted if isinstance(wanted, int) else _count_explaining(wanted, ratio)
    if count >= most:
        noise = ops.zeros_like(total)
    elif explained.shape[0] > count:
        noise = ops.mean(explained[count:])
    else:
        unexplained = ops.maximum(ops.subtract(total, ops.sum(explained)), 0.0)
        noise = ops.divide(unexplained, float(most - count))
    return {
        "components_": spectrum.directions[:count],
        "explained_variance_": explained[:count],
        "explained_variance_ratio_": ratio[:count],
        "singular_values_": spectrum.lengths[:count],
        "mean_": found.mean,
        "mean_rest_": found.rest,
        "var_": found.var,
        "noise_variance_": noise,
        "n_components_": count,
        "n_samples_seen_": found.count,
    }


def _count_explaining(part: float, ratio: Tensor) -> int:
    """Return how many of the first components explain more than ``part`` of the variance together."""
    reached = ops.to_numpy(ops.cumsum(ratio)).tolist()
    return min(sum(so_far <= part for so_far in reached) + 1, len(reached))

"""Scalers and principal components: the numbers of scikit-learn in float64, on every backend."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA as SklearnPCA
from sklearn.decomposition import IncrementalPCA
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.nn import features, tensor
from ember_ml.nn.features import PCA, Normalizer, Standardizer
from tests.nn.comparing import assert_close, assert_learnt
from tests.reference.tables import columns, low_rank, wide, with_gaps

DTYPES = ["float64", "float32"]


SCALERS = [
    (Standardizer, StandardScaler, {}, "mean_ var_ scale_"),
    (Standardizer, StandardScaler, {"with_mean": False}, "scale_"),
    (Standardizer, StandardScaler, {"with_std": False}, "mean_"),
    (Normalizer, MinMaxScaler, {}, "data_min_ data_max_ data_range_ scale_ min_"),
    (Normalizer, MinMaxScaler, {"feature_range": (-2, 3)}, "scale_ min_"),
    (Normalizer, MinMaxScaler, {"clip": True}, "scale_ min_"),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize(("ours", "theirs", "parameters", "learnt"), SCALERS)
def test_scalers_agree(
    ours: Any, theirs: Any, parameters: dict[str, Any], learnt: str, offset: float, dtype: str, backend: str
) -> None:
    data, new = columns(offset=offset, dtype=dtype), columns(7, offset=offset, dtype=dtype)
    mine = ours(**parameters).fit(data)
    reference = theirs(**parameters).fit(wide(data))
    assert_learnt(mine, reference, learnt)
    expected = reference.transform(wide(new))
    found = mine.transform(new)
    assert ops.dtype(found) == dtype
    assert_close(found, expected)
    assert_close(mine.inverse_transform(found), reference.inverse_transform(expected), 1e-6)
    if not parameters.get("clip"):
        assert_close(mine.inverse_transform(found), new, 1e-6)


@pytest.mark.parametrize(("ours", "theirs", "parameters", "learnt"), SCALERS)
def test_scalers_in_batches_agree(
    ours: Any, theirs: Any, parameters: dict[str, Any], learnt: str, backend: str
) -> None:
    data = columns(offset=100.0)
    mine, reference = ours(**parameters), theirs(**parameters)
    for start in (0, 7, 8, 30):
        batch = data[start : {0: 7, 7: 8, 8: 30, 30: 60}[start]]
        mine.partial_fit(batch)
        reference.partial_fit(batch)
    assert_learnt(mine, reference, learnt, 1e-12)
    assert mine.n_samples_seen_ == 60
    assert_close(mine.transform(data), ours(**parameters).fit(data).transform(data), 1e-12)


@pytest.mark.parametrize(("ours", "theirs"), [(Standardizer, StandardScaler), (Normalizer, MinMaxScaler)])
def test_missing_values_count_for_nothing_and_stay(ours: Any, theirs: Any, backend: str) -> None:
    data = with_gaps()
    reference = theirs().fit(data)
    mine = ours().fit(data)
    assert_close(mine.transform(data), reference.transform(data), 1e-12)
    batches = ours().partial_fit(data[:10]).partial_fit(data[10:])
    assert_close(batches.transform(data), reference.transform(data), 1e-12)
    batches = ours().partial_fit(data[10:]).partial_fit(data[:10])
    assert_close(batches.transform(data), reference.transform(data), 1e-12)


def test_the_values_of_each_column_are_counted(backend: str) -> None:
    scaler = Standardizer().fit(with_gaps())
    assert scaler.n_samples_seen_.tolist() == StandardScaler().fit(with_gaps()).n_samples_seen_.tolist()
    assert Standardizer().fit(columns()).n_samples_seen_ == 60


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [2, 3, 7, 10, 1000])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.3, -7e-7])
def test_constant_columns_become_zero(value: float, rows: int, dtype: str, backend: str) -> None:
    data = ops.full((rows, 2), value, dtype=dtype)
    scaler = Standardizer().fit(data)
    assert scaler.scale_.tolist() == [1.0, 1.0]
    assert ops.item(ops.max(ops.abs(scaler.transform(data)))) <= 1e-12 * abs(value)
    assert ops.to_numpy(Normalizer((-1, 1)).fit_transform(data)).tolist() == [[-1.0, -1.0]] * rows


@pytest.mark.parametrize("make", [features.standardize_features, features.normalize_features, features.pca])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8", "bool"])
def test_results_have_the_dtype_of_the_data(make: Any, dtype: str, backend: str) -> None:
    data = ops.cast(ops.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), dtype)
    estimator = make().fit(data)
    expected = dtype if "float" in dtype else "float32"
    found = estimator.transform(data)
    assert ops.dtype(found) == expected
    assert ops.dtype(estimator.inverse_transform(found)) == expected
    assert_close(estimator.inverse_transform(found), [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], 0.02)


# Principal components


LEARNT = "components_ explained_variance_ explained_variance_ratio_ singular_values_ mean_ noise_variance_"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("solver", "shape"), [("full", (30, 12)), ("full", (8, 40)), ("covariance_eigh", (90, 8))])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("offset", [0.0, 50.0])
def test_components_agree(
    solver: str, shape: tuple[int, int], whiten: bool, dtype: str, offset: float, backend: str
) -> None:
    data = low_rank(*shape, dtype=dtype, offset=offset)
    mine = PCA(3, svd_solver=solver, whiten=whiten).fit(data)
    reference = SklearnPCA(3, svd_solver="full", whiten=whiten).fit(wide(data))
    assert_learnt(mine, reference, LEARNT)
    expected = reference.transform(wide(data))
    found = mine.transform(data)
    assert_close(found, expected)
    assert_close(mine.inverse_transform(found), reference.inverse_transform(expected))
    assert_close(PCA(3, svd_solver=solver, whiten=whiten).fit_transform(data), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40, 300), (300, 40)])
def test_the_randomized_solver_finds_the_largest_components(shape: tuple[int, int], dtype: str, backend: str) -> None:
    data = low_rank(*shape, dtype=dtype)
    mine = PCA(4, svd_solver="randomized", iterated_power=10, random_state=3).fit(data)
    reference = SklearnPCA(4, svd_solver="full").fit(wide(data))
    assert_learnt(mine, reference, LEARNT)
    assert_close(mine.transform(data), reference.transform(wide(data)))


def test_the_randomized_solver_is_exact_for_data_of_few_dimensions(backend: str) -> None:
    data = low_rank(25, 700, rank=4)
    mine, reference = PCA(4, random_state=3).fit(data), SklearnPCA(4, svd_solver="full").fit(data)
    assert_learnt(mine, reference, LEARNT.removesuffix("noise_variance_"), 1e-9)


def test_the_random_start_is_the_same_on_every_backend(backend: str) -> None:
    data = columns(30, 60)
    with ember_ml.use_backend("numpy"):
        expected = PCA(3, svd_solver="randomized", iterated_power=0, n_oversamples=0, random_state=5).fit(data)
    found = PCA(3, svd_solver="randomized", iterated_power=0, n_oversamples=0, random_state=5).fit(data)
    assert_learnt(found, expected, "components_ singular_values_", 1e-9)
    other = PCA(3, svd_solver="randomized", iterated_power=0, n_oversamples=0, random_state=6).fit(data)
    assert not ops.allclose(other.singular_values_, found.singular_values_, rtol=1e-3)


@pytest.mark.parametrize("count", [3, None])
def test_components_in_batches_agree(count: int | None, backend: str) -> None:
    data = low_rank(60, 10, offset=20.0)
    mine, reference = PCA(count), IncrementalPCA(count)
    for start in (0, 12, 40):
        batch = data[start : {0: 12, 12: 40, 40: 60}[start]]
        mine.partial_fit(batch)
        reference.partial_fit(batch)
    names = "components_ explained_variance_ explained_variance_ratio_ singular_values_ mean_ var_"
    assert_learnt(mine, reference, names, 1e-9)
    assert ops.item(mine.noise_variance_) == pytest.approx(reference.noise_variance_, rel=1e-9)
    assert mine.n_samples_seen_ == 60
    assert_close(mine.transform(data), reference.transform(data), 1e-9)


def test_all_components_in_batches_are_those_of_all_rows(backend: str) -> None:
    data = columns(60, 5)
    at_once = PCA().fit(data)
    for batches in (PCA().partial_fit(data[:20]).partial_fit(data[20:]), PCA().fit(data[:20]).partial_fit(data[20:])):
        assert_learnt(batches, at_once, "components_ explained_variance_ singular_values_", 1e-9)


@pytest.mark.parametrize("part", [0.5, 0.9, 0.999])
def test_a_fraction_keeps_what_explains_that_part(part: float, backend: str) -> None:
    data = low_rank(50, 12)
    mine, reference = PCA(part).fit(data), SklearnPCA(part).fit(data)
    assert mine.n_components_ == reference.n_components_
    assert_learnt(mine, reference, LEARNT)
    assert float(ops.item(ops.sum(mine.explained_variance_ratio_))) > part


@pytest.mark.parametrize(
    ("shape", "count", "solver"),
    [
        ((400, 40), 3, "covariance_eigh"),
        ((300, 40), 3, "full"),
        ((600, 70), 3, "randomized"),
        ((20, 800), 3, "randomized"),
        ((20, 800), 18, "full"),
        ((600, 70), 0.9, "full"),
    ],
)
def test_auto_chooses_as_scikit_learn_does(shape: tuple[int, int], count: float, solver: str) -> None:
    from ember_ml.nn.features.common.solvers import choose_solver

    assert choose_solver("auto", shape, count) == solver
    assert SklearnPCA(count).fit(columns(*shape))._fit_svd_solver == solver


@given(
    rows=st.integers(2, 12),
    columns=st.integers(1, 6),
    seed=st.integers(0, 100),
    name=st.sampled_from(installed_backends()),
)
def test_all_components_lose_nothing_and_are_orthonormal(rows: int, columns: int, seed: int, name: str) -> None:
    with ember_ml.use_backend(name):
        data = ops.random_normal((rows, columns), dtype="float64", seed=seed)
        pca = PCA().fit(data)
        count = min(rows, columns)
        products = ops.matmul(pca.components_, ops.matrix_transpose(pca.components_))
        assert_close(products, ops.eye(count, dtype="float64"), 1e-10)
        if rows > columns:
            assert_close(pca.inverse_transform(pca.transform(data)), data, 1e-10)
        variances = pca.explained_variance_.tolist()
        assert variances == sorted(variances, reverse=True)
        assert sum(variances) == pytest.approx(ops.item(ops.sum(ops.var(data, axis=0, correction=1))), rel=1e-9)


@given(seed=st.integers(0, 100), cut=st.integers(1, 19), name=st.sampled_from(installed_backends()))
def test_where_the_batches_are_cut_changes_nothing(seed: int, cut: int, name: str) -> None:
    with ember_ml.use_backend(name):
        data = ops.random_normal((20, 3), mean=1000.0, dtype="float32", seed=seed)
        for make in (Standardizer, Normalizer):
            batches = make().partial_fit(data[:cut]).partial_fit(data[cut:])
            assert_close(batches.transform(data), make().fit_transform(data), 2e-6)


# What is refused


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "from 1 to"),
        ({"n_components": 4}, "=3"),
        ({"n_components": 1.5}, "a fraction between 0 and 1"),
        ({"n_components": "mle"}, "n_components is a number"),
        ({"n_components": 0.5, "svd_solver": "randomized"}, "use 'full'"),
        ({"svd_solver": "arpack"}, "svd_solver is one of auto, full"),
        ({"n_components": 2, "svd_solver": "randomized", "iterated_power": -1}, "iterated_power"),
        ({"n_components": 2, "svd_solver": "randomized", "n_oversamples": -1}, "n_oversamples"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str, backend: str) -> None:
    with pytest.raises(ValueError, match=message):
        PCA(**parameters).fit(columns(10, 3))


def test_batches_too_small_for_the_components(backend: str) -> None:
    with pytest.raises(ValueError, match="first batch has 2 rows"):
        PCA(3).partial_fit(columns(2, 5))
    with pytest.raises(ValueError, match="1 sample"):
        PCA(1).partial_fit(columns(1, 5))
    with pytest.raises(ValueError, match="from 1 to 5"):
        PCA(0.5).partial_fit(columns(8, 5))


def test_a_range_must_ascend(backend: str) -> None:
    with pytest.raises(ValueError, match="low below high"):
        Normalizer((1, 1)).fit(columns())


def test_the_functions_that_need_no_fitting_are_the_ops(backend: str) -> None:
    assert features.one_hot is ops.one_hot
    assert features.scatter is ops.scatter
    assert ops.to_numpy(features.one_hot([1, 0], 2)).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert features.scatter(tensor.array([1.0, 2.0, 4.0]), tensor.array([0, 1, 0])).tolist() == [5.0, 2.0]

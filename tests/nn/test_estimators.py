"""The manners of estimators: scikit-learn's conventions, kinds of tensors, switches of the backend, saved state."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.errors import NotFitted, WrongData
from ember_ml.nn import features, tensor
from ember_ml.nn.features import PCA, Normalizer, Standardizer

ESTIMATORS = [Standardizer(), Normalizer(), PCA(2, random_state=0)]
DATA = [[1.0, 2.0, 0.5], [4.0, 1.0, 2.5], [0.0, 3.0, 1.0], [2.0, 7.0, 4.0], [3.0, 5.0, 9.0]]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)

# NumPy's arrays are the native tensors of the backend numpy, and there every check holds. Elsewhere results are that
# library's tensors, of which these checks ask what only NumPy's arrays have.
DOES_NOT_APPLY = {
    "numpy": {},
    "torch": {
        "check_array_api_input": "asks that the result of NumPy's arrays is NumPy's",
        "check_fit_idempotent": "asks NumPy about the dtype of the result",
        "check_transformer_preserve_dtypes": "compares the dtype of the result with NumPy's",
    },
    "mlx": {
        "check_array_api_input": "asks that the result of NumPy's arrays is NumPy's",
        "check_fit_idempotent": "asks NumPy about the dtype of the result",
        "check_transformer_preserve_dtypes": "compares the dtype of the result with NumPy's",
        "check_methods_sample_order_invariance": "takes rows of the result by a NumPy array, which MLX does not",
    },
    "jax": {"check_array_api_input": "asks that the result of NumPy's arrays is NumPy's"},
}


@pytest.fixture
def on_the_host(backend: str) -> Iterator[None]:
    """Compute on the CPU, whose memory is all that scikit-learn reads."""
    with ops.use_device("cpu"):
        yield


@each
@pytest.mark.usefixtures("on_the_host")
def test_scikit_learn_checks_the_estimator(estimator: Any, backend: str) -> None:
    excused = DOES_NOT_APPLY.get(backend, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they say that the class is not derived from scikit-learn's
        done = check_estimator(type(estimator)(), expected_failed_checks=excused, on_skip=None, on_fail=None)
    failed = {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"}
    assert not failed
    assert {check["check_name"] for check in done if check["status"] == "xfail"} == set(excused)
    assert not [check["check_name"] for check in done if check["status"] == "skipped"]
    assert sum(check["status"] == "passed" for check in done) >= 42


@each
def test_parameters(estimator: Any) -> None:
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert eval(repr(estimator)).get_params() == estimator.get_params()
    assert copy.set_params(**estimator.get_params()) is copy
    with pytest.raises(ValueError, match="has no parameter 'copy'"):
        copy.set_params(copy=True)


def test_the_functions_make_estimators_with_their_parameters() -> None:
    made = features.pca(3, whiten=True, svd_solver="full", n_oversamples=2, iterated_power=1, random_state=4)
    assert repr(made) == (
        "PCA(n_components=3, whiten=True, svd_solver='full', n_oversamples=2, iterated_power=1, random_state=4)"
    )
    assert repr(features.pca()) == "PCA()"
    assert repr(features.standardize_features(with_mean=False)) == "Standardizer(with_mean=False)"
    assert repr(features.normalize_features((0, 2), clip=True)) == "Normalizer(feature_range=(0, 2), clip=True)"


@each
def test_what_is_asked_of_an_estimator_that_learnt_nothing(estimator: Any, backend: str) -> None:
    for method in ("transform", "inverse_transform"):
        with pytest.raises(NotFitted, match=r"call fit\(X\)"):
            getattr(clone(estimator), method)(DATA)
    for method in ("state_dict", "get_feature_names_out"):
        with pytest.raises(NotFitted):
            getattr(clone(estimator), method)()
    check_is_fitted(clone(estimator).fit(DATA))


@each
def test_a_fit_that_fails_leaves_what_was_learnt(estimator: Any, backend: str) -> None:
    fitted = clone(estimator).fit(DATA)
    expected = ops.to_numpy(fitted.transform(DATA)).tolist()
    for wrong in ([[1.0, float("inf"), 2.0]] * 3, [[1.0, 2.0]] * 0, [[1j, 2.0]] * 3):
        with pytest.raises(ValueError, match=r"infinity|0 sample|2-D|Complex"):
            fitted.fit(wrong)
    assert ops.to_numpy(fitted.transform(DATA)).tolist() == expected


@each
def test_complex_data_is_wrong_data(estimator: Any, backend: str) -> None:
    with pytest.raises(WrongData, match="real numbers") as caught:
        clone(estimator).fit([[1j, 2.0], [0.5, 1.0]])
    assert isinstance(caught.value, TypeError)


@pytest.mark.usefixtures("on_the_host")
def test_a_pipeline_and_a_search_of_scikit_learn(backend: str) -> None:
    target = [sum(row) for row in DATA]
    steps = make_pipeline(features.standardize_features(), features.pca(), features.normalize_features())
    theirs = make_pipeline(StandardScaler(), LinearRegression()).fit(DATA, target).predict(DATA)
    model = make_pipeline(*(step for _, step in steps.steps), LinearRegression()).fit(DATA, target)
    assert model.predict(DATA).tolist() == pytest.approx(theirs.tolist(), rel=1e-4)
    search = GridSearchCV(model, {"pca__n_components": [1, 2]}, cv=2, error_score="raise").fit(DATA, target)
    assert search.best_params_["pca__n_components"] in (1, 2)


# Kinds


@each
def test_portable_data_gives_portable_results(estimator: Any, backend: str) -> None:
    fitted = clone(estimator).fit(tensor.array(DATA))
    found = fitted.transform(tensor.array(DATA))
    assert type(found) is tensor.EmberTensor
    assert type(fitted.inverse_transform(found)) is tensor.EmberTensor
    assert type(clone(estimator).fit_transform(tensor.array(DATA))) is tensor.EmberTensor


@each
def test_all_other_data_gives_native_results(estimator: Any, backend: str) -> None:
    native = type(ops.zeros(1))
    with ember_ml.use_backend("numpy"):
        host = ops.array(DATA)
    expected = ops.to_numpy(clone(estimator).fit_transform(DATA)).tolist()
    for data in (DATA, tuple(map(tuple, DATA)), ops.array(DATA), host):
        fitted = clone(estimator).fit(data)
        found = fitted.transform(data)
        assert type(found) is native
        assert ops.to_numpy(found).tolist() == expected
        assert type(fitted.inverse_transform(found)) is native


@each
@pytest.mark.parametrize("other", installed_backends())
def test_what_was_learnt_follows_a_switch(estimator: Any, other: str, backend: str) -> None:
    fitted = clone(estimator).fit(DATA)
    expected = ops.to_numpy(fitted.transform(DATA)).tolist()
    with ember_ml.use_backend(other):
        inside = fitted.transform(DATA)
        assert type(inside) is type(ops.zeros(1))
    assert all(learnt.backend == backend for learnt in _tensors(fitted))
    before = ember_ml.get_backend()
    try:
        ember_ml.set_backend(other)
        after = fitted.transform(ops.array(DATA))
        fitted.inverse_transform(after)
        assert type(after) is type(ops.zeros(1))
        assert fitted.partial_fit(DATA).n_samples_seen_ == 10
        assert all(learnt.backend == other for learnt in _tensors(fitted))
    finally:
        ember_ml.set_backend(before)
    for found in (inside, after):
        assert ops.to_numpy(found).ravel().tolist() == pytest.approx(_flat(expected), rel=1e-5, abs=1e-5)


def _flat(rows: list[list[float]]) -> list[float]:
    return [value for row in rows for value in row]


def _tensors(estimator: Any) -> list[Any]:
    return [value for value in vars(estimator).values() if type(value) is tensor.EmberTensor]


@each
def test_results_can_be_differentiated(estimator: Any, backend: str) -> None:
    fitted = clone(estimator).fit(DATA)

    def size(x: Any) -> Any:
        return ops.sum(ops.square(fitted.transform(x)))

    slope = ember_ml.grad(size)(ops.array(DATA))
    step = 1e-2
    moved = [[x + (step if (i, j) == (1, 2) else 0.0) for j, x in enumerate(row)] for i, row in enumerate(DATA)]
    back = [[x - (step if (i, j) == (1, 2) else 0.0) for j, x in enumerate(row)] for i, row in enumerate(DATA)]
    expected = (ops.item(size(moved)) - ops.item(size(back))) / (2 * step)
    assert ops.to_numpy(slope)[1][2] == pytest.approx(expected, rel=1e-2, abs=1e-3)


@each
def test_fitting_keeps_no_gradient(estimator: Any, backend: str) -> None:
    data = tensor.convert_to_tensor(DATA, requires_grad=True)
    fitted = clone(estimator).fit(data)
    assert not any(learnt.requires_grad for learnt in _tensors(fitted))


@each
def test_transform_can_be_compiled(estimator: Any, backend: str) -> None:
    fitted = clone(estimator).fit(DATA)
    x = ops.array(DATA)
    found = ember_ml.compile(fitted.transform)(x)
    expected = _flat(ops.to_numpy(fitted.transform(x)).tolist())
    assert ops.to_numpy(found).ravel().tolist() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("make", [Standardizer, Normalizer])
def test_fitting_needs_values(make: Any, backend: str) -> None:
    def fit(x: Any) -> Any:
        return make().fit(x).transform(x)

    compiled = ember_ml.compile(fit)
    if backend == "numpy":  # which compiles nothing
        assert compiled(ops.array(DATA)).shape[0] == 5
        return
    with pytest.raises(TypeError, match="fit outside of it"):
        compiled(ops.array(DATA))


# State


@each
def test_state_is_saved_and_loaded(estimator: Any, backend: str, tmp_path: Path) -> None:
    fitted = clone(estimator).fit(pandas.DataFrame(DATA, columns=["a", "b", "ü"]))
    expected = ops.to_numpy(fitted.transform(DATA)).tolist()
    path = tmp_path / "state.safetensors"
    state = fitted.state_dict()
    assert all(type(value) is tensor.EmberTensor for value in state.values())
    ops.save(path, state)
    before = ember_ml.get_backend()
    for name in installed_backends():
        try:
            ember_ml.set_backend(name)
            loaded = clone(estimator).load_state_dict(ops.load(path))
            assert loaded.feature_names_in_ == ["a", "b", "ü"]
            found = ops.to_numpy(loaded.transform(DATA)).ravel().tolist()
            assert found == pytest.approx(_flat(expected), rel=1e-5, abs=1e-6)
            assert loaded.partial_fit(DATA).n_samples_seen_ == 10
        finally:
            ember_ml.set_backend(before)


@each
def test_pickled_estimators_are_the_same(estimator: Any, backend: str) -> None:
    fitted = clone(estimator).fit(DATA)
    loaded = pickle.loads(pickle.dumps(fitted))
    assert ops.to_numpy(loaded.transform(DATA)).tolist() == ops.to_numpy(fitted.transform(DATA)).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"facts": None}, "no readable tensor 'facts'"),
        ({"facts": [1, 2, 3]}, "no readable tensor 'facts'"),
        ({"facts": list(b"[1]")}, "the state of a None"),
        ({"facts": list(b'{"class": "PCA"}')}, "the state of a PCA, not of a Standardizer"),
        ({"transform": [1.0]}, "learns no 'transform'"),
        ({"__class__": [1.0]}, "learns no '__class__'"),
        ({"components_": [1.0]}, "learns no 'components_'"),
        ({"scale_": None}, "'scale_' is missing"),
        ({"facts": list(b'{"class": "Standardizer", "fit": 1}')}, "learns no 'fit'"),
        ({"facts": list(b'{"class": "Standardizer"}')}, "'n_features_in_' is missing"),
    ],
)
def test_a_damaged_state_is_refused(change: dict[str, Any], message: str, backend: str) -> None:
    state: dict[str, Any] = {**Standardizer().fit(DATA).state_dict(), **change}
    scaler = Standardizer().fit([[1.0]] * 2)
    with pytest.raises(ValueError, match=message):
        scaler.load_state_dict({name: value for name, value in state.items() if value is not None})
    assert scaler.mean_.tolist() == [1.0]


# Data frames


@pytest.mark.parametrize(("library", "name"), [("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")])
@each
def test_data_frames_give_their_names(estimator: Any, library: str, name: str, backend: str) -> None:
    frame: Any = getattr(pytest.importorskip(library), name)
    columns = {name: [row[i] for row in DATA] for i, name in enumerate("abc")}
    fitted = clone(estimator).fit(frame(columns))
    assert fitted.feature_names_in_ == ["a", "b", "c"]
    expected = ops.to_numpy(clone(estimator).fit_transform(DATA)).ravel().tolist()
    for data in (frame(columns), DATA):
        assert ops.to_numpy(fitted.transform(data)).ravel().tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5)
    with pytest.raises(ValueError, match="was fitted to"):
        fitted.transform(frame({"a": columns["a"], "c": columns["c"], "b": columns["b"]}))
    names = ["pca0", "pca1"] if isinstance(estimator, PCA) else ["a", "b", "c"]
    assert fitted.get_feature_names_out() == names


def test_names_of_columns_without_names() -> None:
    assert Standardizer().fit(DATA).get_feature_names_out() == ["x0", "x1", "x2"]
    assert Standardizer().fit(DATA).get_feature_names_out(["u", "v", "w"]) == ["u", "v", "w"]
    assert not hasattr(Standardizer().fit(pandas.DataFrame(DATA)), "feature_names_in_")

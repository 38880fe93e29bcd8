"""Features of data frames of every library that there is, on every backend."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.errors import NotFitted
from ember_ml.features import TableFeatures, tables
from ember_ml.nn import features

DAY = datetime.datetime(2024, 2, 29, 13, 5, 6)  # a Thursday
TABLE: dict[str, list[Any]] = {
    "count": [1, None, 3, 4],
    "size": [0.5, 1.5, None, 4.0],
    "flag": [True, False, True, True],
    "colour": ["red", None, "blue", "red"],
    "when": [DAY, None, datetime.datetime(2023, 1, 1), DAY],
}
NAMES = [
    *("count", "size", "flag", "colour_blue", "colour_red"),
    *("when_year", "when_month", "when_day", "when_weekday", "when_hour", "when_minute", "when_second"),
]
YEAR, MONTH, DAYS, WEEKDAY, HOUR, MINUTE, SECOND = [
    (2 * day + new) / 3 for day, new in zip((2024, 2, 29, 4, 13, 5, 6), (2023, 1, 1, 7, 0, 0, 0), strict=True)
]
EXPECTED = [
    [1.0, 0.5, 1.0, 0.0, 1.0, 2024.0, 2.0, 29.0, 4.0, 13.0, 5.0, 6.0],
    [8.0 / 3.0, 1.5, 0.0, 0.0, 0.0, YEAR, MONTH, DAYS, WEEKDAY, HOUR, MINUTE, SECOND],
    [3.0, 2.0, 1.0, 1.0, 0.0, 2023.0, 1.0, 1.0, 7.0, 0.0, 0.0, 0.0],
    [4.0, 4.0, 1.0, 0.0, 1.0, 2024.0, 2.0, 29.0, 4.0, 13.0, 5.0, 6.0],
]
FRAMES: dict[str, Any] = {
    "pandas": pandas.DataFrame,
    "pandas-nullable": lambda data: pandas.DataFrame(data).convert_dtypes(),
    "pandas-arrow": lambda data: pyarrow.table(data).to_pandas(types_mapper=pandas.ArrowDtype),
    "polars": polars.DataFrame,
    "arrow": pyarrow.table,
}
each = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)


def _rows(x: Any) -> list[list[float]]:
    return ops.to_numpy(x).tolist()


def _same(found: Any, expected: list[list[float]]) -> None:
    assert [len(row) for row in _rows(found)] == [len(row) for row in expected]
    for row, wanted in zip(_rows(found), expected, strict=True):
        assert row == pytest.approx(wanted, rel=1e-6)


@each
def test_every_kind_of_column(make: Any, backend: str) -> None:
    extractor = TableFeatures().fit(make(TABLE))
    found = extractor.transform(make(TABLE))
    assert type(found) is type(ops.zeros(1))
    assert ops.dtype(found) == "float32"
    assert extractor.get_feature_names_out() == NAMES
    assert extractor.feature_names_in_ == list(TABLE)
    _same(found, EXPECTED)


@each
def test_what_fit_did_not_see(make: Any, backend: str) -> None:
    extractor = TableFeatures(["colour", "size"]).fit(make(TABLE))
    _same(extractor(make({"size": [7.0], "other": ["x"], "colour": ["green"]})), [[0.0, 0.0, 7.0]])
    _same(extractor(make({"size": [None], "colour": [None]})), [[0.0, 0.0, 2.0]])


def test_a_table_fitted_by_one_library_reads_those_of_others(backend: str) -> None:
    extractor = TableFeatures().fit(polars.DataFrame(TABLE))
    _same(extractor(pandas.DataFrame(TABLE)), EXPECTED)


def test_dates_and_categories(backend: str) -> None:
    frame = polars.DataFrame({"day": [DAY.date()], "kind": polars.Series(["b"], dtype=polars.Categorical)})
    extractor = TableFeatures(dtype="float64").fit(frame)
    assert extractor.get_feature_names_out() == ["day_year", "day_month", "day_day", "day_weekday", "kind_b"]
    assert ops.dtype(extractor(frame)) == "float64"
    _same(extractor(frame), [[2024.0, 2.0, 29.0, 4.0, 1.0]])
    kinds = pandas.DataFrame({"kind": pandas.Categorical(["b", "a"])})
    _same(TableFeatures().fit_transform(kinds), [[0.0, 1.0], [1.0, 0.0]])


def test_a_column_without_numbers_becomes_zero(backend: str) -> None:
    _same(TableFeatures().fit_transform(polars.DataFrame({"x": polars.Series([None], dtype=polars.Float64)})), [[0.0]])


def test_a_pipeline(backend: str) -> None:
    steps = make_pipeline(TableFeatures(["count", "size"]), features.standardize_features())
    found = steps.fit_transform(pandas.DataFrame(TABLE))
    assert ops.to_numpy(ops.mean(found, axis=0)).tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    assert steps.get_feature_names_out() == ["count", "size"]
    assert clone(steps[0]).get_params()["columns"] == ["count", "size"]


def test_state_is_saved_and_follows_the_backend(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "table.safetensors"
    ops.save(path, TableFeatures().fit(polars.DataFrame(TABLE)).state_dict())
    for name in installed_backends():
        with ember_ml.use_backend(name):
            loaded = TableFeatures().load_state_dict(ops.load(path))
            _same(loaded(polars.DataFrame(TABLE)), EXPECTED)
            assert loaded.get_feature_names_out() == NAMES


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"x": [[1.0], [2.0]]}, TypeError, "'x' is of dtype List"),
        ({"x": [None]}, TypeError, "'x' is of dtype"),
        ({"x": polars.Series([None], dtype=polars.String)}, ValueError, "'x' has no value"),
        ({"x": polars.Series([], dtype=polars.Float64)}, ValueError, "0 rows"),
        ({}, ValueError, "0 columns"),
    ],
)
def test_columns_of_which_no_features_are_made(data: Any, error: Any, message: str, backend: str) -> None:
    with pytest.raises(error, match=message):
        TableFeatures().fit(polars.DataFrame(data))


def test_what_is_refused(backend: str) -> None:
    extractor = TableFeatures().fit(polars.DataFrame({"a": [1.0], "b": ["x"]}))
    with pytest.raises(ValueError, match="no column 'b'; it has 'a'"):
        extractor(polars.DataFrame({"a": [1.0]}))
    with pytest.raises(TypeError, match="'b' was a category in fit, and is of dtype Int64"):
        extractor(polars.DataFrame({"a": [1.0], "b": [3]}))
    with pytest.raises(TypeError, match="data frame"):
        extractor([[1.0, 2.0]])
    with pytest.raises(TypeError, match="collected"):
        extractor(polars.LazyFrame({"a": [1.0]}))
    with pytest.raises(NotFitted):
        TableFeatures()(polars.DataFrame({"a": [1.0]}))


def test_without_narwhals_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    tables._import_narwhals.cache_clear()
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    with pytest.raises(ImportError, match=r"pip install 'ember-ml\[tables\]'"):
        TableFeatures().fit(polars.DataFrame(TABLE))


def test_narwhals_is_loaded_when_a_table_comes_and_scikit_learn_never() -> None:
    code = (
        "import sys, ember_ml, ember_ml.features, ember_ml.nn.features as f\n"
        "ember_ml.set_backend('numpy')\n"
        "f.pca().fit([[1.0, 2.0], [3.0, 5.0]]).transform([[1.0, 2.0]])\n"
        "repr(f.pca()), f.pca().get_params()\n"
        "assert not {'narwhals', 'sklearn', 'pandas', 'polars', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

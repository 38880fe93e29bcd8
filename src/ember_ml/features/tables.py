"""Features of data frames, of whichever library: pandas, Polars, Arrow and all others that narwhals reads."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Self

from ember_ml import ops
from ember_ml.features.base import FeatureExtractor
from ember_ml.typing import DTypeLike, Tensor

__all__ = ["TableFeatures"]

_DATE = ("year", "month", "day", "weekday")
_TIME = ("hour", "minute", "second")


class TableFeatures(FeatureExtractor):
    """The columns of a data frame as a matrix of numbers; what the columns hold is learnt in ``fit``.

    - Numbers and bools stay one column. A missing value becomes the mean of those that ``fit`` saw, else 0.
    - Texts and categories become a column for each category that ``fit`` saw, in alphabetical order: 1 in that of the
      value, and 0 in all for a value that is missing or was not seen.
    - Dates become the columns year, month, day and weekday (Monday is 1), and with a time of day hour, minute and
      second, which may miss values as numbers may.

    ``columns`` are the names of those to take, in this order; all by default. The result is a native tensor of the
    active backend, of ``dtype``. Learnt: ``columns_`` (how each column becomes numbers), ``fill_``, ``n_features_in_``
    and ``feature_names_in_``. Needs the extra ``tables``: ``pip install 'ember-ml[tables]'``.

    >>> import pandas
    >>> from ember_ml import ops
    >>> from ember_ml.features import TableFeatures
    >>> table = pandas.DataFrame({"size": [1.0, None, 3.0], "colour": ["red", "blue", None]})
    >>> extract = TableFeatures().fit(table)
    >>> extract.get_feature_names_out()
    ['size', 'colour_blue', 'colour_red']
    >>> ops.to_numpy(extract(table)).tolist()
    [[1.0, 0.0, 1.0], [2.0, 1.0, 0.0], [3.0, 0.0, 0.0]]
    """

    _needs_fit = True
    _takes_missing = True

    columns_: list[dict[str, Any]]
    fill_: Tensor
    n_features_in_: int
    feature_names_in_: list[str]

    def __init__(self, columns: Sequence[str] | None = None, *, dtype: DTypeLike = "float32") -> None:
        self.columns = columns
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kinds and categories of the columns of a data frame, and the means of its numbers."""
        frame = _read(X)
        names = list(frame.columns if self.columns is None else self.columns)
        if not names or not len(frame):
            raise ValueError(f"there is nothing to learn from a table of {len(frame)} rows and {len(names)} columns")
        described = [_describe(name, _find_column(frame, name)) for name in names]
        means = ops.nanmean(self._make_matrix(frame, described), axis=0)
        self._forget()
        self._keep(
            columns_=described,
            fill_=ops.where(ops.isnan(means), ops.zeros_like(means), means),
            n_features_in_=len(names),
            feature_names_in_=names,
        )
        return self

    def extract(self, data: Any) -> Tensor:
        """Return the feature matrix of a data frame with the columns that ``fit`` saw, and maybe others."""
        self._check_fitted()
        x = self._make_matrix(_read(data), self.columns_)
        return ops.where(ops.isnan(x), ops.cast(self._get_state("fill_", x), ops.dtype(x)), x)

    def _make_matrix(self, frame: Any, described: list[dict[str, Any]]) -> Tensor:
        """Return the features with NaN for what is missing."""
        return ops.concatenate([self._make_features(frame, column) for column in described], axis=1)

    def _make_features(self, frame: Any, column: dict[str, Any]) -> Tensor:
        """Return the features of one column, as described."""
        series, kind, parts = _find_column(frame, column["name"]), column["kind"], column["parts"]
        if series.null_count() == len(series):  # a column of nulls may have any dtype
            nothing = 0.0 if kind == "category" else math.nan
            return ops.full((len(series), len(parts)), nothing, dtype=self.dtype)
        if _find_kind(series) != kind:
            raise TypeError(f"the column {column['name']!r} was a {kind} in fit, and is of dtype {series.dtype} now")
        if kind == "category":
            places = {category: place for place, category in enumerate(parts)}
            found = [places.get(value, -1) for value in _read_texts(series).to_list()]
            return ops.one_hot(found, len(parts), dtype=self.dtype)
        numbers = [series if part is None else getattr(series.dt, part)() for part in parts]
        return ops.stack([ops.array(_read_floats(number), dtype=self.dtype) for number in numbers], axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> list[str]:
        """Return the names of the columns that ``transform`` returns: name, name_category, name_part."""
        self._check_fitted()
        named = [(column["name"], part) for column in self.columns_ for part in column["parts"]]
        return [name if part is None else f"{name}_{part}" for name, part in named]


@functools.cache
def _import_narwhals() -> Any:
    try:
        return import_module("narwhals.stable.v2")
    except ImportError as error:
        raise ImportError(
            "features of data frames need narwhals; install it: pip install 'ember-ml[tables]'"
        ) from error


def _read(data: Any) -> Any:
    """Return any data frame as one of narwhals."""
    nw = _import_narwhals()
    try:
        return nw.from_native(data, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"a data frame of pandas, Polars, Arrow or another library that narwhals reads is expected, not a "
            f"{type(data).__name__}; a lazy one must be collected first, and numbers need no TableFeatures"
        ) from error


def _find_column(frame: Any, name: str) -> Any:
    if name not in frame.columns:
        raise ValueError(f"the table has no column {name!r}; it has {', '.join(map(repr, frame.columns))}")
    return frame[name]


def _find_kind(series: Any) -> str:
    nw, dtype = _import_narwhals(), series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return "number"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "category"
    return "date" if dtype == nw.Date else "time" if dtype == nw.Datetime else ""


def _describe(name: str, series: Any) -> dict[str, Any]:
    """Return how to convert a column to numbers: its kind, and the source of each of its features."""
    kind = _find_kind(series)
    if kind == "category":
        parts = sorted(_read_texts(series).drop_nulls().unique().to_list())
        if not parts:
            raise ValueError(f"the column {name!r} has no value, and so no category; leave it out by `columns`")
    elif kind:
        parts = {"number": [None], "date": [*_DATE], "time": [*_DATE, *_TIME]}[kind]
    else:
        raise TypeError(
            f"the column {name!r} is of dtype {series.dtype}, of which no features are made; convert it, or leave it "
            "out by `columns`"
        )
    return {"name": name, "kind": kind, "parts": parts}


def _read_texts(series: Any) -> Any:
    return series.cast(_import_narwhals().String)


def _read_floats(series: Any) -> Any:
    """Return the values as an array of float64, with NaN for what is missing."""
    return series.cast(_import_narwhals().Float64).to_numpy()

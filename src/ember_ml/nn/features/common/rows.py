"""Read the data of estimators: a matrix whose rows are samples and whose columns are features."""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.backend import value_checks
from ember_ml.backend.host_arrays import unbox_objects
from ember_ml.backend.selection import active
from ember_ml.core.dtypes import EmberDType, float32, float64
from ember_ml.errors import WrongData
from ember_ml.nn.features.common.estimator import Estimator
from ember_ml.tensor import EmberTensor
from ember_ml.typing import Tensor, TensorLike

__all__ = ["Rows", "column_names", "read_floats", "read_rows"]


class Rows(NamedTuple):
    """A matrix of data, ready to compute with."""

    x: Tensor
    """float32 or float64, of the active backend; portable where the data was."""
    dtype: EmberDType
    """The dtype of the results: that of the data where it is floating, otherwise float32."""
    may_miss: bool
    """Whether some elements may be NaN."""
    names: list[str] | None
    """The names of the columns, where they have any."""

    def columns(self) -> dict[str, Any]:
        """Return the attributes that an estimator learns of the columns: their number, and their names if any."""
        own: dict[str, Any] = {"n_features_in_": self.x.shape[1]}
        return own if self.names is None else own | {"feature_names_in_": self.names}


def read_rows(estimator: Estimator, X: TensorLike, fits: bool, least: int = 1, width: int | None = None) -> Rows:
    """Return ``X`` as rows of samples; errors say what an estimator cannot take.

    ``fits`` is whether the data is the first to learn from; else it must have as many columns as that had, or
    ``width`` where that is given. There must be ``least`` rows.
    """
    if not fits:
        estimator._check_fitted()
    x, dtype = read_floats(X)
    _check_shape(x, least)
    names = column_names(X)
    if not fits:
        _check_columns(estimator, x, names, width)
    return Rows(x, dtype, _check_values(estimator, x), names)


def read_floats(X: TensorLike) -> tuple[Tensor, EmberDType]:
    """Return ``X`` as a tensor to compute with, float32 or float64, and the dtype that results shall have."""
    if hasattr(X, "nnz") and hasattr(X, "toarray"):
        raise TypeError("sparse data is not supported; make it dense: X.toarray()")
    numbers = unbox_objects(X)
    own = ops.dtype(numbers)
    if own.kind == "complex":
        raise WrongData("Complex data not supported: estimators take real numbers; pass the real and imaginary parts")
    dtype = own if own.kind == "float" else float32
    return ops.cast(numbers, float64 if dtype is float64 else float32), dtype


def column_names(X: TensorLike) -> list[str] | None:
    """Return the names of the columns of a data frame where all are texts; None for what has none."""
    if type(X) is EmberTensor:
        return None
    found = getattr(X, "column_names", None)  # Arrow
    if found is None:
        found = getattr(X, "columns", None)
    names = None if found is None else list(found)
    return names if names and all(isinstance(name, str) for name in names) else None


def _check_shape(x: Tensor, least: int) -> None:
    shape = tuple(x.shape)
    if len(shape) != 2:
        raise ValueError(
            f"a 2-D matrix of samples and features is expected, not data of shape {shape}. Reshape your data: "
            "x.reshape(-1, 1) where it is one feature, x.reshape(1, -1) where it is one sample"
        )
    if shape[1] < 1:
        raise ValueError(f"the data has 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if shape[0] < least:
        raise ValueError(f"the data has {shape[0]} sample(s) (shape={shape}) while a minimum of {least} is required.")


def _check_columns(estimator: Any, x: Tensor, names: list[str] | None, width: int | None) -> None:
    name = type(estimator).__name__
    if width is None:
        width = estimator.n_features_in_
        before = getattr(estimator, "feature_names_in_", names)
        if names is not None and names != before:
            raise ValueError(f"the columns are {names}, and {name} was fitted to {before}")
    if x.shape[1] != width:
        raise ValueError(f"X has {x.shape[1]} features, but {name} is expecting {width} features as input")


def _check_values(estimator: Estimator, x: Tensor) -> bool:
    """Refuse infinities, and NaN where that is not for missing values; whether NaN may be there."""
    native = x.native if type(x) is EmberTensor else x
    if not value_checks.enabled or active().is_traced(native):
        return estimator._takes_missing
    x = ops.stop_gradient(x)
    if ops.item(ops.all(ops.isfinite(x))):
        return False
    if ops.item(ops.any(ops.isinf(x))):
        raise ValueError("the data contains infinity (inf), or values too large for its dtype")
    if not estimator._takes_missing:
        raise ValueError(f"the data contains NaN, which {type(estimator).__name__} does not take; fill the gaps first")
    return True

"""Features of time series: what pandas, SciPy and the definitions say, on every backend."""

from __future__ import annotations

import math
from typing import Any

import pandas
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import ember_ml
from ember_ml import features, ops
from ember_ml.errors import UnsupportedDType
from ember_ml.features import FeatureExtractor, Lags, RollingStatistics, SeriesStatistics, SpectralFeatures, Windows
from ember_ml.features.statistics import STATISTICS
from ember_ml.nn import tensor
from tests.nn.comparing import assert_close
from tests.reference import series as reference
from tests.reference.tables import columns

BANDS = [(0.0, 4.0), (4.0, 9.5), (9.5, 100.0)]
SPECTRAL = ("centroid", "bandwidth", "peak", "rolloff", "entropy", "flatness", "power")
EXTRACTORS = [
    Windows(3, 2),
    Lags(2),
    RollingStatistics(3),
    SeriesStatistics(tuple(STATISTICS)),
    SpectralFeatures(SPECTRAL, BANDS, 20.0),
]
each = pytest.mark.parametrize("extractor", EXTRACTORS, ids=lambda extractor: type(extractor).__name__)


# What extractors are


@each
def test_extractors_are_estimators(extractor: Any, backend: str) -> None:
    data = columns(8, 12, "float32")
    copy = clone(extractor)
    assert copy.get_params() == extractor.get_params()
    expected = ops.to_numpy(extractor(data)).tolist()
    assert str(expected) == str(ops.to_numpy(copy.fit(data).transform(data)).tolist())
    assert str(expected) == str(ops.to_numpy(make_pipeline(copy).fit_transform(data)).tolist())


@each
def test_kinds(extractor: Any, backend: str) -> None:
    data = columns(8, 12, "float32")
    native = extractor(data)
    assert type(native) is type(ops.zeros(1)) is type(extractor(data.tolist())) is type(extractor(ops.array(data)))
    portable = extractor(tensor.array(data))
    assert type(portable) is tensor.EmberTensor
    assert str(portable.tolist()) == str(ops.to_numpy(native).tolist())
    assert ops.dtype(native) == "float32"


@each
def test_every_backend_gives_the_same(extractor: Any, backend: str) -> None:
    data = columns(8, 12, "float32", offset=30.0)
    with ember_ml.use_backend("numpy"):
        expected = extractor(data)
    assert_close(extractor(data), expected, 1e-5)


@each
def test_the_features_can_be_differentiated(extractor: Any, backend: str) -> None:
    data = ops.array(columns(8, 12, "float32"))
    # what only counts or compares is constant
    slope = ember_ml.grad(lambda x: ops.sum(ops.nan_to_num(extractor(x))))(data)
    assert bool(ops.all(ops.isfinite(slope)))
    assert ops.item(ops.max(ops.abs(slope))) > 0.0


def test_the_base_class_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        FeatureExtractor()  # pyright: ignore[reportAbstractUsage]
    assert features.base.FeatureExtractor is FeatureExtractor


# Windows, lags, rolling statistics


def test_windows(backend: str) -> None:
    data = columns(9, 2)
    found = ops.to_numpy(Windows(4, 2, axis=0)(data))
    assert found.shape == (3, 4, 2)
    for i in range(3):
        assert found[i].tolist() == data[2 * i : 2 * i + 4].tolist()
    assert ops.dtype(Windows(2)([1, 2, 3])) == "int64"
    with pytest.raises(ValueError, match="frame"):
        Windows(5)([1, 2, 3])


@pytest.mark.parametrize("lags", [1, 3, (0, 2), (5,), [2, 1], (9, 30)])
def test_lags_are_those_of_pandas(lags: Any, backend: str) -> None:
    frame = pandas.DataFrame(columns(9, 2), columns=["a", "b"])
    listed = list(range(1, lags + 1)) if isinstance(lags, int) else lags
    expected = pandas.concat([frame[name].shift(lag) for name in "ab" for lag in listed], axis=1)
    assert_close(Lags(lags)(frame), expected)
    assert_close(Lags(lags)(frame["a"].to_numpy()), expected.iloc[:, : len(listed)])
    batch = ops.stack([ops.array(frame.to_numpy())] * 2)
    assert_close(Lags(lags)(batch)[1], expected)
    if max(listed) < 9:
        assert_close(Lags(lags, fill=None)(frame), expected.dropna())
    else:
        with pytest.raises(ValueError, match="9 steps have no step that knows 30 steps"):
            Lags(lags, fill=None)(frame)


def test_the_dtype_of_lags(backend: str) -> None:
    assert ops.dtype(Lags(1, fill=0)([1, 2, 3])) == "int64"
    assert ops.dtype(Lags(1)([1, 2, 3])) == "float32"
    assert ops.dtype(Lags(1)(ops.array([1.0, 2.0], dtype="float16"))) == "float16"


@pytest.mark.parametrize("length", [1, 3, 9, 12])
def test_rolling_statistics_are_those_of_pandas(length: int, backend: str) -> None:
    frame = pandas.DataFrame(columns(9, 2, offset=100.0), columns=["a", "b"])
    names = ("mean", "std", "min", "max", "median", "sum")
    rolling = {name: frame[name].rolling(length) for name in "ab"}
    made = [
        rolling[name].std(ddof=0) if statistic == "std" else getattr(rolling[name], statistic)()
        for name in "ab"
        for statistic in names
    ]
    expected = pandas.concat(made, axis=1)
    found = RollingStatistics(length, names)(frame)
    if length <= 9:
        assert_close(found, expected, 1e-7)
        assert_close(RollingStatistics(length, names, fill=None)(frame), expected.dropna(), 1e-7)
        filled = ops.to_numpy(RollingStatistics(length, names, fill=-1.0)(frame))
        assert (filled[: length - 1] == -1.0).all()
    else:
        assert found.shape == (9, 12)
        assert bool(ops.all(ops.isnan(found)))


def test_a_pipeline_forecasts(backend: str) -> None:
    wave = [math.sin(0.3 * step) for step in range(80)]
    with ops.use_device("cpu"):  # whose memory is all that scikit-learn reads
        model = make_pipeline(Lags(2, fill=0.0), Ridge(1e-6)).fit(wave, wave)
        predicted = model.predict(wave)
    assert predicted[2:].tolist() == pytest.approx(wave[2:], abs=1e-2)


# Statistics and spectra of whole series


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("steps", [2, 3, 10, 51])
def test_statistics_follow_their_definitions(steps: int, dtype: str, backend: str) -> None:
    data = columns(3, steps, dtype, offset=2.0)
    expected = [reference.statistics(row) for row in data]
    found = ops.to_numpy(SeriesStatistics(tuple(STATISTICS))(data))
    for i, row in enumerate(expected):
        for name, value in zip(STATISTICS, found[i].tolist(), strict=True):
            assert value == pytest.approx(row[name], rel=1e-4, abs=1e-4), name
    assert_close(SeriesStatistics(("mean", "slope"), axis=0)(data.T), [[r["mean"], r["slope"]] for r in expected], 1e-5)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 + 0.3])
@pytest.mark.parametrize("steps", [1, 3, 10])
def test_constant_series(value: float, steps: int, backend: str) -> None:
    names = ("std", "var", "skewness", "kurtosis", "slope", "crossings")
    assert ops.to_numpy(SeriesStatistics(names)([[value] * steps])).tolist() == [[0.0] * 6]
    if steps > 1:
        silent = SpectralFeatures(SPECTRAL, BANDS, 20.0)([[value] * steps])
        assert ops.to_numpy(silent).tolist() == [[0.0] * 10]


@pytest.mark.parametrize("steps", [2, 3, 16, 33, 64])
def test_spectral_features_follow_their_definitions(steps: int, backend: str) -> None:
    data = columns(3, steps, "float32", offset=5.0)
    found = ops.to_numpy(SpectralFeatures(SPECTRAL, BANDS, 20.0)(data))
    for i, row in enumerate(data):
        if steps < 4:  # one frequency, for which the reference divides 0 by 0
            assert found[i][:4].tolist() == pytest.approx([20.0 / steps, 0.0, 20.0 / steps, 20.0 / steps], abs=1e-4)
            continue
        expected = reference.spectral(row, 20.0, BANDS)
        for name, value in zip(expected, found[i].tolist(), strict=True):
            assert value == pytest.approx(expected[name], rel=2e-3, abs=1e-4), name


def test_float64_spectra(backend: str) -> None:
    data = columns(3, 40)
    if backend == "mlx":
        with pytest.raises(UnsupportedDType, match="float32"):
            SpectralFeatures()(data)
        return
    found = ops.to_numpy(SpectralFeatures(SPECTRAL)(data))
    for row, values in zip(data, found.tolist(), strict=True):
        assert values == pytest.approx(list(reference.spectral(row, 1.0, []).values()), rel=1e-9)


def test_spectra_of_windows(backend: str) -> None:
    chirp = [math.sin(0.002 * step * step) for step in range(512)]
    peaks = ops.to_numpy(make_pipeline(Windows(128, 128), SpectralFeatures(("peak",))).fit_transform(chirp))
    assert peaks.shape == (4, 1)
    assert sorted(peaks.ravel().tolist()) == peaks.ravel().tolist()


# What is refused


@pytest.mark.parametrize(
    ("extractor", "message"),
    [
        (Lags(-1), "lags are numbers of steps"),
        (Lags(()), "lags are numbers of steps"),
        (Lags((1.5,)), "lags are numbers of steps"),  # type: ignore[arg-type]
        (RollingStatistics(2, ("mode",)), "no statistic 'mode'"),
        (SeriesStatistics("mean"), "a sequence of names"),
        (SeriesStatistics(()), "a sequence of names"),
        (SpectralFeatures(("loudness",)), "no spectral feature 'loudness'"),
        (SpectralFeatures((), ()), "at least one"),
        (SpectralFeatures(sample_rate=0.0), "sample_rate"),
        (SpectralFeatures(bands=((3.0, 2.0),)), "low below high"),
    ],
)
def test_parameters_that_make_no_sense(extractor: Any, message: str, backend: str) -> None:
    with pytest.raises(ValueError, match=message):
        extractor([1.0, 2.0, 3.0, 4.0])


def test_data_without_steps(backend: str) -> None:
    for extractor in (Lags(), RollingStatistics(2)):
        with pytest.raises(ValueError, match="a single number has none"):
            extractor(1.0)
    with pytest.raises(ValueError, match="at least 2 steps"):
        SpectralFeatures()([[1.0]])
    with pytest.raises(ValueError, match="without values"):
        SeriesStatistics()(ops.zeros((2, 0)))

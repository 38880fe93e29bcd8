"""Jobs that scikit-learn and SciPy do on arrays that follow the standard; each gives the numbers it computed.

A job gets ``make(values, dtype)``, which makes an array of the kind under test, so that the same job run on NumPy
arrays is its reference.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import scipy.cluster
import scipy.fft
import scipy.integrate
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
from sklearn import metrics
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge, RidgeCV
from sklearn.metrics import pairwise
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KernelCenterer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)

Make = Callable[..., Any]

_rng = random.Random(7)
ROWS = [[_rng.gauss(k % 3, 1.0) for k in range(5)] for _ in range(60)]
CLASSES = [int(sum(row) > 5.0) for row in ROWS]
THREE = [i % 3 for i in range(60)]
TARGET = [2.0 * row[0] - row[3] + _rng.gauss(0, 0.1) for row in ROWS]
GUESS = [t + _rng.gauss(0, 0.3) for t in TARGET]
SCORES = [min(max(0.5 + 0.3 * (2 * c - 1) + _rng.gauss(0, 0.25), 0.01), 0.99) for c in CLASSES]
LABELS_GUESS = [int(s > 0.5) for s in SCORES]
POSITIVE = [abs(t) + 0.1 for t in TARGET]
SIGNAL = [math.sin(0.3 * i) + 0.2 * math.sin(2.1 * i) for i in range(128)]
WAVE = [math.cos(0.11 * i * i / 10) for i in range(64)]


def _fitted(
    estimator: Any, *attributes: str, labels: Any = None, apply: str = "transform"
) -> Callable[[Make], list[Any]]:
    def job(make: Make) -> list[Any]:
        x = make(ROWS)
        y = () if labels is None else (make(labels, "float64" if isinstance(labels[0], float) else "int64"),)
        model = estimator().fit(x, *y)
        return [*(getattr(model, name) for name in attributes), getattr(model, apply)(x)]

    return job


def _metric(
    function: Any, first: Any, second: Any, kind: str = "int64", second_kind: str | None = None, **options: Any
) -> Callable[[Make], list[Any]]:
    return lambda make: [function(make(first, kind), make(second, second_kind or kind), **options)]


def _call(function: Any, *data: Any, **options: Any) -> Callable[[Make], list[Any]]:
    def job(make: Make) -> list[Any]:
        result = function(*(make(values) for values in data), **options)
        return list(result) if isinstance(result, tuple) else [result]

    return job


def _split(make: Make) -> list[Any]:
    return list(train_test_split(make(ROWS), make(CLASSES, "int64"), random_state=0))


def _pipeline(make: Make) -> list[Any]:
    model = make_pipeline(StandardScaler(), PCA(n_components=2, svd_solver="full"), Ridge(solver="svd"))
    x, y = make(ROWS), make(TARGET)
    return [model.fit(x, y).predict(x)]


def _grid(make: Make) -> list[Any]:
    search = GridSearchCV(Ridge(solver="svd"), {"alpha": [0.1, 1.0]}, cv=3)
    search.fit(make(ROWS), make(TARGET))
    return [search.best_score_]


def _cross(make: Make) -> list[Any]:
    return [cross_val_predict(Ridge(solver="svd"), make(ROWS), make(TARGET), cv=3)]


def _encoder(make: Make) -> list[Any]:
    encoder = LabelEncoder()
    codes = encoder.fit_transform(make([7, 3, 3, 9], "int64"))
    return [codes, encoder.inverse_transform(codes), encoder.classes_]


def _kernel_centerer(make: Make) -> list[Any]:
    kernel = pairwise.linear_kernel(make(ROWS))
    return [KernelCenterer().fit_transform(kernel)]


SKLEARN: dict[str, Callable[[Make], list[Any]]] = {
    "StandardScaler": _fitted(StandardScaler, "mean_", "scale_"),
    "MinMaxScaler": _fitted(MinMaxScaler, "data_min_", "data_max_"),
    "MaxAbsScaler": _fitted(MaxAbsScaler, "max_abs_"),
    "Normalizer": _fitted(Normalizer),
    "Binarizer": _fitted(lambda: Binarizer(threshold=0.5)),
    "PolynomialFeatures": _fitted(lambda: PolynomialFeatures(2)),
    "KernelCenterer": _kernel_centerer,
    "LabelEncoder": _encoder,
    "LabelBinarizer": lambda make: [LabelBinarizer().fit_transform(make(THREE, "int64"))],
    "PCA full": _fitted(lambda: PCA(2, svd_solver="full"), "mean_", "explained_variance_", "components_"),
    "PCA covariance": _fitted(lambda: PCA(2, svd_solver="covariance_eigh"), "explained_variance_ratio_"),
    "PCA randomized": _fitted(
        lambda: PCA(2, svd_solver="randomized", random_state=0, power_iteration_normalizer="QR"), "singular_values_"
    ),
    "PCA whiten": _fitted(lambda: PCA(2, svd_solver="full", whiten=True)),
    "Ridge": _fitted(lambda: Ridge(solver="svd"), "coef_", "intercept_", labels=TARGET, apply="predict"),
    "RidgeCV": _fitted(lambda: RidgeCV(alphas=[0.1, 1.0]), "coef_", labels=TARGET, apply="predict"),
    "LinearDiscriminantAnalysis": _fitted(
        LinearDiscriminantAnalysis, "means_", "priors_", labels=THREE, apply="predict_proba"
    ),
    "GaussianNB": _fitted(GaussianNB, "theta_", "var_", labels=THREE, apply="predict_proba"),
    # the mixtures write into slices, and expect the tensors that were sliced to change
    **{
        f"GaussianMixture {kind}": _fitted(
            lambda kind=kind: GaussianMixture(
                2, covariance_type=kind, init_params="random_from_data", random_state=0, max_iter=5, tol=0
            ),
            "means_",
            "covariances_",
            apply="predict_proba",
        )
        for kind in ("full", "tied", "diag", "spherical")
    },
    "LogisticRegression": _fitted(
        lambda: LogisticRegression(solver="lbfgs"), "coef_", labels=CLASSES, apply="predict_proba"
    ),
    "Nystroem": _fitted(lambda: Nystroem(kernel="rbf", n_components=4, random_state=0)),
    "CalibratedClassifierCV": _fitted(
        lambda: CalibratedClassifierCV(LinearDiscriminantAnalysis(), method="temperature", cv=3),
        labels=CLASSES,
        apply="predict_proba",
    ),
    "train_test_split": _split,
    "pipeline": _pipeline,
    "GridSearchCV": _grid,
    "cross_val_predict": _cross,
    "accuracy_score": _metric(metrics.accuracy_score, CLASSES, LABELS_GUESS),
    "balanced_accuracy_score": _metric(metrics.balanced_accuracy_score, CLASSES, LABELS_GUESS),
    "zero_one_loss": _metric(metrics.zero_one_loss, CLASSES, LABELS_GUESS),
    "hamming_loss": _metric(metrics.hamming_loss, CLASSES, LABELS_GUESS),
    "confusion_matrix": _metric(metrics.confusion_matrix, CLASSES, LABELS_GUESS),
    "multilabel_confusion_matrix": _metric(metrics.multilabel_confusion_matrix, CLASSES, LABELS_GUESS),
    "f1_score": _metric(metrics.f1_score, CLASSES, LABELS_GUESS),
    "fbeta_score": _metric(metrics.fbeta_score, CLASSES, LABELS_GUESS, beta=2.0),
    "precision_score": _metric(metrics.precision_score, CLASSES, LABELS_GUESS),
    "recall_score": _metric(metrics.recall_score, CLASSES, LABELS_GUESS),
    "jaccard_score": _metric(metrics.jaccard_score, CLASSES, LABELS_GUESS),
    "precision_recall_fscore_support": lambda make: list(
        metrics.precision_recall_fscore_support(make(CLASSES, "int64"), make(LABELS_GUESS, "int64"))[:3]
    ),
    "cohen_kappa_score": _metric(metrics.cohen_kappa_score, CLASSES, LABELS_GUESS),
    "average_precision_score": _metric(metrics.average_precision_score, CLASSES, SCORES, "int64", "float64"),
    "precision_recall_curve": lambda make: list(metrics.precision_recall_curve(make(CLASSES, "int64"), make(SCORES))),
    "brier_score_loss": _metric(metrics.brier_score_loss, CLASSES, SCORES, "int64", "float64"),
    "log_loss": _metric(metrics.log_loss, CLASSES, SCORES, "int64", "float64"),
    "d2_brier_score": _metric(metrics.d2_brier_score, CLASSES, SCORES, "int64", "float64"),
    "r2_score": _metric(metrics.r2_score, TARGET, GUESS, "float64"),
    "d2_tweedie_score": _metric(metrics.d2_tweedie_score, POSITIVE, POSITIVE[1:] + POSITIVE[:1], "float64", power=1),
    "explained_variance_score": _metric(metrics.explained_variance_score, TARGET, GUESS, "float64"),
    "mean_absolute_error": _metric(metrics.mean_absolute_error, TARGET, GUESS, "float64"),
    "mean_absolute_percentage_error": _metric(metrics.mean_absolute_percentage_error, TARGET, GUESS, "float64"),
    "mean_squared_error": _metric(metrics.mean_squared_error, TARGET, GUESS, "float64"),
    "root_mean_squared_error": _metric(metrics.root_mean_squared_error, TARGET, GUESS, "float64"),
    "mean_squared_log_error": _metric(metrics.mean_squared_log_error, POSITIVE, POSITIVE[1:] + POSITIVE[:1], "float64"),
    "root_mean_squared_log_error": _metric(
        metrics.root_mean_squared_log_error, POSITIVE, POSITIVE[1:] + POSITIVE[:1], "float64"
    ),
    "median_absolute_error": _metric(metrics.median_absolute_error, TARGET, GUESS, "float64"),
    "max_error": _metric(metrics.max_error, TARGET, GUESS, "float64"),
    "mean_poisson_deviance": _metric(metrics.mean_poisson_deviance, POSITIVE, POSITIVE[1:] + POSITIVE[:1], "float64"),
    "mean_gamma_deviance": _metric(metrics.mean_gamma_deviance, POSITIVE, POSITIVE[1:] + POSITIVE[:1], "float64"),
    "mean_pinball_loss": _metric(metrics.mean_pinball_loss, TARGET, GUESS, "float64"),
    "d2_pinball_score": _metric(metrics.d2_pinball_score, TARGET, GUESS, "float64"),
    "d2_absolute_error_score": _metric(metrics.d2_absolute_error_score, TARGET, GUESS, "float64"),
    "entropy": lambda make: [metrics.cluster.entropy(make(THREE, "int64"))],
    "euclidean_distances": _call(pairwise.euclidean_distances, ROWS[:9], ROWS[9:20]),
    "cosine_similarity": _call(pairwise.cosine_similarity, ROWS[:9], ROWS[9:20]),
    "cosine_distances": _call(pairwise.cosine_distances, ROWS[:9], ROWS[9:20]),
    "linear_kernel": _call(pairwise.linear_kernel, ROWS[:9]),
    "rbf_kernel": _call(pairwise.rbf_kernel, ROWS[:9]),
    "polynomial_kernel": _call(pairwise.polynomial_kernel, ROWS[:9]),
    "sigmoid_kernel": _call(pairwise.sigmoid_kernel, ROWS[:9], gamma=0.01),
    "laplacian_kernel": _call(pairwise.laplacian_kernel, ROWS[:9]),
    "additive_chi2_kernel": _call(pairwise.additive_chi2_kernel, [[abs(v) for v in row] for row in ROWS[:9]]),
    "chi2_kernel": _call(pairwise.chi2_kernel, [[abs(v) for v in row] for row in ROWS[:9]]),
    "paired_cosine_distances": _call(pairwise.paired_cosine_distances, ROWS[:9], ROWS[9:18]),
    "paired_euclidean_distances": _call(pairwise.paired_euclidean_distances, ROWS[:9], ROWS[9:18]),
    "pairwise_distances": _call(metrics.pairwise_distances, ROWS[:9], ROWS[9:18]),
}

SCIPY: dict[str, Callable[[Make], list[Any]]] = {
    "stats.zscore": _call(scipy.stats.zscore, SIGNAL),
    "stats.skew": _call(scipy.stats.skew, SIGNAL),
    "stats.kurtosis": _call(scipy.stats.kurtosis, SIGNAL),
    "stats.moment": _call(scipy.stats.moment, SIGNAL, order=3),
    "stats.ttest_1samp": _call(scipy.stats.ttest_1samp, SIGNAL, popmean=0.1),
    "stats.ttest_ind": _call(scipy.stats.ttest_ind, SIGNAL, WAVE),
    "stats.ttest_rel": _call(scipy.stats.ttest_rel, SIGNAL[:64], WAVE),
    "stats.pearsonr": _call(scipy.stats.pearsonr, SIGNAL[:64], WAVE),
    "stats.entropy": _call(scipy.stats.entropy, [0.2, 0.3, 0.5]),
    "stats.gmean": _call(scipy.stats.gmean, POSITIVE),
    "stats.hmean": _call(scipy.stats.hmean, POSITIVE),
    "stats.pmean": _call(scipy.stats.pmean, POSITIVE, p=3),
    "stats.variation": _call(scipy.stats.variation, POSITIVE),
    "stats.sem": _call(scipy.stats.sem, SIGNAL),
    "stats.chisquare": _call(scipy.stats.chisquare, [16.0, 18.0, 16.0, 14.0, 12.0, 12.0]),
    "stats.power_divergence": _call(scipy.stats.power_divergence, [16.0, 18.0, 16.0, 14.0], lambda_="log-likelihood"),
    "stats.jarque_bera": _call(scipy.stats.jarque_bera, SIGNAL),
    "stats.skewtest": _call(scipy.stats.skewtest, SIGNAL),
    "stats.kurtosistest": _call(scipy.stats.kurtosistest, SIGNAL),
    "stats.normaltest": _call(scipy.stats.normaltest, SIGNAL),
    "stats.bartlett": _call(scipy.stats.bartlett, SIGNAL, WAVE),
    "stats.combine_pvalues": _call(scipy.stats.combine_pvalues, [0.1, 0.05, 0.02, 0.3]),
    "stats.circmean": _call(scipy.stats.circmean, POSITIVE),
    "stats.circvar": _call(scipy.stats.circvar, POSITIVE),
    "stats.circstd": _call(scipy.stats.circstd, POSITIVE),
    "stats.directional_stats": lambda make: [scipy.stats.directional_stats(make(ROWS)).mean_direction],
    "stats.tmean": _call(scipy.stats.tmean, SIGNAL, limits=(-0.5, 0.5)),
    "stats.tvar": _call(scipy.stats.tvar, SIGNAL, limits=(-0.5, 0.5)),
    "stats.tmin": _call(scipy.stats.tmin, SIGNAL, lowerlimit=-0.5),
    "stats.tmax": _call(scipy.stats.tmax, SIGNAL, upperlimit=0.5),
    "stats.tsem": _call(scipy.stats.tsem, SIGNAL, limits=(-0.5, 0.5)),
    "stats.zmap": _call(scipy.stats.zmap, SIGNAL, WAVE),
    "stats.gzscore": _call(scipy.stats.gzscore, POSITIVE),
    "stats.rankdata": _call(scipy.stats.rankdata, SIGNAL),
    "stats.quantile": lambda make: [scipy.stats.quantile(make(SIGNAL), make([0.1, 0.5]))],
    "stats.lmoment": _call(scipy.stats.lmoment, SIGNAL, order=2),
    "stats.expectile": _call(scipy.stats.expectile, SIGNAL),
    "stats.differential_entropy": _call(scipy.stats.differential_entropy, SIGNAL),
    "signal.convolve": _call(scipy.signal.convolve, SIGNAL, WAVE, method="direct"),
    "signal.fftconvolve": lambda make: [scipy.signal.fftconvolve(make(SIGNAL, "float32"), make(WAVE, "float32"))],
    "signal.oaconvolve": lambda make: [scipy.signal.oaconvolve(make(SIGNAL, "float32"), make(WAVE[:9], "float32"))],
    "signal.oaconvolve rows": lambda make: [
        scipy.signal.oaconvolve(
            make(ROWS, "float32"), make([[k + 1.0] * 5 for k in range(4)], "float32"), axes=0, mode="same"
        )
    ],
    "signal.correlate": lambda make: [
        scipy.signal.correlate(make(SIGNAL, "float32"), make(WAVE, "float32"), method="fft")
    ],
    "signal.detrend": _call(scipy.signal.detrend, SIGNAL),
    "signal.hilbert": lambda make: [scipy.signal.hilbert(make(SIGNAL, "float32"))],
    "signal.resample": lambda make: [scipy.signal.resample(make(SIGNAL, "float32"), 64)],
    "signal.sosfilt": lambda make: [scipy.signal.sosfilt(make([[1.0, 2.0, 1.0, 1.0, 0.4, 0.2]]), make(SIGNAL))],
    "signal.lfilter": lambda make: [scipy.signal.lfilter(make([0.5, 0.5]), make([1.0, -0.2]), make(SIGNAL))],
    "signal.periodogram": lambda make: list(scipy.signal.periodogram(make(SIGNAL, "float32"))),
    "signal.welch": lambda make: list(scipy.signal.welch(make(SIGNAL, "float32"), nperseg=32)),
    "signal.medfilt": _call(scipy.signal.medfilt, SIGNAL, kernel_size=3),
    "signal.savgol_filter": _call(scipy.signal.savgol_filter, SIGNAL, window_length=5, polyorder=2),
    "fft.fft": lambda make: [scipy.fft.fft(make(SIGNAL, "float32"))],
    "fft.ifft": lambda make: [scipy.fft.ifft(make(SIGNAL, "float32"))],
    "fft.rfft": lambda make: [scipy.fft.rfft(make(SIGNAL, "float32"))],
    "fft.irfft": lambda make: [scipy.fft.irfft(scipy.fft.rfft(make(SIGNAL, "float32")))],
    "fft.fft2": lambda make: [scipy.fft.fft2(make(ROWS, "float32"))],
    "fft.fftn": lambda make: [scipy.fft.fftn(make(ROWS, "float32"))],
    "fft.fftshift": _call(scipy.fft.fftshift, SIGNAL),
    "fft.dct": lambda make: [scipy.fft.dct(make(SIGNAL, "float32"))],
    "special.erf": _call(scipy.special.erf, WAVE),
    "special.expit": _call(scipy.special.expit, WAVE),
    "special.gammaln": _call(scipy.special.gammaln, POSITIVE),
    "special.logsumexp": _call(scipy.special.logsumexp, SIGNAL),
    "special.softmax": _call(scipy.special.softmax, SIGNAL),
    "special.log_softmax": _call(scipy.special.log_softmax, SIGNAL),
    "special.xlogy": _call(scipy.special.xlogy, POSITIVE, POSITIVE),
    "special.rel_entr": _call(scipy.special.rel_entr, POSITIVE, POSITIVE[1:] + POSITIVE[:1]),
    "special.ndtr": _call(scipy.special.ndtr, WAVE),
    "special.ndtri": _call(scipy.special.ndtri, [0.1, 0.5, 0.9]),
    "cluster.vq.whiten": _call(scipy.cluster.vq.whiten, ROWS),
    "cluster.vq.vq": lambda make: list(scipy.cluster.vq.vq(make(ROWS), make(ROWS[:3]))),
    "integrate.trapezoid": _call(scipy.integrate.trapezoid, SIGNAL),
    "integrate.simpson": _call(scipy.integrate.simpson, SIGNAL),
    "integrate.cumulative_trapezoid": _call(scipy.integrate.cumulative_trapezoid, SIGNAL),
    "ndimage.gaussian_filter1d": _call(scipy.ndimage.gaussian_filter1d, SIGNAL, sigma=2.0),
    "ndimage.uniform_filter": _call(scipy.ndimage.uniform_filter, SIGNAL, size=3),
    "ndimage.sobel": _call(scipy.ndimage.sobel, ROWS),
}

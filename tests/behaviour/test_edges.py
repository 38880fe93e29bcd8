"""Values at the edges of a dtype, of a shape and of a library: each was wrong on some backend once."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ember_ml import ops
from ember_ml.backend import load
from ember_ml.dispatch.gaps import gap_reason
from ember_ml.errors import LinAlgError
from tests.subnormals import keeps_subnormals

ROOT = Path(__file__).parents[2]


def _list(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def _run(source: str) -> subprocess.CompletedProcess[str]:
    """Run a program in another process: what it tests has ended processes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, env=environment, timeout=300
    )


def test_factorizations_evaluated_together_leave_memory_whole(backend: str) -> None:
    done = _run(
        f"import ember_ml; from ember_ml import ops; ember_ml.set_backend({backend!r})\n"
        "x = ops.array([[2.0, 0.5], [0.5, 3.0]])\n"
        "for _ in range(500):\n"
        "    parts = [ops.multiply(ops.lu_factor(ops.add(x, float(i)))[0], 2.0) for i in range(3)]\n"
        "    found = ops.to_numpy(ops.stack(parts))\n"
        "print(found[0].tolist())"
    )
    assert done.returncode == 0, done.stderr
    assert eval(done.stdout) == [[4.0, 1.0], [0.5, 5.75]]


def test_what_does_not_fit_into_memory_raises_memory_error(backend: str) -> None:
    done = _run(
        f"import ember_ml; from ember_ml import ops; ember_ml.set_backend({backend!r})\n"
        "try: ops.to_numpy(ops.matmul(ops.ones((2**21, 1)), ops.ones((1, 2**21))))\n"
        "except MemoryError: print('fine')"
    )
    assert (done.returncode, done.stdout.strip()) == (0, "fine"), done.stderr


HUGE = {
    "bincount": lambda: ops.bincount([1, 2**62]),
    "bincount, the largest int64": lambda: ops.bincount(ops.array([1, 2**63 - 1], dtype="int64")),
    "bincount with minlength": lambda: ops.bincount([1], minlength=2**62),
    "bincount with weights": lambda: ops.bincount([1, 2**62], [1.0, 2.0]),
    "diag": lambda: ops.diag(ops.ones(3), k=2**62),
    "diagflat": lambda: ops.diagflat(ops.ones(3), k=-(2**62)),
    "fft": lambda: ops.fft(ops.ones(4), 2**62),
    "irfftn": lambda: ops.irfftn(ops.ones((4, 4)), (2**40, 2**40)),
    "linspace": lambda: ops.linspace(0.0, 1.0, 2**62),
    "one_hot": lambda: ops.one_hot([1, 2], 2**62),
    "pad": lambda: ops.pad(ops.ones(3), [(2**62, 2**62)]),
    "repeat": lambda: ops.repeat(ops.ones(3), 2**62),
    "segment_sum": lambda: ops.segment_sum(ops.ones(3), [0, 1, 2], 2**62),
    "segment_max": lambda: ops.segment_max(ops.ones((3, 2**20)), [0, 1, 2], 2**42),
    "tile": lambda: ops.tile(ops.ones(3), 2**62),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_result_beyond_every_memory_raises_and_writes_nowhere(backend: str, name: str) -> None:
    with pytest.raises((MemoryError, ValueError, OverflowError, TypeError)):
        HUGE[name]()


def test_loaded_tensors_survive_a_file_that_is_rewritten(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    ops.save(path, {"w": ops.ones(1_000_000), "b": ops.array([1, 2])})
    loaded = ops.load(path)
    with path.open("r+b") as file:
        file.truncate(8)
    assert ops.item(ops.sum(loaded["w"])) == 1_000_000
    assert _list(loaded["b"]) == [1, 2]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_loading_what_is_no_file_raises(backend: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no plain file"):
        ops.load(tmp_path / "pipe")


@pytest.mark.parametrize("groups", [2, 3])
def test_grouped_convolution_in_bfloat16(backend: str, groups: int) -> None:
    generator = ops.Generator(0)
    x = ops.round(ops.multiply(ops.random_normal((2, 8, 3, groups), seed=generator), 4))
    kernel = ops.round(ops.multiply(ops.random_normal((3, 3, 1, groups * 3), seed=generator), 4))  # sums are exact
    want = ops.conv(x, kernel, strides=(1, 2))
    got = ops.conv(ops.cast(x, "bfloat16"), ops.cast(kernel, "bfloat16"), strides=(1, 2))
    largest = ops.item(ops.max(ops.abs(want)))
    assert ops.item(ops.max(ops.abs(ops.subtract(ops.cast(got, "float32"), want)))) <= largest * 2.0**-8


@pytest.mark.parametrize("name", ["irfft", "hfft"])
@pytest.mark.parametrize("axis", [0, 1])
def test_transform_of_an_empty_spectrum_is_zero(backend: str, name: str, axis: int) -> None:
    for _ in range(20):
        ops.to_numpy(ops.multiply(ops.ones(64), 7.0))  # memory that is let go
        x = ops.zeros((0, 4) if axis == 0 else (4, 0), dtype="complex64")
        result = getattr(ops, name)(x, n=8, axis=axis)
        assert _list(result) == ops.to_numpy(ops.zeros((8, 4) if axis == 0 else (4, 8))).tolist()
    assert _list(ops.irfftn(ops.zeros((0, 2), dtype="complex64"), s=(4, 2), axes=(0, 1))) == [[0.0, 0.0]] * 4


@pytest.mark.parametrize("count", [1, 16])
def test_remainders_where_the_quotient_overflows(backend: str, count: int) -> None:
    pairs = [(3e38, 0.5), (1e30, 1e-10), (1e10, 1e-30), (-3e38, 0.5), (5.0, 3.0), (-1e38, 1e-37)] * count
    if keeps_subnormals(backend):
        pairs += [(-1e38, 1e-44), (1e-40, 3e-42)] * count
    for dtype in ("float32", "float64"):
        x, y = (ops.array([pair[i] for pair in pairs], dtype=dtype) for i in (0, 1))
        if dtype == "float64":
            x, y = ops.multiply(x, 1e200), ops.multiply(y, 1e-200)
        exact = [math.fmod(a, b) for a, b in zip(_list(x), _list(y), strict=True)]
        assert _list(ops.fmod(x, y)) == exact
        want = [r + b if r and (r < 0) != (b < 0) else r for r, b in zip(exact, _list(y), strict=True)]
        assert _list(ops.mod(x, y)) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_floor_divide_of_half_precision(backend: str, dtype: str) -> None:
    x = ops.cast(ops.arange(100, 164), dtype)
    y = ops.cast(ops.array([0.87109375, 1.3, 0.66, 2.7] * 16), dtype)
    want = [
        math.floor(a / b) for a, b in zip(_list(ops.cast(x, "float64")), _list(ops.cast(y, "float64")), strict=True)
    ]
    expected = ops.cast(ops.array(want, dtype="float64"), dtype)
    assert _list(ops.floor_divide(x, y)) == _list(expected)


@pytest.mark.parametrize("name", ["sinh", "cosh"])
def test_hyperbolic_functions_up_to_the_largest_number(backend: str, name: str) -> None:
    for dtype, values in (("float32", [88.0, 88.73, 89.0, 89.4, -89.0]), ("float64", [709.5, 709.9, 710.2, -710.4])):
        x = ops.array(values * 4, dtype=dtype)
        # sinh and cosh are the same number so far out
        want = [math.copysign(math.exp(abs(v) / 2) * 0.5, v if name == "sinh" else 1) for v in _list(x)]
        roots = [math.exp(abs(v) / 2) for v in _list(x)]
        got = _list(getattr(ops, name)(x))
        relative = 1e-5 if dtype == "float32" else 1e-12
        assert [g / r for g, r in zip(got, roots, strict=True)] == pytest.approx(want, rel=relative)


def test_ldexp_of_zero(backend: str) -> None:
    x = ops.array([0.0, 1.0, 1e-30, 1e30, 3e38], dtype="float32")
    assert _list(ops.ldexp(x, ops.array([2000, 128, 200, -200, -300])))[0] == 0.0
    got = _list(ops.ldexp(x, ops.array([2000, 127, 200, -200, -140])))
    assert got[1] == 2.0**127
    assert got[2:4] == [math.ldexp(_list(x)[2], 200), pytest.approx(math.ldexp(_list(x)[3], -200), rel=1e-6)]


def test_complex_sums_go_by_their_parts(backend: str) -> None:
    x = ops.array([complex(1, 2)] * 9)
    y = ops.array([complex(1, math.inf)] * 9)
    assert _list(ops.add(x, y)) == [complex(2, math.inf)] * 9
    assert _list(ops.subtract(x, y)) == [complex(0, -math.inf)] * 9


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_positions_of_nan(backend: str, dtype: str) -> None:
    bins = ops.array([0.0, 5.0], dtype=dtype)
    values = ops.array([math.nan, 1.0, math.nan, 7.0], dtype=dtype)
    assert _list(ops.digitize(values, bins)) == [2, 1, 2, 2]
    assert _list(ops.searchsorted(bins, values)) == [2, 1, 2, 2]


def test_python_numbers_meet_float64_as_doubles(backend: str) -> None:
    x = ops.array([0.7, 1.3, 8374.4], dtype="float64")
    for portable in (False, True):
        tensor = ops.convert_to_tensor(x) if portable else x
        for name, function in (
            ("fmod", lambda v: math.fmod(v, 0.001)),
            ("xlogy", lambda v: v * math.log(0.001)),
            ("divide_no_nan", lambda v: v / 0.001),
            ("hypot", lambda v: math.hypot(v, 0.001)),
            ("logaddexp", lambda v: v + math.log1p(math.exp(0.001 - v))),
            ("arctan2", lambda v: math.atan2(v, 0.001)),
        ):
            if gap_reason(load(backend), name, "float64"):
                continue
            got = _list(getattr(ops, name)(tensor, 0.001))
            assert got == pytest.approx([function(v) for v in (0.7, 1.3, 8374.4)], rel=1e-13), name


def test_dtype_of_polar_with_a_python_number(backend: str) -> None:
    assert ops.dtype(ops.polar(ops.array([1.0], dtype="float32"), 2.5)).name == "complex64"


def test_bytes_viewed_as_bools(backend: str) -> None:
    x = ops.view(ops.array([0, 63, 1], dtype="uint8"), "bool")
    assert ops.item(ops.sum(x)) == 2
    assert _list(ops.logical_not(x)) == [True, False, False]
    assert _list(ops.equal(x, True)) == [False, True, True]


def test_view_of_a_slice(backend: str) -> None:
    x = ops.array([0.0, 1.0, 2.0], dtype="float32")[1:]
    assert _list(ops.view(x, "uint64")) == [0x40000000_3F800000]


def test_norms_neither_overflow_nor_vanish(backend: str) -> None:
    for dtype, large, small in (("float32", 1e30, 1e-30), ("float64", 1e200, 1e-200)):
        for ord in (2, 3, 1.5):
            want = 2 ** (1 / ord)
            for size in (large, small):
                x = ops.array([[size, -size], [size, 0.0]], dtype=dtype)
                got = _list(ops.vector_norm(x, axis=1, ord=ord))
                assert [v / size for v in got] == pytest.approx([want, 1.0], rel=1e-5), (dtype, ord, size)
        same = ops.array([large, large], dtype=dtype)
        assert ops.item(ops.cosine_similarity(same, same)) == pytest.approx(1.0)
    assert _list(ops.vector_norm(ops.array([[0.0, 0.0], [math.inf, 1.0]]), axis=1)) == [0.0, math.inf]
    assert math.isnan(ops.item(ops.vector_norm(ops.array([math.nan, 1.0]))))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_erf_of_small_numbers_in_half_precision(backend: str, dtype: str) -> None:
    x = ops.array([1e-7, 1e-6, -3e-5, 0.25] * 4, dtype=dtype)
    want = ops.cast(ops.array([math.erf(v) for v in _list(ops.cast(x, "float64"))], dtype="float64"), dtype)
    got, wanted = (_list(ops.cast(v, "float64")) for v in (ops.erf(x), want))
    assert got == pytest.approx(wanted, rel=0.008 if dtype == "bfloat16" else 0.001, abs=6e-8 * (dtype == "float16"))


@pytest.mark.parametrize("count", [1, 10])
def test_logarithms_of_powers_of_ten_are_whole(backend: str, count: int) -> None:
    for dtype in ("float32", "float64"):
        x = ops.array([float(f"1e{k}") for k in range(-37, 39)] * count, dtype=dtype)
        assert _list(ops.log10(x)) == [float(k) for k in range(-37, 39)] * count


def test_convolution_of_integers_by_transforms(backend: str) -> None:
    generator = ops.Generator(3)
    for _ in range(10):
        x, y = (ops.random_integers((n,), -9, 10, seed=generator) for n in (17, 8))
        got = ops.convolve(x, y, method="fft")
        assert _list(got) == _list(ops.convolve(x, y, method="direct"))


def test_the_last_of_several_values_stays(backend: str) -> None:
    value = ops.transpose(ops.array([[0, 9], [2, 1]]))
    assert _list(ops.index_update(ops.zeros(4, dtype="int64"), ops.array([[0, 1], [1, 2]]), value)) == [0, 9, 1, 0]
    count = 200_000
    index = ops.random_integers((count,), 0, 500, seed=1)
    values = ops.random_normal((count,), seed=2)
    want = [0.0] * 500
    for place, number in zip(_list(index), _list(values), strict=True):
        want[place] = number
    zeros = ops.zeros(500)
    assert _list(ops.index_update(zeros, index, values)) == want
    assert _list(ops.put_along_axis(zeros, index, values)) == want
    assert _list(ops.scatter_update(zeros, ops.reshape(index, (-1, 1)), values)) == want
    rows = ops.index_update(ops.zeros((3, 2)), (slice(None), ops.array([1, 1])), ops.array([[1.0, 2.0]] * 3))
    assert _list(rows) == [[0.0, 2.0]] * 3


REDUCTIONS = [
    *("sum", "prod", "mean", "var", "std", "max", "min", "all", "any"),
    *("argmax", "argmin", "cumsum", "cumprod", "count_nonzero", "logsumexp"),
]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, -1])
def test_a_tensor_without_axes_has_no_axis_to_reduce(backend: str, name: str, axis: int) -> None:
    with pytest.raises(IndexError):
        getattr(ops, name)(ops.array(5.0), axis=axis)


def test_axes_and_shapes_of_small_tensors(backend: str) -> None:
    assert ops.shape(ops.argsort(ops.array(5), descending=True)) == ()
    with pytest.raises(IndexError):
        ops.concatenate([ops.ones((2, 2))], axis=4)
    assert _list(ops.roll(ops.array([1, 2]), (), axis=())) == [1, 2]
    assert ops.shape(ops.lstsq(ops.ones((3, 2)), ops.ones((3, 0)))[0]) == (2, 0)
    with pytest.raises(LinAlgError):
        ops.to_numpy(ops.solve(ops.array([[1.0, 1.0], [1.0, 1.0]]), ops.ones((2, 0))))
    assert _list(ops.lcm(ops.array([2147483647], dtype="int32"), ops.array([4], dtype="int32"))) == [-4]

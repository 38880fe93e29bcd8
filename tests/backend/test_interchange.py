"""Tensors that move between backends: every pair, every dtype, every layout, and who may write to what."""

import array
import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ember_ml
from ember_ml import dtypes as dt
from ember_ml import ops
from ember_ml.backend import installed_backends, load
from ember_ml.backend.host_arrays import as_host, cast_host, host_dtypes
from ember_ml.errors import UnsupportedDType

jax = pytest.importorskip("jax")
mx = pytest.importorskip("mlx.core")
torch = pytest.importorskip("torch")

NAMES = installed_backends()
PAIRS = [(source, target) for source in NAMES for target in NAMES]
DTYPES = sorted(dt.ALL, key=lambda dtype: dtype.name)

_VALUES = {
    "bool": [[True, False, True], [False, True, True]],
    "int": [[-7, 0, 5], [100, -128, 127]],
    "uint": [[7, 0, 5], [100, 255, 127]],
    "float": [[1.5, -0.0, float("inf")], [float("nan"), -2.25, 96.0]],
    "complex": [[1.5 + 2j, 0j, -1j], [complex(float("nan"), 1), -2.25 + 0j, 96 + 1j]],
}


def _host(dtype: dt.EmberDType) -> np.ndarray:
    return np.array(_VALUES[dtype.kind]).astype(host_dtypes[dtype])


def _holds(name: str, dtype: dt.EmberDType) -> bool:
    return dtype in load(name).dtypes


def _same_bits(got: np.ndarray, wanted: np.ndarray) -> bool:
    return got.dtype == wanted.dtype and got.shape == wanted.shape and got.tobytes() == wanted.tobytes()


def _write(native: Any) -> None:
    """Write to a native tensor; those of JAX refuse it, so their memory is written to as DLPack hands it out."""
    if isinstance(native, jax.Array):
        torch.from_dlpack(native)[0] = 99.0
    else:
        native[0] = 99.0


@pytest.fixture
def switch() -> Any:
    """Give the function that sets the backend; the backend of before comes back after the test."""
    before = ember_ml.get_backend()
    yield ember_ml.set_backend
    ember_ml.set_backend(before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_pair_keeps_dtype_and_bits(source: str, target: str, dtype: dt.EmberDType, switch: Any) -> None:
    if not _holds(source, dtype):
        pytest.skip(f"{source} has no {dtype}")
    there = load(source).from_host(_host(dtype), None)
    assert load(source).is_native(there)
    assert load(source).dtype_of(there) is dtype
    switch(target)
    if not _holds(target, dtype):
        with pytest.raises(UnsupportedDType):
            ops.convert_to_tensor(there)
        return
    moved = ops.convert_to_tensor(there)
    assert load(target).is_native(moved)
    assert ops.dtype(moved) is dtype
    assert _same_bits(np.ascontiguousarray(ops.to_numpy(moved)), _host(dtype))


LAYOUTS = {
    "transposed": lambda x: x.T,
    "every other": lambda x: x[:, ::2],
    "offset": lambda x: x[1:, 1:],
    "0-d": lambda x: x[1, 2],
    "empty": lambda x: x[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.float64, dt.uint64], ids=str)
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_every_layout_arrives(source: str, target: str, dtype: dt.EmberDType, layout: str, switch: Any) -> None:
    there = LAYOUTS[layout](load(source).from_host(_host(dtype), None))
    switch(target)
    wanted = np.asarray(LAYOUTS[layout](_host(dtype)))
    assert _same_bits(
        np.ascontiguousarray(ops.to_numpy(ops.convert_to_tensor(there))).reshape(wanted.shape), wanted.copy()
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int8], ids=str)
def test_arrays_with_negative_and_zero_strides_are_taken(name: str, dtype: dt.EmberDType) -> None:
    for x in (_host(dtype)[::-1, ::-2], np.broadcast_to(_host(dtype)[0], (4, 3))):
        assert _same_bits(load(name).to_host(load(name).from_host(x, None)).copy(), x.copy())


@pytest.mark.parametrize("name", NAMES)
def test_a_read_only_array_gets_no_writable_alias(name: str) -> None:
    x = np.arange(4.0)
    x.flags.writeable = False
    native = load(name).from_host(x, None)
    if name == "numpy":
        assert not native.flags.writeable
    else:
        _write(native)
        mx.eval(native) if name == "mlx" else None
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_numpy_and_torch_share_memory() -> None:
    x = np.arange(4.0)
    there = load("torch").from_host(x, None)
    there[0] = 7.0
    assert x[0] == 7.0
    assert np.shares_memory(load("torch").to_host(there), x)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_array_copies(source: str, target: str, switch: Any) -> None:
    there = load(source).from_host(np.arange(4.0), None, copy=True)
    switch(target)
    copied = ops.array(there)
    _write(copied)
    assert float(there[0]) == 0.0


def test_mlx_memory_is_read_only_on_the_host() -> None:
    for x in (mx.arange(4), mx.ones(4, dtype=mx.bfloat16)):
        host = load("mlx").to_host(x)
        assert not host.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            host.flags.writeable = True


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16], ids=str)
def test_a_host_view_of_mlx_survives_changes_and_its_array(dtype: Any) -> None:
    x = mx.full((300_000,), 3.0, dtype=dtype)
    other = x * 1
    mx.eval(x, other)
    host = load("mlx").to_host(x)
    x[0] = 9.0
    mx.eval(x)
    del x, other
    gc.collect()
    junk = [mx.full((300_000,), float(i), dtype=dtype) for i in range(4)]
    mx.eval(junk)
    assert (host.astype(np.float32) == 3.0).all()


def test_mlx_is_evaluated_before_it_is_read() -> None:
    x = mx.exp(mx.zeros(3)) + 1.0  # nothing has been computed yet
    assert load("mlx").to_host(x).tolist() == [2.0, 2.0, 2.0]


def test_torch_with_gradient_and_views_of_conjugates_are_read() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    assert load("torch").to_host(weight * 2).tolist() == [2.0, 2.0]
    assert load("torch").to_host(torch.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]
    assert load("torch").to_host(torch.tensor([1 + 2j]).conj().imag).tolist() == [-2.0]


@pytest.mark.parametrize("name", NAMES)
def test_double_precision_stays(name: str, switch: Any) -> None:
    switch(name)
    assert ops.item(ops.asarray(np.float64(0.1))) == 0.1
    assert ops.item(ops.asarray(np.array([0.1]))) == 0.1
    assert ops.item(ops.asarray([0.1], dtype="float64")) == 0.1
    assert ops.item(ops.asarray(0.1, dtype="float64")) == 0.1


EXTREMES = [
    0.0,
    -0.0,
    0.5,
    -0.5,
    1.9,
    -1.9,
    127.5,
    128.0,
    255.9,
    256.0,
    -1.0,
    32767.9,
    65535.5,
    65536.0,
    2.0**31,
    -(2.0**31),
]
EXTREMES += [2.0**32, 2.0**53, 2.0**63, -(2.0**63), 1.5 * 2.0**63, 2.0**64, 1e300, -1e300, np.inf, -np.inf, np.nan]
INTEGERS = [
    0,
    1,
    -1,
    127,
    -128,
    128,
    255,
    256,
    32767,
    65535,
    65536,
    2**31 - 1,
    -(2**31),
    2**32,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
]


def _sample(dtype: dt.EmberDType) -> np.ndarray:
    with np.errstate(all="ignore"):
        if dtype.kind == "complex":
            return np.array([0j, 1 + 1j, 2j]).astype(host_dtypes[dtype])
        values = np.array(EXTREMES) if dtype.kind == "float" else np.array(INTEGERS)
        return values.astype(host_dtypes[dtype])


def _saturated(value: float, bits: int, signed: bool) -> int:
    """The rule for a float that becomes an integer, in Python's own integers."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if value != value:
        return 0
    if value in (float("inf"), float("-inf")):
        return high if value > 0 else low
    return min(max(int(value), low), high)


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_casts_agree_with_the_rule(name: str, source: dt.EmberDType) -> None:
    backend = load(name)
    if not _holds(name, source):
        pytest.skip(f"{name} has no {source}")
    sample = _sample(source)
    x = backend.from_host(sample, None)
    for target, native in backend.dtypes.items():
        if source.kind == "complex" and target.kind not in ("complex", "bool"):
            with pytest.raises(TypeError):
                backend.cast(x, native)
            continue
        got = backend.to_host(backend.cast(x, native))
        assert got.dtype == host_dtypes[target]
        if source.kind == "float" and target.kind in ("int", "uint"):
            wanted = [_saturated(float(value), target.bits, target.kind == "int") for value in sample]
            assert got.tolist() == wanted, f"{source} to {target} on {name}"
        else:
            with np.errstate(all="ignore"):
                wanted = sample.astype(host_dtypes[target])
            if target is dt.bfloat16:  # whose NaN NumPy does not know as one
                got, wanted = got.astype(np.float32), wanted.astype(np.float32)
            np.testing.assert_array_equal(got, wanted, f"{source} to {target} on {name}")


class OnlyArray:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array([1.0, 2.0], dtype=dtype)


class OnlyDlpack:
    def __init__(self) -> None:
        self.data = torch.tensor([1.0, 2.0])

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


READABLE = [
    (1.5, "float32", 1.5),
    (True, "bool", True),
    (7, "int64", 7),
    (1j, "complex64", 1j),
    ([], "float32", []),
    ([[], []], "float32", [[], []]),
    ([[1, 2], (3, 4)], "int64", [[1, 2], [3, 4]]),
    ([True, 2.5], "float32", [1.0, 2.5]),
    (range(3), "int64", [0, 1, 2]),
    (array.array("d", [1.0, 2.0]), "float64", [1.0, 2.0]),
    (memoryview(b"ab"), "uint8", [97, 98]),
    (bytearray(b"ab"), "uint8", [97, 98]),
    (np.float64(1.5), "float64", 1.5),
    (np.float16(1.5), "float16", 1.5),
    (np.int8(3), "int8", 3),
    (np.bool_(True), "bool", True),
    ([np.float64(0.1), 0.1], "float64", [0.1, 0.1]),
    ([[np.float64(0.1), 1], [0.1, 2]], "float64", [[0.1, 1.0], [0.1, 2.0]]),
    ([np.float32(1), np.float32(2)], "float32", [1.0, 2.0]),
    ([np.int64(1), np.float32(2)], "float32", [1.0, 2.0]),
    ([torch.ones(2), np.zeros(2, np.float32), mx.full((2,), 2.0)], "float32", [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]),
    ([torch.ones(2, dtype=torch.int8), [True, 1]], "int8", [[1, 1], [1, 1]]),
    (np.arange(3, dtype=">f4"), "float32", [0.0, 1.0, 2.0]),
    (np.ma.MaskedArray([1.0, 2.0]), "float64", [1.0, 2.0]),
    (OnlyArray(), "float64", [1.0, 2.0]),
    (OnlyDlpack(), "float32", [1.0, 2.0]),
    (torch.nn.Parameter(torch.ones(2), requires_grad=False), "float32", [1.0, 1.0]),
    (np.array([1.5], dtype=ml_dtypes.bfloat16), "bfloat16", [1.5]),
]


@pytest.mark.parametrize(("data", "dtype", "values"), READABLE, ids=lambda value: type(value).__name__)
def test_what_can_be_read(data: Any, dtype: str, values: Any, backend: str) -> None:
    x = ops.array(data)
    assert ops.is_tensor(x)
    assert ops.dtype(x) == dtype
    assert ops.to_numpy(x).tolist() == values


REFUSED = [
    ("text", TypeError),
    (b"bytes", TypeError),
    (None, TypeError),
    ({"a": 1}, TypeError),
    ({1, 2}, TypeError),
    (["a", "b"], TypeError),
    ([1.0, None], TypeError),
    ([1, [2, 3]], ValueError),
    ([[1, 2], [3]], ValueError),
    ([np.zeros(2), np.zeros(3)], ValueError),
    ([2**63], OverflowError),
    ([2**63, -1], OverflowError),
    ([10**400], OverflowError),
    ([1.5, 10**400], OverflowError),
    (np.array(["a"]), TypeError),
    (np.array([object()]), TypeError),
    (np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError),
    (np.zeros(2, dtype=[("a", "f4")]), TypeError),
    (np.zeros(2, dtype=np.longdouble), TypeError),
    (np.ma.MaskedArray([1.0, 2.0], mask=[True, False]), TypeError),
    (object(), TypeError),
    ((x for x in range(3)), TypeError),
]


@pytest.mark.parametrize(("data", "error"), REFUSED, ids=lambda value: type(value).__name__)
def test_what_cannot_be_read(data: Any, error: type[Exception], backend: str) -> None:
    with pytest.raises(error):
        ops.array(data)


def test_integers_and_the_dtype_asked_for(backend: str) -> None:
    assert ops.item(ops.array([2**64 - 1], dtype="uint64")) == 2**64 - 1
    assert ops.item(ops.array(2**63, dtype="uint64")) == 2**63
    assert ops.item(ops.array([2**70], dtype="float64")) == 2.0**70
    assert ops.item(ops.array([2**70], dtype="bool")) is True
    for data, dtype in (
        ([2**64], "uint64"),
        ([-1], "uint64"),
        ([128], "int8"),
        ([-1], "uint8"),
        ([10**400], "float64"),
    ):
        with pytest.raises(OverflowError):
            ops.array(data, dtype=dtype)
    with pytest.raises(TypeError, match="complex"):
        ops.array([1j], dtype="float32")


def test_a_deep_nest_is_refused(backend: str) -> None:
    data: Any = 1.0
    for _ in range(80):
        data = [data]
    with pytest.raises(ValueError, match="64"):
        ops.array(data)


def test_data_frames_are_read(backend: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert ops.to_numpy(ops.array(frame)).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert ops.dtype(ops.array(frame["a"])) == "float64"
    with pytest.raises(TypeError):
        ops.array(pandas.DataFrame({"a": [1.0], "b": ["x"]}))


def test_an_array_with_an_unpickled_dtype_is_native_again() -> None:
    import pickle

    x = np.zeros(2, dtype=pickle.loads(pickle.dumps(np.dtype("float32"))))
    assert as_host(x).dtype is host_dtypes[dt.float32]
    assert np.shares_memory(as_host(x), x)


def test_host_casts_refuse_to_drop_the_imaginary_part() -> None:
    with pytest.raises(TypeError, match="real"):
        cast_host(np.array([1j]), np.dtype("float32"))


@pytest.mark.parametrize("largest", [65519.0, 65520.0, np.inf, np.nan])
def test_many_numbers_become_the_halves_that_numpy_finds_one_by_one(largest: float) -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = np.append((halves[:-1] + halves[1:]) / 2, np.float32(1e-40))
    ends = [np.nextafter(x, end, dtype=np.float32) for x in (halves, ties) for end in (-np.inf, np.inf)]
    x = np.concatenate([halves, ties, *ends, np.float32([0.0, largest])])
    x = np.concatenate([x, -x]).reshape(2, -1)
    with np.errstate(all="ignore"):
        want = x.astype(np.float16)
    assert np.array_equal(cast_host(x, host_dtypes[dt.float16]).view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("copy", [None, True, False])
def test_asarray_says_whether_it_copies(copy: bool | None, backend: str) -> None:
    x = ops.ones(3)
    result = ops.asarray(x, copy=copy)
    assert (result is x) is (copy is not True)
    if copy is False:
        with pytest.raises(ValueError, match="copy"):
            ops.asarray(x, dtype="int32", copy=False)
        with pytest.raises(ValueError, match="copy"):
            ops.asarray([1.0, 2.0], copy=False)
        host = np.arange(3.0)
        if backend in ("mlx", "jax"):  # which copy whatever they import
            with pytest.raises(ValueError, match="copy"):
                ops.asarray(host, copy=False)
        else:
            assert np.shares_memory(ops.to_numpy(ops.asarray(host, copy=False)), host)


def test_values_of_traced_tensors_are_not_read() -> None:
    seen: list[bool] = []

    def look(x: Any, name: str) -> Any:
        seen.append(load(name).is_traced(x))
        return x * 2

    mx.compile(lambda x: look(x, "mlx"))(mx.ones(2))
    mx.vmap(lambda x: look(x, "mlx"))(mx.ones((2, 2)))
    torch.func.vmap(lambda x: look(x, "torch"))(torch.ones(2, 2))
    assert seen == [True, True, True]
    assert not load("mlx").is_traced(mx.ones(2))
    assert not load("torch").is_traced(torch.ones(2))
    assert not load("numpy").is_traced(np.ones(2))

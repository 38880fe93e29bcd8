"""Creation, conversion, dtypes and devices: what the contract's generic tests cannot see."""

import math
import struct
import warnings
from ctypes import c_float
from fractions import Fraction
from typing import Any

import pytest

import ember_ml
from ember_ml import dtypes as dt
from ember_ml import ops
from ember_ml.errors import DeviceError, UnsupportedDType
from ember_ml.nn import tensor
from tests.subnormals import keeps_subnormals

ALL = sorted(dt.ALL, key=lambda dtype: dtype.name)


def values(x: Any) -> Any:
    return ops.to_numpy(x).tolist()


def _held(backend: str, dtype: dt.EmberDType) -> bool:
    return not (backend == "mlx" and dtype is dt.complex128)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype_can_be_made(dtype: dt.EmberDType, backend: str) -> None:
    makers = {
        "zeros": lambda: ops.zeros((2, 3), dtype),
        "ones": lambda: ops.ones((2, 3), dtype=dtype.name),
        "empty": lambda: ops.empty((2, 3), dtype=dtype),
        "full": lambda: ops.full((2, 3), 1, dtype),
        "eye": lambda: ops.eye(2, 3, dtype=dtype),
        "tri": lambda: ops.tri(2, 3, dtype=dtype),
        "linspace": lambda: ops.reshape(ops.linspace(0, 1, 6, dtype=dtype), (2, 3)),
        "arange": lambda: ops.reshape(ops.arange(0, 6, dtype=dtype), (2, 3)),
        "zeros_like": lambda: ops.zeros_like(ops.ones((2, 3)), dtype=dtype),
        "full_like": lambda: ops.full_like(ops.ones((2, 3)), 1, dtype=dtype),
        "array": lambda: ops.array([[0, 1, 1], [1, 0, 1]], dtype=dtype),
    }
    for name, make in makers.items():
        if not _held(backend, dtype):
            with pytest.raises(UnsupportedDType):
                make()
            continue
        made = make()
        assert ops.dtype(made) is dtype, name
        assert ops.shape(made) == (2, 3), name


def test_what_is_made_is_what_was_asked_for(backend: str) -> None:
    assert values(ops.zeros((1, 2), "int8")) == [[0, 0]]
    assert values(ops.ones(2, "bool")) == [True, True]
    assert values(ops.eye(3, k=-1)) == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert values(ops.eye(2, 3, k=9)) == [[0, 0, 0], [0, 0, 0]]
    assert values(ops.eye(2, 3, k=-(2**40))) == [[0, 0, 0], [0, 0, 0]]
    assert ops.shape(ops.eye(0)) == (0, 0)
    assert ops.shape(ops.eye(0, 3)) == (0, 3)
    assert values(ops.tri(3, k=1)) == [[1, 1, 0], [1, 1, 1], [1, 1, 1]]
    assert values(ops.full((2, 2), ops.array([1, 2]))) == [[1, 2], [1, 2]]
    assert values(ops.full((), 2**63, "uint64")) == 2**63
    assert values(ops.full_like(ops.ones(2, "int8"), 7)) == [7, 7]
    assert ops.dtype(ops.full_like(ops.ones(2, "int8"), 7)) == "int8"
    assert [values(part) for part in ops.triu_indices(2, 0, 3)] == [[0, 0, 0, 1, 1], [0, 1, 2, 1, 2]]
    assert [values(part) for part in ops.tril_indices(2, -1)] == [[1], [0]]
    assert {str(ops.dtype(part)) for part in ops.triu_indices(2)} == {"int64"}


def test_bad_shapes_and_values_are_refused(backend: str) -> None:
    for call, error in (
        (lambda: ops.zeros((-1, 2)), ValueError),
        (lambda: ops.zeros((1.5,)), TypeError),
        (lambda: ops.zeros("12"), TypeError),
        (lambda: ops.zeros((2**40, 2**40)), MemoryError),
        (lambda: ops.eye(-1), ValueError),
        (lambda: ops.full((2,), 300, "uint8"), OverflowError),
        (lambda: ops.full((2,), 1j, "float32"), TypeError),
        (lambda: ops.full((2,), [1, 2, 3]), ValueError),
        (lambda: ops.zeros(2, dtype="float33"), TypeError),
        (lambda: ops.arange(0, 1, 0), ValueError),
        (lambda: ops.arange(0, math.inf), ValueError),
        (lambda: ops.arange(0, math.nan), ValueError),
        (lambda: ops.arange(300, dtype="uint8"), OverflowError),
        (lambda: ops.linspace(0, 1, -1), ValueError),
        (lambda: ops.linspace(0, 1, 2.5), TypeError),
        (lambda: ops.geomspace(0, 1, 3), ValueError),
        (lambda: ops.meshgrid(ops.ones(2), indexing="yx"), ValueError),
        (lambda: ops.meshgrid(ops.ones((2, 2)), ops.ones(2)), ValueError),
        (lambda: ops.tril(ops.ones(2)), ValueError),
        (lambda: ops.diag(ops.ones((2, 2, 2))), ValueError),
        (lambda: ops.vander(ops.ones((2, 2))), ValueError),
    ):
        with pytest.raises(error):
            call()


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 1, 0.1), (1, 1.3, 0.1), (5, 0, -1.5), (0.1, 100.0, 0.7), (2, 2.0, 1), (1e6, 1e6 + 3, 0.3)],
)
def test_ranges_of_floats_are_computed_in_double(start: float, stop: float, step: float, backend: str) -> None:
    count = max(0, math.ceil((stop - start) / step))
    got = ops.arange(start, stop, step, dtype="float64")
    assert values(got) == [start + i * step for i in range(count)]
    assert values(ops.arange(start, stop, step)) == values(ops.cast(got, "float32"))


@pytest.mark.parametrize(
    "bounds", [(5,), (2, 9, 3), (9, 2, -3), (0,), (3, 1), (-5, 5), (2**62, 2**62 + 3), (-(2**63), -(2**63) + 2)]
)
def test_ranges_of_integers_are_exact(bounds: tuple[int, ...], backend: str) -> None:
    got = ops.arange(*bounds)
    assert ops.dtype(got) == "int64"
    assert values(got) == list(range(*bounds))


def test_ranges_of_the_largest_integers(backend: str) -> None:
    assert values(ops.arange(2**64 - 5, 2**64, 2, dtype="uint64")) == [2**64 - 5, 2**64 - 3, 2**64 - 1]
    assert values(ops.arange(2**64 - 1, 2**64 - 4, -1, dtype="uint64")) == [2**64 - 1, 2**64 - 2, 2**64 - 3]
    assert values(ops.arange(3, dtype="uint16")) == [0, 1, 2]
    assert values(ops.arange(ops.array(3))) == [0, 1, 2]


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 2, 7])
def test_even_spacing_against_exact_fractions(num: int, endpoint: bool, backend: str) -> None:
    start, stop = Fraction(-3, 2), Fraction(10)
    parts = max(1, num - 1) if endpoint else max(1, num)
    exact = [start + (stop - start) * i / parts for i in range(num)]
    for got in (
        ops.linspace(-1.5, 10, num, endpoint, dtype="float64"),
        ops.linspace(ops.array(-1.5, "float64"), 10, num, endpoint),
    ):
        assert ops.dtype(got) == "float64"
        assert values(got) == pytest.approx([float(x) for x in exact], rel=1e-14, abs=1e-14)
    if num > 1 and endpoint:
        assert values(got)[-1] == 10.0


@pytest.mark.parametrize("stop", [1.0, -2.5, 1e-30, 1e-44, 3e38, 1e39])
def test_evenly_spaced_numbers_of_any_size_are_rounded_once(stop: float, backend: str) -> None:
    assert values(ops.linspace(0.0, stop, 5)) == [c_float(stop * i / 4).value for i in range(5)]


def test_spacing_of_tensors_lies_along_the_axis(backend: str) -> None:
    first, last = ops.array([0.0, 10.0]), ops.array([1.0, 20.0])
    assert values(ops.linspace(first, last, 3)) == [[0.0, 10.0], [0.5, 15.0], [1.0, 20.0]]
    assert values(ops.linspace(first, last, 3, axis=-1)) == [[0.0, 0.5, 1.0], [10.0, 15.0, 20.0]]
    assert values(ops.logspace(ops.array([0.0, 1.0]), 2, 2)) == [[1.0, 10.0], [100.0, 100.0]]
    spread = ops.geomspace(ops.array([1.0, -2.0]), ops.array([4.0, -8.0]), 3)
    assert values(ops.ravel(spread)) == pytest.approx([1.0, -2.0, 2.0, -4.0, 4.0, -8.0], rel=1e-6)
    assert values(spread)[-1] == [4.0, -8.0]
    assert values(ops.linspace(-10, 0, 4, dtype="int32")) == [-10, -7, -4, 0]
    assert values(ops.linspace(ops.array([-10]), 0, 4, dtype="int32")) == [[-10], [-7], [-4], [0]]
    assert values(ops.linspace(0, 1 + 1j, 2)) == [0j, 1 + 1j]


def test_casts_take_any_name_of_a_dtype(backend: str) -> None:
    x = ops.array([1.0, 2.0], "float64")
    for name in (x.dtype, "float64", dt.float64, ops.float64):
        assert ops.dtype(ops.cast(255.0, name)) == "float64"
        assert ops.cast(x, name) is x
    assert ops.item(ops.cast(0.1, "float64")) == 0.1
    with pytest.raises(TypeError, match="not a dtype"):
        ops.cast(x, "text")


def test_every_float16_number_becomes_its_float32_number(backend: str) -> None:
    least = 0 if keeps_subnormals(backend) else 0x400
    bits = [sign + number for sign in (0, 0x8000) for number in (0, *range(least, 0x8000))]
    wanted = struct.unpack(f"<{len(bits)}e", struct.pack(f"<{len(bits)}H", *bits))
    halves = ops.array(wanted, dtype="float16")
    for step in (1, 2):
        found = ops.to_numpy(ops.cast(halves[::step], "float32")).tolist()
        assert [*map(str, found)] == [*map(str, wanted[::step])]  # zeros with their signs, and NaN


def test_saturating_casts(backend: str) -> None:
    assert values(ops.saturate_cast(ops.array([300, -5, 7], "int32"), "uint8")) == [255, 0, 7]
    assert values(ops.saturate_cast(ops.array([2**64 - 1], "uint64"), "int64")) == [2**63 - 1]
    assert values(ops.saturate_cast(ops.array([1e300, -math.inf, math.nan], "float64"), "float32"))[:2] == [
        3.4028234663852886e38,
        -3.4028234663852886e38,
    ]
    assert values(ops.saturate_cast(ops.array([100_000]), "float16")) == [65504.0]
    assert values(ops.saturate_cast(ops.array([math.nan, 1e20]), "int8")) == [0, 127]


def test_the_same_bytes_as_another_dtype(backend: str) -> None:
    assert values(ops.view(ops.array([[1.0, -1.0]]), "int32")) == [[0x3F800000, 0xBF800000 - 2**32]]
    assert values(ops.view(ops.array([1.5 + 2j]), "float32")) == [1.5, 2.0]
    assert values(ops.view(ops.array([0x04030201], "uint32"), "uint8")) == [1, 2, 3, 4]
    assert values(ops.view(ops.array([[1, 3], [2, 4]], "uint8"), "uint16")) == [[0x0301], [0x0402]]
    assert values(ops.view(ops.transpose(ops.array([[1, 3], [2, 4]], "uint8")), "uint16")) == [[0x0201], [0x0403]]
    with pytest.raises(ValueError, match="view"):
        ops.view(ops.array([1, 2, 3], "uint8"), "uint16")
    with pytest.raises(ValueError, match="view"):
        ops.view(ops.array(1.0), "int16")


def test_a_copy_is_independent(backend: str) -> None:
    x = ops.array([1.0, 2.0])
    y = ops.copy(x)
    if backend == "jax":  # whose arrays refuse to be changed
        with pytest.raises(TypeError):
            y[0] = 9.0  # emberlint: ignore[EMB403] shows that it is refused
    else:
        y[0] = 9.0  # emberlint: ignore[EMB403] shows that the memory is its own
    assert values(x) == [1.0, 2.0]


def test_portable_in_portable_out(backend: str) -> None:
    x = tensor.array([1.0, 2.0])
    for made in (
        ops.zeros_like(x),
        ops.cast(x, "int8"),
        ops.array(x),
        ops.copy(x),
        ops.asarray(x),
        ops.to_device(x, "cpu"),
    ):
        assert type(made) is tensor.EmberTensor
    assert all(type(part) is tensor.EmberTensor for part in ops.meshgrid(x, x))
    assert all(type(part) is tensor.EmberTensor for part in tensor.triu_indices(3))
    assert type(tensor.arange(3)) is tensor.EmberTensor
    assert type(ops.array([1.0])) is not tensor.EmberTensor


def test_facts_of_tensors_and_data(backend: str) -> None:
    for x in (ops.ones((2, 3), "int8"), tensor.ones((2, 3), "int8")):
        assert (ops.shape(x), ops.ndim(x), ops.size(x), ops.dtype(x), ops.is_tensor(x)) == ((2, 3), 2, 6, "int8", True)
        assert type(ops.shape(x)) is tuple
    assert ops.item(ops.ones((1, 1), "bfloat16")) == 1.0
    assert type(ops.item(ops.ones((1, 1), "bfloat16"))) is float
    assert type(ops.item(ops.ones((), "int8"))) is int
    with pytest.raises(ValueError, match="exactly one"):
        ops.item(ops.ones(2))
    assert not ops.is_tensor(1.5)
    assert not ops.is_tensor("float32")


def test_every_public_name_of_dtypes(backend: str) -> None:
    for dtype in ALL:
        assert getattr(ops, dtype.name) is dtype
        assert ops.result_type(dtype, dtype) is dtype
        assert ops.can_cast(dtype, dtype)
    assert ops.result_type(ops.ones(2, "int8"), 3, 2.5) is dt.float32
    assert ops.result_type(ops.ones(2, "float16"), ops.ones(2, "bfloat16")) is dt.float32
    assert ops.result_type(1, 2.5) is dt.float32
    assert ops.isdtype(ops.ones(2).dtype, "real floating")
    assert ops.isdtype("bool", ("bool", "integral"))
    assert ops.iinfo(ops.ones(2, "uint8")).max == 255
    assert ops.finfo("complex64").bits == 32
    assert ops.finfo("float64").eps == 2.0**-52
    assert ops.finfo("float32").smallest_normal == 2.0**-126
    for call, error in (
        (lambda: ops.iinfo("float32"), TypeError),
        (lambda: ops.finfo("int8"), TypeError),
        (lambda: ops.isdtype("int8", "round"), ValueError),
        (lambda: ops.result_type("uint64", "int64"), TypeError),
        (lambda: ops.result_type(), TypeError),
    ):
        with pytest.raises(error):
            call()


def test_devices(backend: str) -> None:
    assert ops.get_available_devices()[0] == "cpu"
    assert ops.is_available("cpu")
    assert not ops.is_available("cuda:77")
    x = ops.ones(2)
    assert ops.to_device(x, ops.get_device(x)) is x
    with ops.use_device("cpu"):
        assert ops.get_device() == ops.get_default_device() == ops.get_device(ops.zeros(2)) == "cpu"
    with pytest.raises(DeviceError, match="cuda:77"):
        ops.to_device(x, "cuda:77", strict=True)
    with pytest.raises(DeviceError, match="toaster"):
        ops.to_device(x, "toaster")
    with pytest.raises(DeviceError, match="toaster"):
        ops.zeros(2, device="toaster")
    with pytest.raises(DeviceError, match="cuda:78"):
        ops.set_default_device("cuda:78", strict=True)
    ops.synchronize()
    ops.synchronize("cpu")
    info = ops.memory_info()
    assert set(info) == {"allocated", "peak", "total"}
    assert info["total"] is None or info["total"] > 0


def test_a_device_that_is_not_there_warns_once(backend: str) -> None:
    name = "cuda:91"
    ember_ml.backend.devices._warned.discard((backend, name))
    with pytest.warns(UserWarning, match=name):
        x = ops.zeros(2, device=name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = ops.to_device(ops.zeros(2), name)
    assert ops.get_device(x) == ops.get_device(y)
    assert ops.get_device(x) in ops.get_available_devices()


@pytest.mark.parametrize("k", [2, -2, 2**70, -(2**70)])
def test_eye_without_its_diagonal_is_zero(backend: str, k: int) -> None:
    assert values(ops.eye(2, k=k)) == [[0.0, 0.0], [0.0, 0.0]]
    assert ops.shape(ops.eye(0, 3, k=k)) == (0, 3)

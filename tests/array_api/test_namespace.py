"""The standard's namespaces: complete, fixed, each on its own backend."""

import importlib

import pytest

import ember_ml
from ember_ml.array_api import namespace
from ember_ml.array_api.signatures import FFT, LINALG, MAIN
from ember_ml.backend import installed_backends
from ember_ml.nn.tensor import EmberTensor


def _names(table: str) -> list[str]:
    return [line.partition("(")[0] for line in table.split("\n") if line]


def test_one_object_for_good(backend: str) -> None:
    xp = EmberTensor([1.0]).__array_namespace__()
    assert xp is namespace(backend) is importlib.import_module(f"ember_ml.array_api.{backend}")
    assert EmberTensor([1.0]).__array_namespace__(api_version="2024.12") is xp
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match="is not offered"):
        EmberTensor([1.0]).__array_namespace__(api_version="2021.12")


def test_everything_is_there(backend: str) -> None:
    xp = namespace(backend)
    for holder, table in ((xp, MAIN), (xp.linalg, LINALG), (xp.fft, FFT)):
        missing = [name for name in _names(table) if not callable(getattr(holder, name, None))]
        assert not missing
        assert set(_names(table)) <= set(holder.__all__)


def test_creation_uses_the_backend_of_the_name(backend: str) -> None:
    for other in installed_backends():
        xp = namespace(other)
        for x in (xp.zeros(2), xp.asarray([1.0]), xp.arange(3), xp.linspace(0.0, 1.0, 3), xp.eye(2)):
            assert type(x) is EmberTensor
            assert x.backend == other
    assert ember_ml.get_backend() == backend


def test_functions_use_the_backend_of_the_tensors(backend: str) -> None:
    for other in installed_backends():
        x = namespace(other).asarray([[4.0, 1.0], [1.0, 3.0]])
        xp = x.__array_namespace__()
        results = [xp.sum(x), xp.concat([x, x]), xp.where(x > 1, x, 0.0), xp.linalg.inv(x), xp.fft.fft(x)]
        results += xp.meshgrid(x[0], x[1])
        assert {result.backend for result in results} == {other}


def test_asarray(backend: str) -> None:
    for other in installed_backends():
        x = namespace(other).asarray([1.0, 2.0])
        xp = namespace(backend)
        y = xp.asarray(x)
        assert y.backend == backend
        assert y.tolist() == [1.0, 2.0]
        assert (y is x) is (other == backend)
        assert xp.asarray(y, dtype="float64").dtype == "float64"
    assert xp.asarray(y, copy=False) is y
    copied = xp.asarray(y, copy=True)
    copied[0] = 5.0
    assert y.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray(y, dtype="float64", copy=False)


def test_astype_and_reshape(backend: str) -> None:
    xp = namespace(backend)
    x = xp.asarray([1.0, 2.0])
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32) is not x
    assert xp.astype(x, xp.int8, device=x.device).dtype == xp.int8
    assert xp.reshape(x, (2, 1), copy=True).shape == xp.reshape(x, (2, 1), copy=False).shape == (2, 1)


def test_inspection(backend: str) -> None:
    info = namespace(backend).__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == "float32"
    assert info.default_dtypes()["integral"] == "int64"
    assert info.default_device() in info.devices()
    assert set(info.dtypes(kind="bool")) == {"bool"}
    assert set(info.dtypes(kind=("signed integer", "unsigned integer"))) == set(info.dtypes(kind="integral"))
    assert "bfloat16" not in info.dtypes()
    assert info.capabilities()["data-dependent shapes"] is True
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="text")

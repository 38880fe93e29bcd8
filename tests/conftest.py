"""Fixtures that every test shares: each test of behaviour runs on each installed backend."""

import os
import tempfile
from collections.abc import Iterator

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy reads it when it is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker has one core; threads that wait for each other cost more
# torch 2.13: oneDNN's bfloat16 kernels for AMX die by an illegal instruction on virtual machines that announce AMX only
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# MKL adds up in an order that depends on the alignment of the memory; some tests compare bits
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
# JAX compiles each function anew for each shape: what was compiled before, by any worker, is read from this folder
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.path.join(tempfile.gettempdir(), "ember_ml_jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import pytest
from hypothesis import HealthCheck, settings

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.backend.selection import VARIABLE

# The machine's load decides how long an example takes, and the first one on a backend also loads its library.
_SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("quick", max_examples=20, derandomize=True, **_SETTINGS)
settings.register_profile("long", max_examples=200, **_SETTINGS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# What the user has chosen for his own programs must not decide what is tested.
os.environ.pop(VARIABLE, None)
ember_ml.set_backend("numpy")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backends", help="run the tests on these, as 'numpy,jax'; by default on all installed but jax")
    parser.addoption("--device", help="make new tensors there, as 'cuda'; backends that lack it are skipped")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of backends that were not asked for."""
    asked = config.getoption("--backends")
    # JAX compiles every function for every shape, which takes several times as long as all the other tests together
    left_out = set(installed_backends()) - set(asked.split(",")) if asked else {"jax"}
    kept, others = [], []
    for item in items:
        (kept if left_out.isdisjoint(_texts_of(item)) else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def _texts_of(item: pytest.Item) -> list[str]:
    """Return the parameters of a test that are strings, such as the names of backends."""
    values = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return [value for value in values if isinstance(value, str)]


@pytest.fixture(params=installed_backends())
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Make one installed backend the active one for a test, on the device that was asked for; return its name."""
    before = ember_ml.get_backend()
    ember_ml.set_backend(request.param)
    device = request.config.getoption("--device")
    try:
        if device is None:
            yield request.param
        elif not any(name.partition(":")[0] == device for name in ops.get_available_devices()):
            pytest.skip(f"{request.param} has no {device} on this machine")
        else:
            default = ops.get_default_device()
            ops.set_default_device(device)
            yield request.param
            ember_ml.set_backend(request.param)
            ops.set_default_device(default)
    finally:
        ember_ml.set_backend(before)

"""Fixtures that every test shares: each test of behaviour runs on each installed backend."""

import os
import sys
import zlib
from collections.abc import Iterator

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # SciPy reads it when it is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker has one core; threads that wait for each other cost more
# torch 2.13: oneDNN's bfloat16 kernels for AMX die by an illegal instruction on virtual machines that announce AMX only
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# MKL adds up in an order that depends on the alignment of the memory; some tests compare bits
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # workers share a GPU, of which JAX takes 3/4 at once

import pytest
from hypothesis import HealthCheck, settings

import ember_ml
from ember_ml import ops
from ember_ml.backend import installed_backends
from ember_ml.backend.selection import VARIABLE
from tests.reference import compiling

for _name, _value in compiling.SETTINGS.items():  # which JAX reads when it is imported
    os.environ.setdefault(_name, _value)

# The machine's load decides how long an example takes, and the first one on a backend also loads its library.
_SETTINGS = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("quick", max_examples=20, derandomize=True, **_SETTINGS)
settings.register_profile("long", max_examples=200, **_SETTINGS)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
settings.load_profile(_PROFILE)
# A function is compiled for each example's shapes on JAX: a tenth of the examples there, all of them by --backends
settings.register_profile("compiled", settings.default, max_examples=settings.default.max_examples // 10)

# What the user has chosen for his own programs must not decide what is tested.
os.environ.pop(VARIABLE, None)
ember_ml.set_backend("numpy")


# JAX compiles every function for every shape: by default it has the tests of tensors, and one in 16 of these folders
_ON_JAX = {"tensor"}
_PARTLY_ON_JAX = {"behaviour", "nn", "ops", "training"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--backends", help="run on these, as 'numpy,jax'; by default on all installed, on jax in part")
    parser.addoption("--device", help="make new tensors there, as 'cuda'; backends that lack it are skipped")


@pytest.hookimpl(tryfirst=True)  # before those that are marked as long are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of backends that were not asked for; mark those that are long with their parameters."""
    asked = config.getoption("--backends")
    left_out = set(installed_backends()) - set(asked.split(",")) if asked else set()
    kept, others = [], []
    for item in items:
        is_kept = left_out.isdisjoint(_texts_of(item)) and (asked or not _is_on_request(item))
        (kept if is_kept else others).append(item)
        if any(name in _texts_of(item) for mark in item.iter_markers("long_with") for name in mark.args):
            item.add_marker("long")
    config.hook.pytest_deselected(items=others)
    items[:] = kept


def _is_on_request(item: pytest.Item) -> bool:
    """Whether a test runs only where its backend is asked for, as most do on JAX."""
    if "jax" not in _texts_of(item):
        return False
    folders = {*item.path.parts}
    is_of_part = bool(_PARTLY_ON_JAX & folders) and zlib.crc32(item.nodeid.encode()) % 16 == 0
    return not (_ON_JAX & folders or is_of_part)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Prepare for a test on JAX: choose what programs share, and the number of examples."""
    is_of_jax = "jax" in _texts_of(item)
    if is_of_jax or "jax" in sys.modules:  # which tests of all backends import
        compiling.share_context()
    if is_of_jax and item.config.getoption("--backends") is None:
        settings.load_profile("compiled")
    try:
        return (yield)
    finally:
        settings.load_profile(_PROFILE)


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

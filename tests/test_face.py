"""The public face: what it offers, what importing it costs and loads."""

import importlib
import subprocess
import sys

import ember_ml
from ember_ml.backend import installed_backends


def _in_a_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout


def test_every_public_name_exists() -> None:
    assert not [name for name in ember_ml.__all__ if not hasattr(ember_ml, name)]
    assert ember_ml.__version__.count(".") >= 2


def test_importing_prints_nothing_and_loads_no_other_library() -> None:
    code = "import sys, ember_ml; assert not {'torch', 'mlx', 'jax', 'tensorflow'} & set(sys.modules)"
    assert _in_a_new_process(code) == ""


def test_reloading_keeps_the_backend() -> None:
    before = ember_ml.get_backend()
    try:
        for name in installed_backends():
            ember_ml.set_backend(name)
            importlib.reload(ember_ml)
            assert ember_ml.get_backend() == name
    finally:
        ember_ml.set_backend(before)

"""JAX's switch of 64-bit dtypes: set when the backend is loaded, and what a program's own JAX code sees of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ember_ml.backend import is_installed

pytestmark = pytest.mark.skipif(not is_installed("jax"), reason="JAX is not installed")


def _run(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


def test_other_backends_leave_the_switch_alone() -> None:
    assert _run(
        "import jax.numpy as jnp, ember_ml\n"
        "from ember_ml import ops\n"
        "ember_ml.set_backend('numpy')\n"
        "ops.add([1.0], 2.0)\n"
        "print(jnp.ones(3).dtype, jnp.arange(3).dtype)"
    ) == ["float32", "int32"]


def test_loading_sets_it_and_a_block_gives_32_bits_back() -> None:
    assert _run(
        "import jax, jax.numpy as jnp, ember_ml\n"
        "from ember_ml import ops\n"
        "own = jnp.ones(3)\n"
        "ember_ml.set_backend('jax')\n"
        "print(own.dtype, jnp.ones(3).dtype)\n"
        "with jax.enable_x64(False):\n"
        "    print(jnp.ones(3).dtype, jnp.sin(jnp.arange(3.0)).dtype)\n"
        "x = ops.add(ops.asarray([2**40]), 1)\n"
        "print(x.dtype, int(x[0]) == 2**40 + 1, ops.add(own, 1.0).dtype)"
    ) == ["float32", "float64", "float32", "float32", "int64", "True", "float32"]


def test_wide_dtypes_are_refused_where_they_are_switched_off() -> None:
    assert _run(
        "import jax, ember_ml\n"
        "from ember_ml import ops\n"
        "ember_ml.set_backend('jax')\n"
        "jax.config.update('jax_enable_x64', False)\n"
        "print(ops.zeros(2).dtype)\n"
        "makers = [lambda: ops.asarray([2**40]), lambda: ops.zeros(2, dtype='float64')]\n"
        "for make in [*makers, lambda: ops.cast(1.0, 'int64')]:\n"
        "    try:\n"
        "        make()\n"
        "    except TypeError as error:\n"
        "        print('jax_enable_x64' in str(error))"
    ) == ["float32", "True", "True", "True"]


def test_numbers_that_a_function_makes_keep_their_digits() -> None:
    assert _run(
        "import ember_ml\n"
        "from ember_ml import ops\n"
        "ember_ml.set_backend('jax')\n"
        "x = ops.asarray([0.1], dtype='float64')\n"
        "for add in (ops.add, ember_ml.compile(lambda x, y: ops.add(x, y))):\n"
        "    print(float(add(x, 0.2)[0]) == 0.1 + 0.2)"
    ) == ["True", "True"]

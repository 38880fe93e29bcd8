"""Spend less on the programs that JAX compiles: a test that runs once has no use for the care that a user's gets."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

__all__ = ["SETTINGS", "share_context"]

# JAX compiles each function for each shape. What any run has compiled before is read from a folder; optimizing less
# takes a third of the time. Where XLA_FLAGS is set, also to nothing, that is tested: with nothing, what users get.
SETTINGS = {
    "JAX_COMPILATION_CACHE_DIR": os.path.join(tempfile.gettempdir(), "ember_ml_jax_cache"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    "XLA_FLAGS": "--xla_backend_optimization_level=0",
}
if find_spec("jaxlib") and version("jaxlib").startswith("0.10."):  # jaxlib 0.11 ends at a flag that it does not know
    SETTINGS["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"


@cache
def share_context() -> None:
    """Let all programs of this process share what describes them."""
    from jax._src.interpreters import mlir

    # JAX 0.10: makes one for each program, in 4 ms, and keeps 1.4 MB of it: several GB in a run of the tests
    mlir.make_ir_context = cache(mlir.make_ir_context)

"""Arrays over several devices of this process: what jax.jit computes of them it computes on all of these devices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ember_ml.backend.jax.host_transfer import device_named

__all__ = ["put"]


def put(x: jax.Array, devices: Sequence[str], axis: int | None) -> jax.Array:
    """Return ``x`` in equal parts along ``axis``, one on each of the devices; whole on each for None."""
    parts = () if axis is None else (*[None] * axis, "devices")
    return jax.device_put(x, NamedSharding(_mesh(tuple(devices)), PartitionSpec(*parts)))


@cache
def _mesh(devices: tuple[str, ...]) -> Mesh:
    return Mesh(np.array([device_named(device) for device in devices]), ("devices",))

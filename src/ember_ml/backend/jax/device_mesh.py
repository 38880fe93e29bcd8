"""Arrays over several devices of this process: what jax.jit computes of them it computes on all of these devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ember_ml.backend.jax.host_transfer import device_named

__all__ = ["put"]


def put(x: jax.Array, devices: Sequence[str], axes: Mapping[str, int], parts: Sequence[Sequence[str]]) -> jax.Array:
    """Return ``x`` over the devices of a mesh; ``parts`` names for each axis of ``x`` those over which it is split."""
    spec = PartitionSpec(*[tuple(names) or None for names in parts])
    return jax.device_put(x, NamedSharding(_mesh(tuple(devices), tuple(axes.items())), spec))


@cache
def _mesh(devices: tuple[str, ...], axes: tuple[tuple[str, int], ...]) -> Mesh:
    grid = np.array([device_named(device) for device in devices]).reshape([length for _, length in axes])
    return Mesh(grid, tuple(name for name, _ in axes))

"""Training on several processes and hosts: strategies, collectives, the launcher, and its ranks' signs of life."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ember_ml.distributed import collectives, strategy
    from ember_ml.distributed.groups import initialize, is_initialized, local_rank, rank, shutdown, world_size

_LAZY = {
    "collectives": "",
    "initialize": "groups",
    "is_initialized": "groups",
    "local_rank": "groups",
    "rank": "groups",
    "shutdown": "groups",
    "strategy": "",
    "world_size": "groups",
}
"""Names, and the modules that have them; importing the package does not load them."""


def __getattr__(name: str) -> Any:
    where = _LAZY.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if where:
        return getattr(import_module(f"{__name__}.{where}"), name)
    return import_module(f"{__name__}.{name}")

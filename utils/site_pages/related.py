"""What a page of the reference leads on to: names like its own, and the page that explains the subject."""

from __future__ import annotations

import re

from site_pages.text import PAGES, link

__all__ = ["list_relatives"]

_MOST = 6
_GUIDES = {
    "arrays.conversion": ("Interchange", "interchange.md"),
    "arrays.device": ("Devices", "devices.md"),
    "arrays.dtypes": ("Dtypes and promotion", "dtypes.md"),
    "arrays.files": ("Interchange", "interchange.md"),
    "backend": ("Backends", "backends.md"),
    "control": ("Control flow", "control-flow.md"),
    "datasets": ("Data", "data.md"),
    "distributed": ("Distributed training", "distributed.md"),
    "distributed.planning": ("Planning a cluster", "planning.md"),
    "dtypes": ("Dtypes and promotion", "dtypes.md"),
    "ember_ml.backend": ("Backends", "backends.md"),
    "errors": ("Errors", "errors.md"),
    "features": ("Features", "features.md"),
    "gradients": ("Gradients, compilation and memory", "gradients.md"),
    "image": ("Images and sound", "images.md"),
    "lint": ("emberlint", "emberlint.md"),
    "memory": ("Gradients, compilation and memory", "gradients.md#memory"),
    "models": ("Models", "models.md"),
    "neural": ("Neural-network ops", "neural.md"),
    "nn": ("Layers", "layers.md"),
    "nn.blocks": ("Sequences", "sequences.md"),
    "nn.features": ("Features", "features.md"),
    "nn.tensor": ("Tensors", "tensors.md"),
    "odes": ("Solvers", "solvers.md"),
    "random": ("Random numbers", "random.md"),
    "registry": ("Configuration files", "registry.md"),
    "scans": ("Control flow", "control-flow.md"),
    "signal": ("Signals", "signal.md"),
    "solvers": ("Solvers", "solvers.md"),
    "training": ("Training", "training.md"),
    "training.checkpoints": ("Checkpoints", "checkpoints.md"),
    "training.collation": ("Data", "data.md"),
    "training.losses": ("Losses", "data.md#losses"),
    "training.metrics": ("Metrics", "data.md#metrics"),
    "training.samplers": ("Samplers", "data.md#samplers"),
    "training.schedules": ("Schedules", "data.md#schedules"),
}
"""The title and the page of the guide to a module or a family of ops, by the end of its dotted name or a part of it."""


def list_relatives(name: str, siblings: list[str], path: str, home: str) -> str:
    """Return the line that leads from a page to those most like it, and to the guide of its module; "" for neither."""
    words = _split(name)
    alike = sorted(
        (other for other in siblings if words & _split(other)), key=lambda other: -len(words & _split(other))
    )
    links = [f"[`{other}`]({link(path, PAGES[other])})" for other in alike[:_MOST] if PAGES.get(other, path) != path]
    guide = _find_guide(home)
    if guide is not None:
        links.append(f"the guide [{guide[0]}]({link(path, guide[1])})")
    return f"See also: {', '.join(links)}." if links else ""


def _split(name: str) -> set[str]:
    """Return the words in a name: "MaxPool2d" has "max" and "pool"."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return {re.sub(r"\d+d?$", "", word.lower()) for word in spaced.split("_")} - {""}


def _find_guide(home: str) -> tuple[str, str] | None:
    """Return the guide to the longest part of a dotted name that has one."""
    parts = home.removeprefix("ember_ml.").split(".")
    tails = [".".join(parts[start:end]) for end in range(len(parts), 0, -1) for start in range(end)]
    return next((_GUIDES[tail] for tail in (home, *tails) if tail in _GUIDES), None)

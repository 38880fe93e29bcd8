"""Run the examples and keep what they print and show, for the gallery of the site: docs/gallery/NAME.txt and NAME.svg.

    python utils/make_gallery.py [NAME ...]

The site's build makes the pages and notebooks from these and from the programs themselves.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent))

import ember_ml
from gallery_pictures import PICTURES, STYLE

__all__ = ["main"]

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _keep_output(name: str, example: ModuleType) -> None:
    """Write what a program prints on NumPy."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        example.main(["--backend", "numpy"])
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    (GALLERY / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _keep_picture(name: str, example: ModuleType) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    draw, size, _ = PICTURES[name]
    with mpl.rc_context(STYLE), contextlib.redirect_stderr(io.StringIO()):
        figure = Figure(figsize=size, layout="constrained", facecolor="none")
        draw(example, figure)
        figure.savefig(GALLERY / f"{name}.svg", metadata={"Date": None})


def main(names: list[str]) -> None:
    """Run the named examples, or all."""
    GALLERY.mkdir(exist_ok=True)
    ember_ml.set_backend("numpy")
    for name in names or sorted(PICTURES):
        print(name, flush=True)
        example = _load(name)
        _keep_output(name, example)
        _keep_picture(name, example)


if __name__ == "__main__":
    main(sys.argv[1:])

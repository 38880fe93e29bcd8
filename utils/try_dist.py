"""Try what `make dist` built as users do: the wheel in empty environments, the sdist by its own tests.

    python utils/try_dist.py DIST [--extras numpy,torch,mlx,jax] [--all-tests]

For NumPy alone and for each backend an environment is made, the wheel installed with that extra and nothing else, and
the commands, the first example of the README and a training run are tried. The sdist is unpacked, and its tests are run
by this Python: a part of every subject, or with ``--all-tests`` those of `make test`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

__all__ = ["main"]

ROOT = Path(__file__).parents[1]
TESTS = (
    "tests/test_docs.py",
    "tests/test_reference.py",
    "tests/test_site.py",
    "tests/test_imports.py",
    "tests/test_architecture.py",
    "tests/test_declarations.py",
    "tests/lint/test_examples.py",
    "tests/tensor",
)


def _run(command: list[str], folder: Path, **environment: str) -> str:
    """Run a command away from the repository and return what it prints; end the program where it fails."""
    settings = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "EMBER_ML_BACKEND")}
    done = subprocess.run(command, cwd=folder, env=settings | environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def _try_wheel(wheel: Path, backend: str) -> None:
    """Install the wheel for one backend into an empty environment and use it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        commands = folder / "venv" / "bin"
        wanted = str(wheel) if backend == "numpy" else f"{wheel}[{backend}]"
        install = [str(commands / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        _run([*install, "-c", str(ROOT / "constraints.txt"), wanted], folder)
        said = json.loads(_run([str(commands / "ember-ml"), "doctor", "--json"], folder))
        installed = [entry["name"] for entry in said["backends"] if entry["installed"]]
        if {*installed} != {"numpy", backend}:
            sys.exit(f"the environment for {backend} has {installed}")
        _run([str(commands / "ember-ml"), "demo", "--samples", "100", "--epochs", "1"], folder)
        _run([str(commands / "emberlint"), "--version"], folder)
        found = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.M)
        assert found is not None
        printed = _run([str(commands / "python"), "-c", found[1]], folder, EMBER_ML_BACKEND=backend)
        size = sum(path.stat().st_size for path in (folder / "venv").rglob("*") if path.is_file()) / 2**20
        print(f"{backend}: installed ({size:.0f} MB with it), doctor, demo, emberlint; README: {printed.strip()}")


def _try_sdist(sdist: Path, tests: tuple[str, ...]) -> None:
    """Unpack the sdist and run its tests in it."""
    with tempfile.TemporaryDirectory() as name, tarfile.open(sdist) as archive:
        archive.extractall(name, filter="data")
        (folder,) = Path(name).iterdir()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", *tests]
        printed = _run(command, folder, PYTHONPATH=str(folder / "src"), HYPOTHESIS_PROFILE="quick")
        print(f"sdist: {printed.strip().splitlines()[-1]}")


def main(arguments: list[str] | None = None) -> None:
    """Try the wheel and the sdist in a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("dist", type=Path)
    parser.add_argument("--extras", default="numpy,torch,mlx,jax", help="the backends to install the wheel with")
    parser.add_argument("--all-tests", action="store_true", help="run every test of the sdist but the long ones")
    options = parser.parse_args(arguments)
    (wheel,), (sdist,) = (sorted(options.dist.resolve().glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
    for backend in options.extras.split(","):
        _try_wheel(wheel, backend)
    _try_sdist(sdist, () if options.all_tests else TESTS)


if __name__ == "__main__":
    main()

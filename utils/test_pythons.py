"""Run the tests on the other versions of Python that this machine has, each set up in a folder of its own.

An interpreter is looked for on PATH and among those of pyenv. ``--subset`` runs the tests of gradients, tensors and
declarations on NumPy, with only what they need; otherwise everything but PyTorch is installed, whose wheels are large,
and all tests run that do not need it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["find_interpreter", "main"]

ROOT: Path = Path(__file__).parents[1]
VERSIONS = ("3.12", "3.13", "3.14")
SUBSET = ["tests/autodiff", "tests/tensor", "tests/test_declarations.py", "tests/test_face.py", "tests/test_trees.py"]
_SUBSET_PACKAGES = ["-e", ".", "hypothesis", "mpmath", "pytest", "pytest-xdist", "scipy"]
_ALL_PACKAGES = ["-e", ".[dev,mlx,lsp,mpi,tables,plot]"]


def find_interpreter(version: str) -> str | None:
    """Return the path of a Python of this version, such as "3.12"; None where there is none that runs."""
    return next((path for path in _candidates(version) if _runs(path, version)), None)


def _candidates(version: str) -> Iterator[str]:
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(root.glob(f"versions/{version}*/bin/python{version}"), reverse=True))


def _runs(path: str, version: str) -> bool:
    """Return whether the command runs that Python: pyenv's commands fail where no folder asks for their version."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() == version


def _run_tests(version: str, interpreter: str, arguments: list[str]) -> int:
    is_subset = "--subset" in arguments
    folder = ROOT / (f".venv-{version}-subset" if is_subset else f".venv-{version}")
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", "constraints.txt"]
    subprocess.run([*install, *(_SUBSET_PACKAGES if is_subset else _ALL_PACKAGES)], cwd=ROOT, check=True)
    tests = SUBSET if is_subset else []
    rest = [argument for argument in arguments if argument != "--subset"]
    command = [python, "-m", "pytest", "-q", "--dist", "worksteal", "-m", "not long", *tests, *rest]
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "quick"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    """Run the tests on every Python that is found, say which, and return 1 if any of them fails."""
    failed: list[str] = []
    for version in VERSIONS:
        interpreter = find_interpreter(version)
        if interpreter is None:
            print(f"Python {version}: not found, not tested", flush=True)
            continue
        print(f"Python {version}: {interpreter}", flush=True)
        if _run_tests(version, interpreter, sys.argv[1:]):
            failed.append(version)
    print(f"other Pythons: {'failed on ' + ', '.join(failed) if failed else 'all that were found pass'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())

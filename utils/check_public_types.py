"""Fail where type checkers do not understand the public names: users' editors and checks rely on them.

``pyright --verifytypes`` names what is public and of unknown type. Left out are the backends' own folders, whose bodies
are aliases of library functions, and the linter, which is a command: nobody imports them. Then pyright and mypy check
copies of the examples, the documents' samples and the pages' code outside the repository, as programs of users.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["copy_programs", "main", "unclear"]

ROOT: Path = Path(__file__).parents[1]
_BIN = Path(sys.executable).parent
_INTERNAL = ("ember_ml.backend.", "ember_ml.lint.")
_SAMPLE_HEADER = """\
from typing import Any, Callable, List, Optional
from ember_ml import ops
from ember_ml.nn import tensor

TransformerModel: Any
ModelConfig = Any
"""
# What the documents leave open, or annotate in a way that is not true of any library.
_REPLACEMENTS = {
    "ops.some_operation": "ops.abs",
    '-> "TransformerModel"': "-> Any",
    "return ops.split(batch, self.num_devices)": "return list(ops.split(batch, self.num_devices))",  # it is a tuple
    "args = [tensor.convert_to_tensor(arg) for arg in args]": "args = tuple(map(tensor.convert_to_tensor, args))",
}


def unclear(report: dict[str, Any]) -> list[str]:
    """Return the public names whose type is unknown or left to inference, in pyright's report."""
    symbols = report["typeCompleteness"]["symbols"]
    return sorted(
        symbol["name"]
        for symbol in symbols
        if symbol["isExported"] and (symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"])
        if not symbol["name"].startswith(_INTERNAL)
    )


def copy_programs(folder: Path) -> int:
    """Copy the examples, the documents' programs and good samples, and the code of the pages; return how many."""
    for path in (ROOT / "examples").glob("*.py"):
        shutil.copy(path, folder / f"example_{path.name}")
    for path in (ROOT / "tests" / "documents").glob("test_*.py"):
        (folder / f"document_{path.name}").write_text(_replace(path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in (ROOT / "tests" / "lint" / "guidelines").glob("*_good.py.txt"):
        samples = re.split(r"^# ---.*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for number, sample in enumerate(samples):
            program = folder / f"{path.name.partition('.')[0]}_{number}.py"
            program.write_text(_SAMPLE_HEADER + _replace(sample), encoding="utf-8")
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        fences = re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        if fences:
            name = "_".join(path.relative_to(ROOT).with_suffix("").parts).replace("-", "_")
            (folder / f"page_{name}.py").write_text("".join(fences), encoding="utf-8")
    return len(list(folder.glob("*.py")))


def _replace(text: str) -> str:
    for old, new in _REPLACEMENTS.items():
        text = text.replace(old, new)
    return text


def _check_names() -> int:
    # pyright looks for the package in the interpreter that the path names first
    environment = {**os.environ, "PATH": f"{_BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [str(_BIN / "pyright"), "--verifytypes", "ember_ml", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    report = json.loads(done.stdout)
    if not report["typeCompleteness"]["symbols"]:
        print("pyright found no package ember_ml to check; install it first: make setup")
        return 1
    names = unclear(report)
    for name in names:
        print(f"{name}: its type is not stated")
    print(f"public types: {len(names)} unclear")
    return len(names)


def _check_programs() -> int:
    """Check programs that use the package from outside; return how many checkers found errors."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        count = copy_programs(folder)
        quiet = ("--no-error-summary", "--cache-dir", os.devnull)
        for command in (
            ["pyright", "--pythonpath", sys.executable, "."],
            # pandas comes without types
            ["mypy", "--python-executable", sys.executable, "--disable-error-code", "import-untyped", *quiet, "."],
        ):
            tool = [str(_BIN / command[0]), *command[1:]]
            done = subprocess.run(tool, capture_output=True, text=True, cwd=folder, check=False)
            if done.returncode:
                print(done.stdout, done.stderr)
            outcome = "failed" if done.returncode else "no error"
            print(f"{command[0]} on {count} programs outside the repository: {outcome}")
            failed += bool(done.returncode)
    return failed


def main() -> int:
    """Run both checks, print what they find, and say by the exit code whether they found anything."""
    return int(bool(_check_names() + _check_programs()))


if __name__ == "__main__":
    sys.exit(main())

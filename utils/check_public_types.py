"""Fail where pyright cannot tell the type of something public: users' editors and checkers rely on it.

Left out are the backends' own folders, whose bodies are aliases of library functions, and the linter, which is a
command: nobody imports them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["main", "unclear"]

_INTERNAL = ("ember_ml.backend.", "ember_ml.lint.")


def unclear(report: dict[str, Any]) -> list[str]:
    """The public names whose type is unknown or left to inference, in pyright's report."""
    symbols = report["typeCompleteness"]["symbols"]
    return sorted(
        symbol["name"]
        for symbol in symbols
        if symbol["isExported"] and (symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"])
        if not symbol["name"].startswith(_INTERNAL)
    )


def main() -> int:
    """Run pyright on the installed package, print what is unclear, and say by the exit code whether anything was."""
    folder = Path(sys.executable).parent
    # pyright looks for the package in the interpreter that the path names first
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [str(folder / "pyright"), "--verifytypes", "ember_ml", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    report = json.loads(done.stdout)
    if not report["typeCompleteness"]["symbols"]:
        print("pyright found no package ember_ml to check; install it first: make setup")
        return 1
    names = unclear(report)
    for name in names:
        print(f"{name}: its type is not stated")
    print(f"public types: {len(names)} unclear")
    return int(bool(names))


if __name__ == "__main__":
    sys.exit(main())

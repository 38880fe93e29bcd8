#!/usr/bin/env python3
"""Find NumPy in code that should be independent of it: emberlint with the NumPy rules only.

``python utils/detect_numpy_usage.py [PATH ...]`` prints every import, call, name, dtype, type test and conversion that
leads to NumPy or comes from it, and Python operators on tensors. Exit codes are emberlint's: 0 nothing found, 1
findings, 2 something could not be checked. It needs Python 3.11 and nothing else.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ember_ml.lint.config import Config

RULES = frozenset(
    {"EMB101", "EMB103", "EMB201", "EMB202", "EMB203", "EMB401", "EMB501", "EMB502", "EMB601", "EMB701", "EMB900"}
)


def only_numpy(config: Config) -> Config:
    """Return a project's configuration with the NumPy rules and no others; other tensor libraries do not count here."""
    from ember_ml.lint.natives import LIBRARIES

    others = LIBRARIES - {"numpy"}
    return replace(config, select=RULES, allow=(*config.allow, ("**", others)), strict=False, _memo={})


def only_conversions(config: Config) -> Config:
    """Return a project's configuration with only the rule on conversions, for all libraries."""
    return replace(config, select=frozenset({"EMB202"}), strict=False, _memo={})


def open_linter() -> None:
    """Make the linter beside this script importable without the rest of the package, which needs NumPy."""
    package = ModuleType("ember_ml")
    package.__path__ = [str(Path(__file__).resolve().parent.parent / "src" / "ember_ml")]
    sys.modules["ember_ml"] = package


def main(arguments: list[str] | None = None) -> int:
    """Check the paths and print what was found."""
    from ember_ml.lint.config import ConfigError
    from ember_ml.lint.finding import Finding
    from ember_ml.lint.formats import FORMATS
    from ember_ml.lint.runner import check, read_inputs
    from ember_ml.lint.sources import Undecodable

    parser = argparse.ArgumentParser(description="Find NumPy in code that should be independent of it.")
    parser.add_argument("paths", nargs="*", default=["."], help="files and folders (default: the current folder)")
    parser.add_argument("--format", choices=sorted(FORMATS), default="text")
    options = parser.parse_args(arguments)
    try:
        inputs = read_inputs(options.paths, only_numpy)
        others = read_inputs(options.paths, only_conversions)
    except (ConfigError, FileNotFoundError) as error:
        print(f"detect_numpy_usage: {error}", file=sys.stderr)
        return 2
    found = {*check(inputs, use_cache=False).findings}
    found |= {finding for finding in check(others, use_cache=False).findings if "from_numpy" in finding.message}
    findings = sorted(found, key=Finding.sort_key)
    texts: dict[str, str] = {}
    for item in inputs:
        try:
            texts[item.path] = item.text()
        except Undecodable:
            texts[item.path] = ""
    output = FORMATS[options.format](findings, texts)
    if output:
        print(output)
    if options.format == "text":
        touched = len({finding.path for finding in findings})
        print(f"{len(findings)} uses of NumPy or of operators in {touched} of {len(inputs)} files", file=sys.stderr)
    if any(finding.code == "EMB900" for finding in findings):
        return 2
    return 1 if findings else 0


if __name__ == "__main__":
    open_linter()
    sys.exit(main())

"""Precision and recall of emberlint's operators on a library whose operators were labelled by running its own tests.

``python benchmarks/lint_operators.py LABELS ROOT PROFILE [FOLDER ...]``: LABELS from ``lint_recorder``, ROOT the folder
that paths in it are relative to, PROFILE the profile, FOLDERs (relative to ROOT) that count as front end.
"""

from __future__ import annotations

import ast
import json
import os
import sys

from ember_ml.lint import Settings
from ember_ml.lint.profiles import SHIPPED
from ember_ml.lint.project import Project
from ember_ml.lint.sources import decode, find, module_name

CODES = frozenset({"EMB401", "EMB403", "EMB404", "EMB405"})
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def findings(root: str, profile: str, folders: list[str]) -> set[str]:
    """Return where emberlint sees an operator on a tensor, as the recorder spells places."""
    project = Project()
    settings = Settings(SHIPPED[profile], CODES)
    for path in find([root]):
        if path.endswith(".py") and not _is_test(path):
            with open(path, "rb") as stream:
                project.add(path, module_name(path), decode(stream.read()), settings)
    project.run()
    found = set()
    for path, file in project.files.items():
        if file.flow is None:
            continue
        relative = os.path.relpath(path, root)
        for unit in file.flow.units:
            for _, node, _ in unit.reports.values():
                if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)) or (
                    isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
                ):
                    found.add(f"{relative}:{node.lineno}:{node.col_offset}:{node.end_lineno}:{node.end_col_offset}")
    return {key for key in found if not folders or key.startswith(tuple(folders))}


def _is_test(path: str) -> bool:
    name = os.path.basename(path)
    return (
        name.startswith("test_")
        or name.endswith("_test.py")
        or name == "conftest.py"
        or f"{os.sep}tests{os.sep}" in path
    )


def main() -> None:
    """Print the counts; with ``--list`` also the places that are wrong."""
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    labels_path, root, profile, *folders = arguments
    with open(labels_path, encoding="utf-8") as stream:
        labels = {
            key: value for key, value in json.load(stream).items() if not folders or key.startswith(tuple(folders))
        }
    found = findings(root, profile, folders)
    tensors = {key for key, value in labels.items() if value}
    others = set(labels) - tensors
    right, wrong, missed = len(found & tensors), found & others, tensors - found
    never_run = len(found - set(labels))
    print(f"{len(labels)} operators were run, {len(tensors)} of them on tensors")
    print(f"{len(found)} found, {never_run} of those never run")
    print(f"precision {right}/{right + len(wrong)} = {right / max(1, right + len(wrong)):.1%}")
    print(f"recall {right}/{len(tensors)} = {right / max(1, len(tensors)):.1%}")
    if "--list" in sys.argv:
        for title, keys in (("WRONG", wrong), ("MISSED", missed)):
            for key in sorted(keys):
                path, line, *_ = key.split(":")
                with open(os.path.join(root, path), encoding="utf-8") as stream:
                    print(title, key, stream.read().split("\n")[int(line) - 1].strip())


if __name__ == "__main__":
    main()

"""Apply repairs: innermost first, pass by pass; roll back to the last good text if the result is not clean."""

from __future__ import annotations

import ast
from collections import Counter

from ember_ml.lint.finding import Finding
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.project import Project, parse
from ember_ml.lint.sources import CELL_MARK

PASSES = 40


def fix_text(project: Project, path: str, *, unsafe: bool = False) -> tuple[str, int]:
    """Return the repaired text of a file of the project and how many repairs went into it.

    The text after each pass is parsed and checked again. It is kept only if no rule finds more than it did at the
    start; passes after the last such text are rolled back.
    """
    file = project.files[path]
    if file.flow is None:
        raise ValueError(f"{path} cannot be parsed")
    original = file.flow.module.source
    findings = project.findings(path)
    before = Counter(finding.code for finding in findings)
    current, kept, done, applied = original, original, 0, 0
    refused: set[tuple] = set()
    for _ in range(PASSES):
        chosen = choose([f for f in findings if f.fix is not None and (unsafe or f.fix.safe)], refused)
        if not chosen:
            break
        text = _apply_parsable(project, path, current, chosen, refused)
        if text is None:
            continue
        applied += len(chosen)
        current = text
        findings = relint(project, path, current)
        after = Counter(finding.code for finding in findings)
        if all(count <= before[code] for code, count in after.items()):
            kept, done = current, applied
    if kept is not current:
        relint(project, path, kept)
    return kept, done


def relint(project: Project, path: str, source: str) -> list[Finding]:
    """Return the findings of a file with another text, everything else in the project unchanged."""
    old = project.files[path]
    name = old.flow.module.name if old.flow is not None else path
    project.add(path, name, source, old.settings)
    file = project.files[path]
    file.interesting = True
    for _ in range(2):  # the top, then the functions
        project.advance([file], {})
    return project.findings(path)


def choose(findings: list[Finding], refused: set[tuple]) -> list[Fix]:
    """Return repairs that do not touch each other, the smallest first."""
    chosen: list[Fix] = []
    taken: list[tuple[int, int]] = []
    for finding in sorted(findings, key=lambda f: f.fix.span[1] - f.fix.span[0] if f.fix else 0):
        fix = finding.fix
        if fix is None or fix.edits in refused:
            continue
        start, end = fix.span
        if any(start < b and a < end for a, b in taken):
            continue
        chosen.append(fix)
        taken.append((start, end))
    return chosen


def apply(source: str, edits: list[Edit]) -> str:
    """Return the text with edits applied; edits at one place keep their order."""
    parts, position = [], 0
    for edit in sorted(dict.fromkeys(edits), key=lambda e: (e.start, e.end)):
        parts.append(source[position : edit.start])
        parts.append(edit.text)
        position = edit.end
    parts.append(source[position:])
    return "".join(parts)


def _apply_parsable(project: Project, path: str, source: str, chosen: list[Fix], refused: set[tuple]) -> str | None:
    text = _with_import(project, path, source, chosen)
    if parse(path, text)[0] is not None:
        return text
    good = []
    for fix in chosen:
        if parse(path, _with_import(project, path, source, [fix]))[0] is None:
            refused.add(fix.edits)
        else:
            good.append(fix)
    chosen[:] = good
    return _with_import(project, path, source, good) if good else None


def _with_import(project: Project, path: str, source: str, chosen: list[Fix]) -> str:
    edits = [edit for fix in chosen for edit in fix.edits]
    wanted = {fix.also_import for fix in chosen if fix.also_import}
    if any(fix.needs_ops for fix in chosen) and not has_ops(project, path):
        wanted.add(project.files[path].settings.profile.import_line)
    if wanted:
        edits.append(import_edit(project, path, sorted(wanted)))
    return apply(source, edits)


def has_ops(project: Project, path: str) -> bool:
    """Return whether a file imports the profile's ops."""
    flow = project.files[path].flow
    profile = project.files[path].settings.profile
    return profile.prefix in flow.top or any(
        value.detail == ("ref", profile.namespaces[0]) for value in flow.top.values()
    )


def import_edit(project: Project, path: str, wanted: list[str]) -> Edit:
    """Return the edit that adds import lines after the imports at the top of a file."""
    module = project.files[path].flow.module
    line = 0
    first_block = True
    for statement in module.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and first_block
        ):
            line = statement.end_lineno or 0
        else:
            break
        first_block = False
    lines = module.source.split("\n")
    if line == 0 and lines[0].startswith(CELL_MARK):
        line = 1
    while line == 0 and len(lines) > 0 and lines[0].startswith("#!"):
        line = 1
    offset = sum(len(text) + 1 for text in lines[:line])
    text = "\n".join(wanted) + "\n"
    if offset > len(module.source):  # the last line has no newline
        return Edit(len(module.source), len(module.source), "\n" + text)
    return Edit(offset, offset, text)

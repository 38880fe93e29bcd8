"""Suppression comments: ``# emberlint: ignore[EMB401] reason`` on the line, ``ignore-file[...]`` for the file."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass, field

from ember_ml.lint.finding import Finding

_COMMENT = re.compile(r"emberlint:\s*(?P<rest>.*)$")
_FORM = re.compile(r"(?P<word>ignore|ignore-file)\[(?P<codes>[^\]]*)\]\s*(?P<reason>.*)$")


@dataclass
class Suppression:
    """One comment."""

    line: int
    column: int
    codes: tuple[str, ...]
    whole_file: bool
    used: set[str] = field(default_factory=set)


def read(source: str, known: frozenset[str]) -> tuple[list[Suppression], list[tuple[int, int, str]]]:
    """Return the suppressions of a file, and ``(line, column, message)`` for those that are malformed."""
    found: list[Suppression] = []
    wrong: list[tuple[int, int, str]] = []
    if "emberlint:" not in source:
        return found, wrong
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError, ValueError):
        return found, wrong
    for token in tokens:
        if token.type != tokenize.COMMENT:
            continue
        match = _COMMENT.search(token.string)
        if match is None:
            continue
        line, column = token.start[0], token.start[1] + 1
        form = _FORM.match(match["rest"])
        if form is None:
            wrong.append(
                (
                    line,
                    column,
                    "write it as '# emberlint: ignore[EMB401] reason' or '# emberlint: ignore-file[EMB401] reason'",
                )
            )
            continue
        codes = tuple(code.strip() for code in form["codes"].split(",") if code.strip())
        unknown = [code for code in codes if code not in known]
        if not codes:
            wrong.append((line, column, "no rule is named between the brackets"))
        elif unknown:
            wrong.append((line, column, f"there is no rule {unknown[0]}"))
        elif not form["reason"].strip():
            wrong.append((line, column, "give a reason after the brackets"))
            found.append(Suppression(line, column, codes, form["word"] == "ignore-file", set(codes)))
        else:
            found.append(Suppression(line, column, codes, form["word"] == "ignore-file"))
    return found, wrong


def apply(findings: list[Finding], suppressions: list[Suppression]) -> list[Finding]:
    """Return the findings that are not suppressed; each suppression remembers which of its codes it was needed for."""
    if not suppressions:
        return findings
    kept = []
    for finding in findings:
        hidden = False
        for suppression in suppressions:
            # a comment stands on any line of the statement's expression, usually its first or last
            on_line = finding.line <= suppression.line <= max(finding.line, min(finding.end_line, finding.line + 20))
            if finding.code in suppression.codes and (suppression.whole_file or on_line):
                suppression.used.add(finding.code)
                hidden = True
        if not hidden:
            kept.append(finding)
    return kept

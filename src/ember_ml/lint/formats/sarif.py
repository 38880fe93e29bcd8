"""SARIF 2.1.0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ember_ml.lint import rules
from ember_ml.lint.finding import Finding


def write(findings: list[Finding], texts: dict[str, str]) -> str:
    """Return one run with the rules that were found and a result per finding; safe repairs are included as fixes."""
    codes = sorted({finding.code for finding in findings})
    return json.dumps(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": {"name": "emberlint", "rules": [_rule(code) for code in codes]}},
                    "columnKind": "unicodeCodePoints",
                    "results": [_result(finding, codes.index(finding.code), texts) for finding in findings],
                }
            ],
        },
        indent=1,
    )


def _rule(code: str) -> dict[str, Any]:
    rule = rules.ALL[code]
    return {
        "id": code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.name},
        "fullDescription": {"text": rule.why},
        "defaultConfiguration": {"level": "error" if code == "EMB900" else "warning"},
    }


def _result(finding: Finding, index: int, texts: dict[str, str]) -> dict[str, Any]:
    uri = Path(finding.path).as_posix()
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": max(finding.end_column, 1),
    }
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": "error" if finding.code == "EMB900" else "warning",
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}],
    }
    if finding.fix is not None and finding.cell is None:
        replacements = [
            {
                "deletedRegion": _region(texts.get(finding.path, ""), edit.start, edit.end),
                "insertedContent": {"text": edit.text},
            }
            for edit in finding.fix.edits
        ]
        changes = [{"artifactLocation": {"uri": uri}, "replacements": replacements}]
        result["fixes"] = [{"description": {"text": finding.fix.title}, "artifactChanges": changes}]
    return result


def _region(text: str, start: int, end: int) -> dict[str, Any]:
    first, last = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
    return {
        "startLine": first,
        "startColumn": start - (text.rfind("\n", 0, start) + 1) + 1,
        "endLine": last,
        "endColumn": end - (text.rfind("\n", 0, end) + 1) + 1,
    }

"""JSON: a list of findings."""

from __future__ import annotations

import json

from ember_ml.lint.finding import Finding


def write(findings: list[Finding], texts: dict[str, str]) -> str:
    """Return a JSON array of objects with path, line, column, code, message and fix."""
    # one line per finding: an indent would cost three times the time
    lines = ",\n".join(json.dumps(finding.as_dict()) for finding in findings)
    return f"[\n{lines}\n]" if findings else "[]"

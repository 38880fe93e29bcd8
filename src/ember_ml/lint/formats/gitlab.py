"""GitLab Code Quality reports."""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from ember_ml.lint.finding import Finding


def write(findings: list[Finding], texts: dict[str, str]) -> str:
    """Return a JSON array; the fingerprint does not depend on the line number, so moved code is not a new issue."""
    seen: Counter[str] = Counter()
    result = []
    for finding in findings:
        lines = texts.get(finding.path, "").split("\n")
        line = lines[finding.line - 1].strip() if finding.line <= len(lines) else ""
        base = f"{finding.path}|{finding.code}|{line}"
        seen[base] += 1
        result.append(
            {
                "description": f"{finding.code}: {finding.message}",
                "check_name": finding.code,
                "fingerprint": hashlib.sha256(f"{base}|{seen[base]}".encode()).hexdigest(),
                "severity": "major" if finding.code != "EMB900" else "critical",
                "location": {"path": finding.path, "lines": {"begin": finding.line}},
            }
        )
    return json.dumps(result, indent=1)

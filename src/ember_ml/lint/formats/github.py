"""GitHub Actions workflow commands."""

from __future__ import annotations

from ember_ml.lint.finding import Finding


def write(findings: list[Finding], texts: dict[str, str]) -> str:
    """Return one ``::error`` line per finding."""
    return "\n".join(_line(finding) for finding in findings)


def _line(finding: Finding) -> str:
    start = f"line={finding.line},col={finding.column}"
    end = f"endLine={finding.end_line},endColumn={finding.end_column}"
    return f"::error file={_property(finding.path)},{start},{end},title={finding.code}::{_data(finding.message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

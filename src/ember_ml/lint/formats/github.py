"""GitHub Actions workflow commands."""

from __future__ import annotations

from ember_ml.lint.finding import Finding


def write(findings: list[Finding], texts: dict[str, str]) -> str:
    """One ``::error`` line per finding."""
    return "\n".join(
        f"::error file={_property(f.path)},line={f.line},col={f.column},endLine={f.end_line},endColumn={f.end_column},title={f.code}::{_data(f.message)}" for f in findings
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

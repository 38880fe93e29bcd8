"""Text for people: place, code, message, the line itself."""

from __future__ import annotations

from ember_ml.lint.finding import Finding

_WIDEST = 400
"""The largest number of characters of a line that are shown."""


def write(findings: list[Finding], texts: dict[str, str]) -> str:
    """Return one block per finding; ``texts`` holds the source of each file."""
    blocks = []
    split: dict[str, list[str]] = {}
    for finding in findings:
        place = f"{finding.path}:{f'cell {finding.cell}:' if finding.cell else ''}{finding.line}:{finding.column}"
        mark = "" if finding.fix is None else " [*]" if finding.fix.safe else " [unsafe fix]"
        block = f"{place}: {finding.code} {finding.message}{mark}"
        if finding.path not in split:
            split[finding.path] = texts.get(finding.path, "").split("\n")
        lines = split[finding.path]
        if (
            finding.cell is None
            and finding.line <= len(lines)
            and lines[finding.line - 1].strip()
            and finding.code != "EMB900"
        ):
            line = lines[finding.line - 1].replace("\t", " ")
            width = (
                finding.end_column - finding.column
                if finding.end_line == finding.line
                else len(line) - finding.column + 1
            )
            lead = len(line) - len(line.lstrip())
            if len(line) > _WIDEST:  # a line of a generated file: the part around the finding
                lead = max(lead, finding.column - 1 - _WIDEST // 4)
                line = line[: lead + _WIDEST]
                width = min(width, len(line) - finding.column + 1)
            block += f"\n    {line[lead:]}\n    {' ' * (finding.column - 1 - lead)}{'^' * max(1, width)}"
        blocks.append(block)
    return "\n".join(blocks)

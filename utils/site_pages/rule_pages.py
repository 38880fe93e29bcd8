"""The pages of emberlint's rules: what each finds, why, what it looks like, and what to write in its place."""

from __future__ import annotations

from typing import Any

from ember_ml.lint.rules import ALL, DEFAULT, Rule
from site_pages.text import table

__all__ = ["make_navigation", "write_pages"]

INDEX = "emberlint/rules.md"


def make_navigation() -> dict[str, list[Any]]:
    """Return the menu of the rules."""
    return {"Rules of emberlint": [INDEX, *({code: _path(code)} for code in sorted(ALL))]}


def _path(code: str) -> str:
    return f"emberlint/{code}.md"


def write_pages() -> dict[str, str]:
    """Return the text of every page, by its path."""
    rows = [
        (f"[{code}]({code}.md)", f"`{rule.name}`", _summary(rule), _mark(rule)) for code, rule in sorted(ALL.items())
    ]
    about = (
        "What each rule finds, and why. `emberlint rule EMB401` prints the same; `--fix` repairs where it says *yes*."
    )
    index = f"# Rules of emberlint\n\n{about}\n\n{table(('code', 'name', 'finds', 'repairs'), rows)}\n"
    return {INDEX: index} | {_path(code): _write_page(rule) for code, rule in ALL.items()}


def _summary(rule: Rule) -> str:
    return (type(rule).__doc__ or "").partition("\n")[0]


def _mark(rule: Rule) -> str:
    return "yes" if type(rule).fix is not Rule.fix else ""


def _write_page(rule: Rule) -> str:
    language = "toml" if rule.reads == "toml" else "python"
    parts = [f"# {rule.code}: {rule.name}", _summary(rule), rule.why]
    if rule.code not in DEFAULT:
        parts.append(f'It is off by default; switch it on with `extend-select = ["{rule.code}"]`.')
    if _mark(rule):
        parts.append("`--fix` repairs it where that keeps the meaning.")
    for title, samples in (("Found", rule.bad), ("Not found", rule.good)):
        if samples:
            shown = "\n\n".join(sample.replace("  # bad", "  # found").rstrip() for sample in samples)
            parts += [f"## {title}", f"```{language}\n{shown}\n```"]
    parts.append(
        f"To allow it in one line: `# emberlint: ignore[{rule.code}] the reason`; in a folder: "
        "[per-file-ignores](../emberlint.md#configuration)."
    )
    return "\n\n".join(parts) + "\n"

"""Bring the measured figures to where they are shown: benchmarks/measured.json is their one source.

    python utils/figures.py            writes the tables of the pages, and the charts in docs/pictures
    python utils/figures.py --check    says where they differ; also where a sentence has other figures

A table stands between ``<!-- measured: COMMAND -->`` and ``<!-- end of measured -->``. After a new measurement change
the JSON file alone, run this, and mend the sentences that it names.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

__all__ = ["draw_charts", "fill_tables", "find_differences", "main", "read", "write_sentences"]

ROOT = Path(__file__).parents[1]
PAGES = ("docs/performance.md", "docs/data.md", "docs/random.md")
_BLOCK = re.compile(r"<!-- measured: (.+?) -->\n(.*?)<!-- end of measured -->", re.DOTALL)
_COLOURS = ("#e8590c", "#1c7ed6", "#2f9e44", "#9c36b5", "#c2255c", "#0c8599", "#868e96")
_GREY = "#8a8a8a"

CALLS, GRADIENTS = "python benchmarks/op_overhead.py", "python benchmarks/gradients.py"
STEPS, LARGE = "python benchmarks/training.py --keras", "python benchmarks/large_ops.py"


def read() -> dict[str, Any]:
    """Return what was measured, by the command that measures it: ``caption``, ``columns`` and ``rows``."""
    return json.loads((ROOT / "benchmarks" / "measured.json").read_text(encoding="utf-8"))


def fill_tables(text: str, measured: dict[str, Any]) -> str:
    """Return a page with the tables of what was measured."""

    def write(found: re.Match[str]) -> str:
        entry = measured[found[1]]
        head, *rows = (
            "|" + "".join(f" {cell} |" if cell else " |" for cell in row) for row in (entry["columns"], *entry["rows"])
        )
        lines = "\n".join([head, "|" + "---|" * len(entry["columns"]), *rows])
        caption = f"{entry['caption']}\n\n" if entry["caption"] else ""
        return f"<!-- measured: {found[1]} -->\n{caption}{lines}\n<!-- end of measured -->"

    return _BLOCK.sub(write, text)


def _column(entry: dict[str, Any], name: str, rows: int | None = None) -> list[str]:
    place = entry["columns"].index(name)
    return [row[place] for row in entry["rows"][:rows]]


def _range(values: list[str]) -> str:
    ordered = sorted(values, key=float)
    return f"{ordered[0]} to {ordered[-1]}"


def write_sentences(measured: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the sentences with figures, each with the file that must have it."""
    calls, gradients, steps, large = (measured[key] for key in (CALLS, GRADIENTS, STEPS, LARGE))
    libraries = ("NumPy", "PyTorch", "MLX")
    ours = {name: _column(calls, name, 7) for name in libraries}
    keras = {name: _column(calls, f"Keras on {name}", 7) for name in ("NumPy", "PyTorch")}
    every = [float(value) for values in ours.values() for value in values]
    theirs = [float(value) for values in keras.values() for value in values]
    cost = f"{min(every):.1f} to {max(every):.1f} times"
    keras_cost = f"{min(theirs):.0f} to {max(theirs):.0f} times"
    tensor = calls["rows"][7]
    both = "; ".join(f"{name} {', '.join(_column(steps, name, 2))}" for name in libraries)
    first, small = gradients["rows"]
    ratios = [value for name in libraries for value in _column(large, name)]
    return [
        ("README.md", f"| {cost} | {keras_cost} |"),
        ("docs/faq.md", f"{cost} the native call, where Keras takes {keras_cost}"),
        ("README.md", ", ".join(f"{name} {_range(values)}" for name, values in ours.items())),
        ("README.md", "Keras: " + ", ".join(f"{name} {_range(values)}" for name, values in keras.items())),
        ("README.md", ", ".join(f"{name} {tensor[place]}" for place, name in enumerate(libraries, 1))),
        ("README.md", f"| {_range(ratios)} |"),
        ("README.md", f"{both}; Keras on PyTorch {_column(steps, 'Keras on PyTorch')[0]}"),
        ("README.md", f"NumPy {first[1]} (of backpropagation by hand), PyTorch {first[2]}, MLX {first[3]}"),
        ("CHANGELOG.md", f"take {first[1]} times what backpropagation written by hand takes"),
        ("CHANGELOG.md", f"and at sizes where overhead shows {small[1]} times."),
    ]


def draw_charts(measured: dict[str, Any]) -> dict[str, str]:
    """Return the charts as SVG, by the name of the file."""
    return {
        "calls.svg": _draw(measured[CALLS], "Time of a small call, native call = 1"),
        "gradients.svg": _draw(measured[GRADIENTS], "Value and gradients of a perceptron, the library's own way = 1"),
        "steps.svg": _draw(measured[STEPS], "A step of training, the loop written by hand = 1"),
        "large.svg": _draw(measured[LARGE], "Large operations, the fastest native way = 1"),
    }


def _draw(entry: dict[str, Any], title: str) -> str:
    """Return a chart: a row for each row of the table, a dot for each library, on a scale of powers of two."""
    names, rows = entry["columns"][1:], entry["rows"]
    values = [float(value) for row in rows for value in row[1:] if value]
    low, high = math.floor(math.log2(min(values)) - 0.2), math.ceil(math.log2(max(values)) + 0.2)
    left, width, line = 210, 540, 30
    top = 44 + 20 * math.ceil(len(names) / 5)
    bottom = top + line * len(rows)

    def place(value: float) -> float:
        return round(left + width * (math.log2(value) - low) / (high - low), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 30} {bottom + 34}" '
        f'font-family="sans-serif" font-size="13" fill="{_GREY}" role="img">',
        f"<title>{title}</title>",
        f'<text x="16" y="22" font-size="15" font-weight="bold">{title}</text>',
    ]
    for number, name in enumerate(names):
        x, y = 16 + 152 * (number % 5), 46 + 20 * (number // 5)
        parts.append(f'<circle cx="{x + 5}" cy="{y - 4}" r="5" fill="{_COLOURS[number]}"/>')
        parts.append(f'<text x="{x + 16}" y="{y}">{name}</text>')
    for power in range(low, high + 1):
        x = place(2.0**power)
        stroke = 'stroke-width="1.5"' if power == 0 else 'stroke-width="0.5" stroke-dasharray="2 3"'
        parts.append(f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="{_GREY}" {stroke}/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{2.0**power:g}</text>')
    for number, row in enumerate(rows):
        y = top + line * (number + 0.5)
        label = row[0].replace("`", "")
        parts.append(f'<text x="{left - 14}" y="{y + 4}" text-anchor="end">{label}</text>')
        for colour, value in zip(_COLOURS, row[1:], strict=False):
            if value:
                parts.append(f'<circle cx="{place(float(value))}" cy="{y}" r="5" fill="{colour}" fill-opacity="0.85"/>')
    return "\n".join([*parts, "</svg>\n"])


def find_differences() -> list[str]:
    """Return what the pages and charts have otherwise than the measured file."""
    measured, wrong = read(), []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        if fill_tables(text, measured) != text:
            wrong.append(
                f"{page}: a table is not that of benchmarks/measured.json; write it with: python utils/figures.py"
            )
    for name, chart in draw_charts(measured).items():
        path = ROOT / "docs" / "pictures" / name
        if not path.is_file() or path.read_text(encoding="utf-8") != chart:
            wrong.append(f"docs/pictures/{name} is not up to date; draw it with: python utils/figures.py")
    for file, sentence in write_sentences(measured):
        words = " ".join((ROOT / file).read_text(encoding="utf-8").split())
        if " ".join(sentence.split()) not in words:
            wrong.append(f"{file} does not say: {sentence}")
    return wrong


def main(arguments: list[str]) -> int:
    """Write tables and charts, or with ``--check`` only compare; print what is left to mend."""
    if "--check" not in arguments:
        measured = read()
        for page in PAGES:
            text = (ROOT / page).read_text(encoding="utf-8")
            (ROOT / page).write_text(fill_tables(text, measured), encoding="utf-8")
        (ROOT / "docs" / "pictures").mkdir(exist_ok=True)
        for name, chart in draw_charts(measured).items():
            (ROOT / "docs" / "pictures" / name).write_text(chart, encoding="utf-8")
    wrong = find_differences()
    for line in wrong:
        print(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

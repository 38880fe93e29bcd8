"""How findings are written: one module per format."""

from __future__ import annotations

from collections.abc import Callable

from ember_ml.lint.finding import Finding
from ember_ml.lint.formats import github, gitlab, json_, sarif, text

FORMATS: dict[str, Callable[[list[Finding], dict[str, str]], str]] = {
    "text": text.write,
    "json": json_.write,
    "sarif": sarif.write,
    "github": github.write,
    "gitlab": gitlab.write,
}

"""The page on the architecture names files that exist, and the READMEs in the tree do too."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "ember_ml"
PAGES = [ROOT / "docs" / "architecture.md", *sorted(PACKAGE.rglob("README.md"))]


def _exists(name: str, page: Path) -> bool:
    if "<" in name:  # one file for each backend
        pattern = re.sub(r"<\w+>", "*", name).rstrip("/")
        return any(next(folder.glob(pattern), None) for folder in (ROOT, PACKAGE))
    return any((folder / name).exists() for folder in (ROOT, PACKAGE, page.parent, ROOT / "docs"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_named_file_exists(page: Path) -> None:
    named = re.findall(r"`([\w./<>]+(?:\.py|\.pyi|\.md|/))`", page.read_text(encoding="utf-8"))
    assert named
    assert not [name for name in named if not _exists(name, page)]


def test_the_page_names_every_floor() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert not [name for name in folders if f"`{name}/`" not in text]

"""Every Python example in the README and the documentation runs as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ember_ml
from ember_ml.backend import installed_backends

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def _examples(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if _examples(page)], ids=lambda page: page.name)
def test_examples_of_the_page_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # for the files that they write
    missing = {name for name in ("torch", "mlx") if f'"{name}"' in "".join(_examples(page))} - {*installed_backends()}
    if missing:
        pytest.skip(f"the page uses {', '.join(missing)}, which is not installed")
    namespace: dict[str, object] = {"__name__": "example"}
    for number, example in enumerate(_examples(page), 1):
        exec(compile(example, f"{page.name}, example {number}", "exec"), namespace)
    ember_ml.set_backend("numpy")


def test_every_relative_link_leads_somewhere() -> None:
    generated = {"reference/index.md"}
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert target in generated or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_included_file_is_there() -> None:
    """A line that includes a file and was written in another form would be shown in its place."""
    lines = [(page, line) for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    included = [(page.name, line) for page, line in lines if re.search(r"-\s*-\s*8\s*<", line)]
    assert included
    for page, line in included:
        found = re.fullmatch(r'--8<-- "(.+)"', line)
        assert found, f"{page}: {line}"
        assert (ROOT / found[1]).is_file(), f"{page} includes {found[1]}"

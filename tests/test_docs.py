"""Every Python example in the README and the documentation runs as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ember_ml
from ember_ml.backend import installed_backends

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


_EXAMPLE = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


def _examples(page: Path) -> list[tuple[str, str | None]]:
    """Return the Python examples of a page, each with the output that the block below it shows, if there is one."""
    return [(found[1], found[2]) for found in _EXAMPLE.finditer(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", [page for page in PAGES if _examples(page)], ids=lambda page: page.name)
def test_examples_of_the_page_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # for the files that they write
    code = "".join(example for example, _ in _examples(page))
    missing = {name for name in ("torch", "mlx") if f'"{name}"' in code} - {*installed_backends()}
    if missing:
        pytest.skip(f"the page uses {', '.join(missing)}, which is not installed")
    namespace: dict[str, object] = {"__name__": "example"}
    for number, (example, output) in enumerate(_examples(page), 1):
        capsys.readouterr()
        exec(compile(example, f"{page.name}, example {number}", "exec"), namespace)
        if output is not None:
            assert capsys.readouterr().out == output
    ember_ml.set_backend("numpy")


def test_every_relative_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            is_generated = "reference/" in target  # by utils/site_hooks.py; the build of the site checks those
            assert is_generated or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_included_file_is_there() -> None:
    """A line that includes a file and was written in another form would be shown in its place."""
    lines = [(page, line) for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    included = [(page.name, line) for page, line in lines if re.search(r"-\s*-\s*8\s*<", line)]
    assert included
    for page, line in included:
        found = re.fullmatch(r'--8<-- "(.+)"', line)
        assert found, f"{page}: {line}"
        assert (ROOT / found[1]).is_file(), f"{page} includes {found[1]}"

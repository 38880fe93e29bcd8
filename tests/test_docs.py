"""Every Python example in the README and the documentation runs as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ember_ml.backend import installed_backends
from ember_ml.lint import lint_source

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


_FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_EXAMPLE = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


def _examples(page: Path) -> list[tuple[str, str | None]]:
    """Return the Python examples of a page, each with the output that the block below it shows, if there is one."""
    return [(found[1], found[2]) for found in _EXAMPLE.finditer(page.read_text(encoding="utf-8"))]


@pytest.mark.long_with("torch", "mlx", "jax")
@pytest.mark.parametrize("page", [page for page in PAGES if _examples(page)], ids=lambda page: page.name)
def test_examples_of_the_page_run_one_after_the_other(
    page: Path, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On each backend, as far as the page itself does not choose one."""
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


def test_the_linter_finds_nothing_in_the_examples() -> None:
    """A page shows portable code, and what is none is not taken for a tensor."""
    for page in PAGES:
        found = lint_source("".join(example for example, _ in _examples(page)))
        assert not found, f"{page.name}: {[f'{finding.line}: {finding.message}' for finding in found]}"


def test_examples_show_what_they_compute() -> None:
    """A reader sees the output, which is compared above, rather than an assertion."""
    silent = []
    for page in PAGES:
        for example, output in _examples(page):
            assert not re.search(r"^\s*assert ", example, re.MULTILINE), f"{page.name}: {example}"
            if output is None:
                silent.append(page.name)
    # a trainer that is only made; a history that notebooks show as a table, and its picture
    assert silent == ["distributed.md", "tutorial.md", "tutorial.md"]


def test_lines_of_code_fit_a_page() -> None:
    """Longer ones are broken by the browser, which is hard to read; output is what it is."""
    for page in PAGES:
        for language, code in _FENCE.findall(page.read_text(encoding="utf-8")):
            if language != "text":
                limit = 80 if language == "python" else 88
                assert max(map(len, code.splitlines()), default=0) <= limit, f"{page.name}: {code}"


def test_every_relative_link_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            # by utils/site_hooks.py; the build of the site checks those
            is_generated = target.startswith(("reference/", "../reference/", "gallery/", "emberlint/"))
            is_generated = is_generated or target.endswith(".ipynb")
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

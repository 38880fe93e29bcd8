"""What the site is made of besides the pages and the reference: figures, charts, gallery, notebooks; and its walk."""

from __future__ import annotations

import ast
import copy
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ember_ml.backend import installed_backends

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import a module of utils/."""
    monkeypatch.syspath_prepend(ROOT / "utils")
    return importlib.import_module


def test_figures_are_those_that_were_measured(load: Any) -> None:
    assert load("figures").find_differences() == []


def test_another_figure_is_found(load: Any) -> None:
    """A changed figure changes the table, the chart, and the sentence that cites it."""
    figures: ModuleType = load("figures")
    measured = figures.read()
    changed = copy.deepcopy(measured)
    changed[figures.GRADIENTS]["rows"][0][1] = "1.77"
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "| 128, 256 | 1.77 |" in figures.fill_tables(page, changed)
    charts = figures.draw_charts(measured), figures.draw_charts(changed)
    assert {name for name in charts[0] if charts[0][name] != charts[1][name]} == {"gradients.svg"}
    others = {*figures.write_sentences(changed)} - {*figures.write_sentences(measured)}
    assert {file for file, _ in others} == {"README.md", "CHANGELOG.md"}
    assert all("1.77" in sentence for _, sentence in others)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_page_with_output_and_picture_and_a_notebook(example: Path, load: Any) -> None:
    gallery = load("site_pages.gallery")
    page = gallery.write_pages()[f"gallery/{example.stem}.md"]
    printed = (ROOT / "docs" / "gallery" / f"{example.stem}.txt").read_text(encoding="utf-8")
    assert printed.startswith("computed by numpy\n")
    assert printed.strip() in page
    assert f"({example.stem}.svg)" in page
    assert (ROOT / "docs" / "gallery" / f"{example.stem}.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert f'href="{example.stem}/"' in gallery.write_pages()["gallery/index.md"]

    notebook = json.loads(gallery.write_notebooks()[f"gallery/{example.stem}.ipynb"])
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = ast.parse("\n".join(code)).body
    if ast.unparse(shown[0]).startswith("__file__"):
        shown = shown[1:]
    program = ast.parse(example.read_text(encoding="utf-8")).body
    assert [ast.dump(node) for node in shown[:-1]] == [ast.dump(node) for node in program[1:-1]]
    assert ast.unparse(shown[-1]) == "main([])"


def test_what_the_gallery_shows_is_what_the_program_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one that takes no time; ``make gallery`` writes all of them."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    importlib.import_module("rosenbrock_newton").main(["--backend", "numpy"])
    shown = (ROOT / "docs" / "gallery" / "rosenbrock_newton.txt").read_text(encoding="utf-8")
    assert capsys.readouterr().out == shown


def test_the_walk_finds_what_leads_nowhere(tmp_path: Path, load: Any) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "index.html").write_text('<h1 id="there">a</h1>', encoding="utf-8")
    (tmp_path / "index.html").write_text(
        '<a href="other/">a</a><a href="other/#there">b</a><a href="other/#gone">c</a><a href="gone/">d</a>'
        '<img src="gone.png"><a href="https://example.org/elsewhere">e</a><a href="#here">f</a>',
        encoding="utf-8",
    )
    broken = load("walk_site").find_broken_links(tmp_path)
    assert broken == [f"index.html: {target}" for target in ("#here", "gone.png", "gone/", "other/#gone")]


@pytest.mark.skipif("torch" not in installed_backends(), reason="the tutorial goes on with PyTorch")
def test_the_tutorial_runs_as_a_notebook(tmp_path: Path, load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rendered page shows the curve, the table of the epochs, and how far the training is."""
    nbformat, nbclient, nbconvert = (pytest.importorskip(name) for name in ("nbformat", "nbclient", "nbconvert"))
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"), prepend=":")
    notebook = nbformat.reads(load("site_pages.notebooks").read_page(ROOT / "docs" / "tutorial.md"), as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    page, _ = nbconvert.HTMLExporter().from_notebook_node(notebook)
    assert 'src="data:image/png;base64,' in page
    assert "<th>val_accuracy</th>" in page
    assert "4/4" in page
    assert (tmp_path / "curve.png").is_file()


@pytest.fixture
def site(tmp_path: Path) -> str:
    """Return the folder of a site of one page."""
    (tmp_path / "index.html").write_text("<h1>Ember ML</h1>", encoding="utf-8")
    return str(tmp_path)


def test_a_site_without_a_browser_is_an_error_or_said(
    site: str, load: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    walk_site = load("walk_site")
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    assert walk_site.main([site]) == 1
    assert "no browser to walk the site with" in capsys.readouterr().out
    assert walk_site.main([site, "--browser", "optional"]) == 0
    assert "NOT WALKED" in capsys.readouterr().out


@pytest.mark.parametrize(("deaths", "found", "code"), [(2, [], 0), (2, ["cut code"], 1), (3, ["cut code"], 0)])
def test_a_browser_that_dies_is_started_again(
    site: str, load: Any, monkeypatch: pytest.MonkeyPatch, deaths: int, found: list[str], code: int
) -> None:
    walk_site = load("walk_site")
    monkeypatch.setitem(sys.modules, "playwright.sync_api", SimpleNamespace(Error=ConnectionError))
    left = [ConnectionError("it is gone")] * deaths

    def walk(*_: Any) -> list[str]:
        if left:
            raise left.pop()
        return found

    monkeypatch.setattr(walk_site, "_walk", walk)
    assert walk_site.main([site, "--browser", "optional"]) == code

"""What MkDocs runs when it builds the site: adds the pages that are made from the code, their menu, and the tables."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads this file alone, not as part of a package

from ember_ml import nn, ops
from site_pages import class_pages, elsewhere, gallery, llms, notebooks, op_pages, rule_pages, text, type_page

_HOMES = {"ops": ops, "nn": nn}
_pages: list[tuple[str, str, str]] = []  # of the build that is under way


def write_pages() -> dict[str, str]:
    """Return the text of every generated page, by its path."""
    text.PAGES.update(dict.fromkeys(type_page.TYPES, type_page.PATH) | class_pages.list_pages() | op_pages.list_pages())
    pages = op_pages.write_pages() | class_pages.write_pages() | {type_page.PATH: type_page.write_page()}
    return pages | {"reference/index.md": _write_index()}


def _write_index() -> str:
    """Return the page that leads to all others of the reference."""
    rows = [("[ops](ops.md)", "Every op, by family: arithmetic, linear algebra, statistics, signals, neural networks")]
    rows += [(f"[{name}]({name}/index.md)", title) for name, title in class_pages.list_sections().values()]
    rows.append(("[types](types.md)", "The names in signatures: TensorLike, AxisLike, ..."))
    about = "Everything public, made from the docstrings. The tests run each example on every backend."
    return f"# Reference\n\n{about}\n\n{text.table(('module', 'what is in it'), rows)}\n"


def _write_tutorial() -> dict[str, str]:
    """Return the notebook of the tutorial."""
    return {"tutorial.ipynb": notebooks.read_page(Path(__file__).parents[1] / "docs" / "tutorial.md")}


def on_config(config: Any) -> Any:
    """Put the menu of the generated pages behind the pages that are written by hand."""
    _pages.clear()
    config.edit_uri = "edit/main/docs/" if config.repo_url else None  # MkDocs would link to it without an address too
    reference = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    start = next(entry["Start"] for entry in config.nav if "Start" in entry)
    start.insert(3, gallery.make_navigation())  # behind the tutorial
    extend = next(entry["Extend"] for entry in config.nav if "Extend" in entry)
    extend.append(rule_pages.make_navigation())
    reference += [{"ops": op_pages.make_navigation()}, *class_pages.make_navigation(), {"Types": type_page.PATH}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those in docs/."""
    from mkdocs.structure.files import File

    made = (
        write_pages() | gallery.write_pages() | gallery.write_notebooks() | _write_tutorial() | rule_pages.write_pages()
    )
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the tables of names that a page asks for, such as ``<!-- names: PyTorch -->``."""
    markdown = re.sub(
        r"<!-- names: (\w+) -->", lambda found: elsewhere.write_table(found[1], page.file.src_uri), markdown
    )
    markdown = re.sub(
        r"<!-- same names: ([\w.]+) (\w+) -->",
        lambda found: elsewhere.list_same_names(found[1], _HOMES[found[2]]),
        markdown,
    )
    _pages.append(llms.collect(page, markdown))
    return markdown


def on_post_build(config: Any) -> None:
    """Write the files for language models beside the site."""
    for name, content in llms.write_files(config.site_description, _pages, config.site_url or "").items():
        Path(config.site_dir, name).write_text(content, encoding="utf-8")

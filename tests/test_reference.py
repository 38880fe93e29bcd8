"""The reference pages that the documentation is built with: one for every op, made from its declaration."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

from ember_ml.backend import installed_backends
from ember_ml.dispatch.declare import OPS

pytest.importorskip("mkdocs")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Every generated page by its path."""
    spec = importlib.util.spec_from_file_location("reference", Path(__file__).parents[1] / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


def test_every_op_has_a_page_and_a_place_in_the_index(pages: dict[str, str]) -> None:
    assert set(pages) == {f"reference/{name}.md" for name in OPS} | {"reference/index.md"}
    for name in OPS:
        assert f"[{name}]({name}.md)" in pages["reference/index.md"]


@pytest.mark.parametrize("name", sorted(OPS))
def test_a_page_says_what_the_declaration_says(name: str, pages: dict[str, str]) -> None:
    op, page = OPS[name], pages[f"reference/{name}.md"]
    assert page.startswith(f"# {name}\n\n```python\nops.{name}(")
    for parameter in op.signature.parameters.values():
        assert parameter.name in page
        if isinstance(parameter.default, str):
            assert f"{parameter.default!r}" in page
    example = next(line for line in (inspect.getdoc(op.declaration) or "").splitlines() if line.startswith(">>>"))
    assert example in page
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    assert not re.search(r":\w+:`|``", prose)  # nothing of the docstring's own markup is left
    if not op.is_plain:
        for heading in ("## Dtypes", "## Gradient", "## Backends"):
            assert heading in page
        for backend in installed_backends():
            assert f"| {backend} | " in page


def test_links_lead_to_pages(pages: dict[str, str]) -> None:
    for path, page in pages.items():
        prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
        for target in re.findall(r"\]\((\w[^)#]*\.md)", prose):
            assert f"reference/{target}" in pages, f"{path} links to {target}"


def test_what_a_page_tells_of_gradients_and_backends(pages: dict[str, str]) -> None:
    assert "Differentiable with respect to `x` and `y`." in pages["reference/matmul.md"]
    assert "Not differentiable: `TypeError`." in pages["reference/nextafter.md"]
    assert "constant to every gradient" in pages["reference/argmax.md"]
    assert "Through the ops that it is made of." in pages["reference/linspace.md"]
    if "mlx" in installed_backends():
        assert "MLX has no complex128" in pages["reference/fft.md"]
        assert "differentiated by the rules of Ember ML" in pages["reference/svd.md"]

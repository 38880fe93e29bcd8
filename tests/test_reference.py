"""The reference pages that the site is built with: one for every public name, made from its declaration."""

from __future__ import annotations

import importlib.util
import inspect
import posixpath
import re
from pathlib import Path
from types import ModuleType

import pytest

import ember_ml
from ember_ml.backend import installed_backends
from ember_ml.dispatch.declare import OPS
from ember_ml.lint.rules import ALL

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """The program that MkDocs runs; it brings the modules of utils/site_pages."""
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "utils" / "site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(hooks: ModuleType) -> dict[str, str]:
    """Every generated page by its path."""
    return hooks.write_pages()


def test_every_op_has_a_page_and_a_place_in_the_index(pages: dict[str, str]) -> None:
    for name in OPS:
        assert f"reference/{name}.md" in pages
        assert f"[`{name}`]({name}.md)" in pages["reference/ops.md"]


def _walk_public() -> list[tuple[str, str, object]]:
    """Return every public name with its module and what it names, from ``ember_ml.__all__`` on through modules."""
    found, seen, waiting = [], set(), [ember_ml]
    while waiting:
        module = waiting.pop()
        if module.__name__ in seen:
            continue
        seen.add(module.__name__)
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.ismodule(thing):
                waiting.append(thing)
            else:
                found.append((module.__name__, name, thing))
    return found


def test_every_public_name_has_a_page(pages: dict[str, str], hooks: ModuleType) -> None:
    """Under its name, or under another that it has elsewhere, as ``ops.random.normal`` is ``ops.random_normal``."""
    paths = hooks.text.PAGES
    public = _walk_public()
    described = {id(thing) for _, name, thing in public if paths.get(name) in pages}
    without = [f"{module}.{name}" for module, name, thing in public if id(thing) not in described]
    assert len(public) > 1500
    assert not without
    for module, things in hooks.class_pages.list_public().items():
        for name in things:
            assert f"reference/{hooks.class_pages.SECTIONS[module][0]}/{name}.md" in pages
    for part in ("nn", "training", "distributed", "features", "memory", "errors", "registry", "datasets", "backend"):
        assert part in ember_ml.__all__
        assert any(path.startswith(("reference/" + part, f"reference/ember_ml.{part}/")) for path in pages), part


def test_every_parameter_has_a_meaning(hooks: ModuleType) -> None:
    things = [(f"ops.{op.name}", op.declaration, op.signature) for op in OPS.values()]
    for module, public in hooks.class_pages.list_public().items():
        for name, thing in public.items():
            if inspect.isclass(thing) or inspect.isfunction(thing):
                things.append((f"{module}.{name}", thing, hooks.class_pages.find_signature(thing)))
    describe = importlib.import_module("site_pages.meanings").describe_parameters
    empty = [
        f"{name}({parameter.name})"
        for name, thing, signature in things
        if signature is not None
        for parameter, meaning in describe(thing, signature)
        if not meaning
    ]
    assert len(things) > 600
    assert not empty


@pytest.mark.parametrize("name", sorted(OPS))
def test_a_page_says_what_the_declaration_says(name: str, pages: dict[str, str]) -> None:
    op, page = OPS[name], pages[f"reference/{name}.md"]
    assert page.startswith(f"# {name}\n\n```python\nops.{name}(")
    for parameter in op.signature.parameters.values():
        assert re.search(rf"^\| `\**{parameter.name}` \|", page, re.MULTILINE)
        if isinstance(parameter.default, str):
            assert f"{parameter.default!r}" in page
    example = next(line for line in (inspect.getdoc(op.declaration) or "").splitlines() if line.startswith(">>>"))
    assert example in page
    if not op.is_plain:
        for heading in ("## Dtypes", "## Gradient", "## Backends"):
            assert heading in page
        for backend in installed_backends():
            assert f"| {backend} | " in page


def test_no_markup_of_docstrings_is_left(pages: dict[str, str]) -> None:
    for path, page in pages.items():
        prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
        assert not re.search(r":\w+:`|``|^(Args|Raises|Returns):", prose, re.MULTILINE), path


def test_links_lead_to_pages(pages: dict[str, str]) -> None:
    for path, page in pages.items():
        prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
        for target in re.findall(r"\]\((\w[^)#]*\.md|\.\.[^)#]*\.md)", prose):
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            assert found in pages or (ROOT / "docs" / found).is_file(), f"{path}: {target}"


def test_what_a_page_tells_of_gradients_and_backends(pages: dict[str, str]) -> None:
    assert "Differentiable with respect to `x` and `y`." in pages["reference/matmul.md"]
    assert "Not differentiable: `TypeError`." in pages["reference/nextafter.md"]
    assert "constant to every gradient" in pages["reference/argmax.md"]
    assert "Through the ops that it is composed of." in pages["reference/linspace.md"]
    assert "by default float32" in pages["reference/random_normal.md"]
    if "mlx" in installed_backends():
        assert "MLX has no complex128" in pages["reference/fft.md"]
        assert "differentiated by the rules of Ember ML" in pages["reference/svd.md"]


def test_what_the_page_of_a_class_tells(pages: dict[str, str]) -> None:
    page = pages["reference/nn/Conv2d.md"]
    assert page.startswith("# Conv2d\n\n```python\nnn.Conv2d(\n    inputs: int | None,\n")
    assert "| `groups` | `int` | `1` | " in page
    assert "[`DTypeLike`](../types.md#dtypelike)" in page
    assert "It also has the methods of [`Layer`](../nn.layers.base/Layer.md), [`Module`](Module.md)." in page
    assert "### load_state_dict" in pages["reference/nn/Module.md"]
    assert "begin_trace" not in pages["reference/nn/Module.md"]
    assert "keras.layers.Dense" in pages["reference/nn/Linear.md"]
    assert "Also caught as: `ValueError`." in pages["reference/errors/LinAlgError.md"]


def test_a_page_leads_on(pages: dict[str, str]) -> None:
    """To names like its own, to the guide of its subject, and to its source, which is there."""
    assert re.search(
        r"^See also: .*\[`conv_transpose`\]\(conv_transpose.md\), ", pages["reference/conv.md"], re.MULTILINE
    )
    assert "the guide [Neural-network ops](../neural.md)." in pages["reference/conv.md"]
    assert "[`Conv1d`](Conv1d.md)" in pages["reference/nn/Conv2d.md"]
    sources = [source for page in pages.values() for source in re.findall(r"Source: `(src/[^`]+)`", page)]
    assert len(sources) > 700
    assert [source for source in sources if not (ROOT / source).is_file()] == []


def test_the_search_finds_parts_of_names(pages: dict[str, str]) -> None:
    """Its words do not end at underscores."""
    assert (
        "Search words: sparse categorical crossentropy, cross entropy"
        in pages["reference/sparse_categorical_crossentropy.md"]
    )
    assert "Search words: cosine restarts" in pages["reference/training.schedules/CosineRestarts.md"]
    assert "Search words" not in pages["reference/add.md"]


def test_the_tables_of_names_are_filled_in(hooks: ModuleType, pages: dict[str, str]) -> None:
    page = type("Page", (), {"file": type("File", (), {"src_uri": "coming-from/pytorch.md", "url": ""}), "title": ""})
    shown = hooks.on_page_markdown("<!-- names: PyTorch -->\n<!-- same names: numpy ops -->", page)
    assert "| `torch.cat` | [`ops.concatenate`](../reference/concatenate.md) |" in shown
    assert "`matmul`" in shown.splitlines()[-1]
    assert "<!--" not in shown


def test_every_rule_of_the_linter_has_a_page(hooks: ModuleType) -> None:
    pages = hooks.rule_pages.write_pages()
    for code, rule in ALL.items():
        page = pages[f"emberlint/{code}.md"]
        assert page.startswith(f"# {code}: {rule.name}\n")
        assert rule.why in page
        assert f"[{code}]({code}.md)" in pages["emberlint/rules.md"]

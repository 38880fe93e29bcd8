"""Runs over many files: cache, several cores, notebooks, repairs on disk, and files that cannot be read."""

from __future__ import annotations

import json
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ember_ml.lint import runner
from ember_ml.lint.project import lint_source
from tests.lint.conftest import Run, Write

IMPURE = "import numpy as np\n\n\ndef f(x):\n    return np.mean(x)\n"
MAKE = "from ember_ml import ops\n\n\ndef make():\n    return ops.ones((3,))\n"
USE = "from pkg.make import make\n\n\ndef use():\n    return make() + 1\n"


def project(write: Write, count: int = 12) -> None:
    write("pkg/__init__.py", "")
    write("pkg/make.py", MAKE)
    for number in range(count):
        write(f"pkg/use{number}.py", USE)


def test_parallel_finds_the_same(emberlint: Run, write: Write) -> None:
    project(write)
    alone = emberlint("--no-cache", "--jobs", "1", "--format", "json", "pkg")
    together = emberlint("--no-cache", "--jobs", "3", "--format", "json", "pkg")
    assert json.loads(alone.out) == json.loads(together.out)
    assert alone.out.count("EMB401") == 12


def test_cache_gives_the_same_unread(emberlint: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    project(write)
    cold = emberlint("--format", "json", "pkg")
    monkeypatch.setattr(runner, "Project", None)  # a warm run must not build one
    assert emberlint("--format", "json", "pkg").out == cold.out


def test_cache_sees_what_another_file_changes(emberlint: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    project(write, 2)
    write("pkg/apart.py", "x = 1\n")
    assert emberlint("pkg").out.count("EMB401") == 2
    write("pkg/make.py", "def make():\n    return 3\n")
    looked_at = []
    original = runner.add
    monkeypatch.setattr(
        runner,
        "add",
        lambda project, item, problems: (looked_at.append(Path(item.path).name), original(project, item, problems))[1],
    )
    assert emberlint("pkg").code == 0
    assert "apart.py" not in looked_at
    assert set(looked_at) == {"make.py", "use0.py", "use1.py"}
    write("pkg/make.py", MAKE)
    assert emberlint("pkg").out.count("EMB401") == 2


def test_cache_knows_its_settings(emberlint: Run, write: Write) -> None:
    write("a.py", IMPURE)
    assert emberlint("a.py").code == 1
    assert emberlint("--ignore", "EMB1,EMB2", "a.py").code == 0
    assert emberlint("a.py").code == 1


def test_broken_cache_is_no_error(emberlint: Run, write: Write, tmp_path: Path) -> None:
    write("a.py", IMPURE)
    emberlint("a.py")
    for path in (tmp_path / ".emberlint_cache").glob("*.json"):
        path.write_text("{broken")
    assert emberlint("a.py").code == 1


# --- repairs on disk


def test_diff_shows_and_fix_writes(emberlint: Run, write: Write) -> None:
    path = write("a.py", IMPURE)
    outcome = emberlint("--diff", "a.py")
    assert outcome.code == 1
    assert "+    return ops.mean(x)" in outcome.out
    assert path.read_text() == IMPURE
    assert emberlint("--fix", "a.py").code == 0
    assert path.read_text() == "from ember_ml import ops\n\n\ndef f(x):\n    return ops.mean(x)\n"


def test_unsafe_repairs_only_on_request(emberlint: Run, write: Write) -> None:
    text = "from ember_ml import ops\n\n\ndef f(x):\n    return float(ops.sum(x))\n"
    path = write("a.py", text)
    emberlint("--fix", "a.py")
    assert path.read_text() == text
    emberlint("--fix", "--unsafe-fixes", "a.py")
    assert path.read_text() == text.replace("float(ops.sum(x))", "ops.sum(x)")


@pytest.mark.parametrize(
    ("native", "repaired"),
    [
        ("np.sum(x, axis=0, dtype='float64')", "ops.sum(x, axis=0, dtype='float64')"),
        ("np.mean(x, dtype='float64')", None),
        ("np.exp(x, y)", None),
        ("np.zeros_like(x, shape=(2,))", None),
        ("np.linalg.solve(a=x, b=y)", None),
        ("np.linalg.solve(x, y)", "ops.solve(x, y)"),
        ("np.allclose(x, y)", "ops.item(ops.allclose(x, y))"),
        ("torch.split(x, 2)", None),
        ("torch.tensordot(x, y, dims=2)", None),
        ("ops.abs(x).flatten(1)", None),
        ("ops.abs(x).mean(0)", "ops.mean(ops.abs(x), 0)"),
    ],
)
def test_arguments_without_counterpart_stay(emberlint: Run, write: Write, native: str, repaired: str | None) -> None:
    text = "import numpy as np\nimport torch\n\nfrom ember_ml import ops\n\n\ndef f(x, y):\n    return "
    path = write("a.py", f"{text}{native}\n")
    emberlint("--fix", "a.py")
    assert path.read_text().endswith(f"    return {repaired or native}\n")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"import numpy as np\r\n\r\ny = np.mean([1])\r\n", b"from ember_ml import ops\r\n\r\ny = ops.mean([1])\r\n"),
        (
            b"\xef\xbb\xbfimport numpy as np\ny = np.mean([1])  # \xc3\xa9\n",
            b"\xef\xbb\xbffrom ember_ml import ops\ny = ops.mean([1])  # \xc3\xa9\n",
        ),
        (
            b"# -*- coding: latin-1 -*-\nimport numpy as np\nt = '\xe9'; y = np.mean([1])\n",
            b"# -*- coding: latin-1 -*-\nfrom ember_ml import ops\nt = '\xe9'; y = ops.mean([1])\n",
        ),
        (b"import numpy as np\ny = np.mean([1])", b"from ember_ml import ops\ny = ops.mean([1])"),
    ],
    ids=["crlf", "bom", "latin-1", "no newline"],
)
def test_bytes_that_are_not_repaired_stay(emberlint: Run, tmp_path: Path, data: bytes, expected: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    emberlint("--fix", "a.py")
    assert (tmp_path / "a.py").read_bytes() == expected


def test_formatting_and_comments_stay(emberlint: Run, write: Write) -> None:
    path = write(
        "a.py",
        "from ember_ml import ops\nfrom ember_ml.nn.tensor import Tensor\n\ndef f(x: Tensor, y: "
        "Tensor):\n    return (\n        x  # the first\n        + # plus\n        y  # the second\n    "
        ")\n",
    )
    emberlint("--fix", "a.py")
    text = path.read_text()
    assert "ops.add(" in text
    assert all(comment in text for comment in ("# the first", "# plus", "# the second"))


# --- notebooks


def notebook(*cells: str) -> str:
    return json.dumps(
        {
            "cells": [
                {"cell_type": "code", "source": cell.splitlines(keepends=True), "metadata": {}, "outputs": []}
                for cell in cells
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=1,
    )


def test_notebooks_are_checked_and_repaired(emberlint: Run, write: Write) -> None:
    path = write("n.ipynb", notebook("%matplotlib inline\nimport numpy as np", "y = np.mean([1.0])\n!ls"))
    outcome = emberlint("n.ipynb")
    assert "n.ipynb:cell 1:2:1: EMB101" in outcome.out
    assert "n.ipynb:cell 2:1:5: EMB201" in outcome.out
    assert emberlint("--fix", "n.ipynb").code == 0
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
    assert cells == ["%matplotlib inline\nfrom ember_ml import ops", "y = ops.mean([1.0])\n!ls"] or cells == [
        "from ember_ml import ops\n%matplotlib inline",
        "y = ops.mean([1.0])\n!ls",
    ]


# --- files that cannot be read


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.py", b"def f(:\n", "cannot be parsed"),
        ("a.py", b"x = 1\0\n", "null byte"),
        ("a.py", b"x = '\xff\xfe'\n", "cannot be decoded"),
        ("a.py", b"# coding: nonsense\nx = 1\n", "cannot be decoded"),
        ("a.py", b"x = " + b"(" * 5000 + b")" * 5000 + b"\n", ""),
        ("a.py", b"print 'python 2'\n", "cannot be parsed"),
        ("a.ipynb", b"not json", "is not a notebook"),
        ("a.ipynb", b"{}", "is not a notebook"),
    ],
)
def test_unreadable_files_say_why(emberlint: Run, tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    outcome = emberlint(name)
    assert outcome.code == 2
    assert "EMB900" in outcome.out
    assert message in outcome.out


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"x = " + b" + ".join([b"1"] * 3000) + b"\n",
        b"\xef\xbb\xbfx = 1\n",
        "ünïcödé = 1\n".encode(),
        b"if True:\n" + b"".join(b" " * n + b"if True:\n" for n in range(1, 90)) + b" " * 90 + b"pass\n",
        b"x = 1\r\ny = 2\rz = 3\n",
        b"\x0cx = 1\n",
    ],
    ids=["empty", "newline", "long sum", "bom", "unicode", "deep blocks", "line ends", "form feed"],
)
def test_odd_files_are_no_problem(emberlint: Run, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.py").write_bytes(data)
    outcome = emberlint("a.py")
    if sys.version_info[:2] == (3, 12) and b"1 + 1" in data:  # CPython 3.12: has a fixed limit, which refuses it
        assert "nested too deeply" in outcome.out
    else:
        assert outcome.code == 0


@pytest.mark.skipif(sys.version_info[:2] == (3, 12), reason="CPython 3.12: parses no sum of 3000 terms")
def test_threads_check_deep_files_at_the_same_time() -> None:
    """The recursion limit belongs to the process: a thread that is done must not lower it below another."""
    deep = "x = " + " + ".join(["1"] * 3000) + "\n"
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lint_source, [deep, IMPURE] * 6))
    assert [len(findings) for findings in found] == [0, len(lint_source(IMPURE))] * 6


def test_a_long_sum_is_walked_without_nested_calls() -> None:
    """A debugger or PyTorch's compiler takes the C stack for each call, which ends long before Python's limit."""
    depth = deepest = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal depth, deepest
        depth += {"call": 1, "return": -1}.get(event, 0)
        deepest = max(deepest, depth)

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        assert lint_source("x = " + " + ".join(["1"] * 800) + "\n") == []
    finally:
        sys.setprofile(before)
    assert deepest < 100


@pytest.mark.long
def test_files_that_nobody_here_wrote_are_checked(emberlint: Run) -> None:
    """The standard library and installed packages: no crash, and a reason for each file that cannot be read."""
    folders = dict.fromkeys(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
    files = [str(path) for folder in folders for path in sorted(Path(folder).rglob("*.py"))]
    outcome = emberlint("--no-cache", "--format", "json", *files[:6000])
    findings = json.loads(outcome.out)
    unreadable = [finding for finding in findings if finding["code"] == "EMB900"]
    assert outcome.code == (2 if unreadable else 1 if findings else 0)
    assert all("cannot be" in finding["message"] or "null byte" in finding["message"] for finding in unreadable)
    assert "Traceback" not in outcome.err

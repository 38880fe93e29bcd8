"""The command: exit codes, options, configuration, formats, baseline."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from ember_ml.lint.rules import ALL
from tests.lint.conftest import Run, Write

IMPURE = "import numpy as np\n\n\ndef f(x):\n    return np.mean(x)\n"
PURE = "from ember_ml import ops\n\n\ndef f(x):\n    return ops.mean(x)\n"


def test_exit_code_0_when_nothing_is_found(emberlint: Run, write: Write) -> None:
    write("a.py", PURE)
    assert emberlint("a.py").code == 0


def test_exit_code_1_and_the_source_line_when_something_is_found(emberlint: Run, write: Write) -> None:
    write("a.py", IMPURE)
    outcome = emberlint(".")
    assert outcome.code == 1
    assert "a.py:5:12: EMB201 numpy.mean" in outcome.out
    assert "    return np.mean(x)\n           ^^^^^^^^^^" in outcome.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.py"],
        ["--format", "xml", "."],
        ["--select", "EMB999", "."],
        ["--profile", "nobody", "."],
        ["--jobs", "-1", "."],
        ["rule", "EMB999"],
    ],
)
def test_exit_code_2_for_what_cannot_be_done(emberlint: Run, arguments: list[str]) -> None:
    outcome = emberlint(*arguments)
    assert outcome.code == 2
    assert outcome.err


def test_module_and_command_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(IMPURE)
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-m", "ember_ml.lint", "a.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "EMB101" in done.stdout


def test_every_rule_is_explained(emberlint: Run) -> None:
    for code in ALL:
        outcome = emberlint("rule", code)
        assert outcome.code == 0
        assert outcome.out.startswith(code)


def test_the_list_of_rules(emberlint: Run) -> None:
    lines = emberlint("rules").out.splitlines()
    assert [line.split()[0] for line in lines] == list(ALL)
    assert not any("{" in line for line in lines)


def test_rule_without_a_code_says_what_to_write(emberlint: Run) -> None:
    outcome = emberlint("rule")
    assert outcome.code == 2
    assert "say which rule: emberlint rule EMB401" in outcome.err


def test_the_version(emberlint: Run) -> None:
    assert emberlint("--version").out == f"emberlint {version('ember-ml')}\n"


def test_a_program_on_stdin(emberlint: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, code in ((IMPURE, 1), (PURE, 0)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        outcome = emberlint("-")
        assert outcome.code == code
        assert ("<stdin>:5:12: EMB201" in outcome.out) == bool(code)
    assert emberlint("--fix", "-").code == 2
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(IMPURE.encode())))
    assert "+    return ops.mean(x)" in emberlint("--diff", "-").out


def test_a_terminal_gets_colour(emberlint: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", IMPURE)
    assert "\033[" not in emberlint("a.py").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\033[1ma.py:5:12:\033[0m \033[31mEMB201\033[0m" in emberlint("a.py").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033[" not in emberlint("a.py").out


def test_a_history_is_not_a_tensor(emberlint: Run, write: Write) -> None:
    """The losses of a run are floats: nothing about them is reported, and nothing is repaired."""
    text = (
        "from ember_ml import nn, ops\nfrom ember_ml.training import Trainer\n\nx = ops.ones((4, 2))\n"
        "trainer = Trainer(nn.Linear(2, 2))\nhistory = trainer.fit(x, x, epochs=3)\n"
        "other = trainer.fit(x, x, epochs=4)\n"
        'print(max(abs(a - b) for a, b in zip(other["loss"], history["loss"])))\n'
        'if trainer.evaluate(x, x)["loss"] < 1.0:\n    print(trainer.history["loss"][-1] * 2.0)\n'
    )
    path = write("a.py", text)
    assert emberlint("--fix", "a.py").out == ""
    assert path.read_text() == text


def test_select_and_ignore(emberlint: Run, write: Write) -> None:
    write("a.py", IMPURE)
    assert "EMB101" not in emberlint("--select", "EMB2", "a.py").out
    assert "EMB201" not in emberlint("--ignore", "EMB201", "a.py").out
    assert emberlint("--ignore", "EMB1,EMB2", "a.py").code == 0


def test_strict_reports_the_unknown(emberlint: Run, write: Write) -> None:
    write("a.py", "def f(x, y):\n    return x + y\n")
    assert emberlint("a.py").code == 0
    assert "EMB401" in emberlint("--strict", "a.py").out


def test_results_are_followed_across_files(emberlint: Run, write: Write) -> None:
    write("pkg/__init__.py", "")
    write("pkg/make.py", "from ember_ml import ops\n\n\ndef make():\n    return ops.ones((3,))\n")
    write(
        "pkg/use.py",
        "from pkg.make import make\n\n\ndef use():\n    return helper(make())\n\n\ndef helper(value):\n  "
        "  return value + 1\n",
    )
    outcome = emberlint("pkg")
    assert "use.py:9:12: EMB401" in outcome.out.replace("\\", "/")


# --- configuration


def test_configuration_is_found_from_the_file_upwards(emberlint: Run, write: Write) -> None:
    write("pyproject.toml", "[tool.emberlint]\nignore = ['EMB1', 'EMB2']\n")
    write("deep/er/a.py", IMPURE)
    assert emberlint("deep/er/a.py").code == 0


@pytest.mark.parametrize(
    "table",
    [
        "colour = 'red'",
        "select = 'EMB1'",
        "select = ['EMB7777']",
        "profile = 'nobody'",
        "[tool.emberlint.allow]\n'tests' = ['pandas']",
        "[tool.emberlint.profiles.mine]\ncolour = 1",
        "strict = 'yes'",
        "select = [1]",
    ],
)
def test_wrong_configuration_is_an_error(emberlint: Run, write: Write, table: str) -> None:
    write("pyproject.toml", f"[tool.emberlint]\n{table}\n")
    write("a.py", PURE)
    outcome = emberlint("a.py")
    assert outcome.code == 2
    assert "EMB903" in outcome.err
    assert "pyproject.toml" in outcome.err


def test_broken_toml_is_an_error(emberlint: Run, write: Write) -> None:
    write("pyproject.toml", "[tool.emberlint\n")
    write("a.py", PURE)
    assert emberlint("a.py").code == 2


def test_folders_may_be_exempt_allowed_excluded_and_ignored(emberlint: Run, write: Write) -> None:
    write(
        "pyproject.toml",
        "[tool.emberlint]\nexempt = ['src/backend/**']\nexclude = ['old']\n[tool.emberlint.allow]\n"
        "'tests/**' = ['numpy']\n"
        "[tool.emberlint.per-file-ignores]\n'scripts/*.py' = ['EMB101', 'EMB201']\n",
    )
    for name in ("src/backend/numpy/a.py", "old/a.py", "tests/a.py", "scripts/a.py"):
        write(name, IMPURE)
    assert emberlint(".").code == 0
    write("tests/b.py", "import torch\n")
    assert emberlint(".").code == 1


def test_a_file_that_no_profile_lists_is_front_end(emberlint: Run, write: Write) -> None:
    write("a.py", IMPURE)
    assert emberlint("a.py").code == 1


def test_a_profile_of_ones_own(emberlint: Run, write: Write) -> None:
    write(
        "pyproject.toml",
        "[tool.emberlint]\nprofile = 'mine'\n[tool.emberlint.profiles.mine]\nextends = 'ember'\n"
        "namespaces = ['mylib.math']\nprefix = 'math'\nimport-line = 'from mylib import math'\n",
    )
    write("a.py", "from mylib import math\n\n\ndef f():\n    return math.sin(1.0) + 1\n")
    assert "EMB401" in emberlint("a.py").out
    emberlint("--fix", "a.py")
    assert "math.add(math.sin(1.0), 1)" in Path("a.py").read_text()


@pytest.mark.parametrize(
    ("profile", "text", "code"),
    [
        ("keras", "from keras import ops\n\n\ndef f(x):\n    return ops.sin(x) + 1\n", "EMB401"),
        ("array-api", "def f(x, xp):\n    return xp.asarray(x).sum()\n", "EMB402"),
        ("tensorly", "import tensorly as tl\n\n\ndef f(x):\n    return float(tl.norm(x))\n", "EMB301"),
    ],
)
def test_shipped_profiles(emberlint: Run, write: Write, profile: str, text: str, code: str) -> None:
    write("a.py", text)
    assert code in emberlint("--profile", profile, "a.py").out


# --- suppressions


def test_suppression_needs_a_reason_and_goes_stale(emberlint: Run, write: Write) -> None:
    write("a.py", "import numpy as np  # emberlint: ignore[EMB101] an oracle\n")
    assert emberlint("a.py").code == 0
    write("a.py", "import numpy as np  # emberlint: ignore[EMB101]\n")
    assert "EMB902" in emberlint("a.py").out
    write("a.py", "import math  # emberlint: ignore[EMB101] an oracle\n")
    assert "EMB901" in emberlint("a.py").out


# --- formats


def test_json(emberlint: Run, write: Write) -> None:
    write("a.py", IMPURE)
    findings = json.loads(emberlint("--format", "json", "a.py").out)
    assert [{k: f[k] for k in ("path", "line", "column", "code")} for f in findings] == [
        {"path": "a.py", "line": 1, "column": 1, "code": "EMB101"},
        {"path": "a.py", "line": 5, "column": 12, "code": "EMB201"},
    ]
    assert all(set(f) >= {"path", "line", "column", "code", "message", "fix"} for f in findings)
    assert findings[1]["fix"]["edits"] == [{"start": 42, "end": 52, "text": "ops.mean(x)"}]


def test_json_of_nothing(emberlint: Run, write: Write) -> None:
    write("a.py", PURE)
    assert json.loads(emberlint("--format", "json", "a.py").out) == []


def test_sarif(emberlint: Run, write: Write) -> None:
    write("a.py", IMPURE)
    log = json.loads(emberlint("--format", "sarif", "a.py").out)
    assert log["version"] == "2.1.0"
    run = log["runs"][0]
    ids = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        region = result["locations"][0]["physicalLocation"]["region"]
        assert region["startLine"] >= 1
        assert region["endColumn"] >= 1
    replacement = run["results"][1]["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert replacement["deletedRegion"] == {"startLine": 5, "startColumn": 12, "endLine": 5, "endColumn": 22}


def test_github(emberlint: Run, write: Write) -> None:
    write("a.py", IMPURE)
    assert emberlint("--format", "github", "a.py").out.startswith("::error file=a.py,line=1,col=1,")


def test_gitlab_fingerprints_survive_moved_code(emberlint: Run, write: Write) -> None:
    write("a.py", IMPURE)
    before = {issue["fingerprint"] for issue in json.loads(emberlint("--format", "gitlab", "a.py").out)}
    write("a.py", "\n\n" + IMPURE)
    after = {issue["fingerprint"] for issue in json.loads(emberlint("--format", "gitlab", "a.py").out)}
    assert len(before) == 2
    assert before == after


# --- baseline


def test_baseline_only_shrinks(emberlint: Run, write: Write, tmp_path: Path) -> None:
    write("a.py", IMPURE)
    assert emberlint("--baseline", "b.json", "a.py").code == 2
    assert emberlint("--baseline", "b.json", "--write-baseline", "a.py").code == 0
    assert emberlint("--baseline", "b.json", "a.py").code == 0
    write("a.py", IMPURE + "\n\ny = np.sum([1])\n")
    outcome = emberlint("--baseline", "b.json", "a.py")
    assert outcome.code == 1
    assert outcome.out.count("EMB201") == 2
    assert emberlint("--baseline", "b.json", "--write-baseline", "a.py").code == 1
    write("a.py", PURE)
    assert emberlint("--baseline", "b.json", "a.py").code == 0
    assert json.loads((tmp_path / "b.json").read_text())["counts"] == {}
    write("a.py", IMPURE)
    assert emberlint("--baseline", "b.json", "a.py").code == 1

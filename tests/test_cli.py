"""The command `ember-ml`: what each subcommand prints, its JSON, and one clear line for wrong input."""

from __future__ import annotations

import json
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ember_ml
from ember_ml import cli, ops
from ember_ml.backend import installed_backends
from ember_ml.backend import selection as backends
from ember_ml.dispatch.declare import OPS
from ember_ml.dispatch.deviations import deviations, read_deviations

INSTALLED = installed_backends()


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run `ember-ml` with arguments in this process, with its own home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")
    before = ember_ml.get_backend()

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["ember-ml", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, out, err)

    yield run
    ember_ml.set_backend(before)


def test_without_arguments_it_lists_the_commands(command: Any) -> None:
    shown = command("--help")
    assert shown.code == 0
    for name in ("doctor", "use", "ops", "bench", "demo", "launch"):
        assert name in shown.out


def test_version_and_short_help(command: Any) -> None:
    assert command("--version").out == f"ember-ml {ember_ml.__version__}\n"
    assert "doctor" in command("-h").out
    assert "--json" in command("doctor", "-h").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["ops", "nonsense"],
        ["use", "tensorflow"],
        ["use", "numpy", "--clear"],
        ["ops", "--family", "nonsense"],
        ["ops", "--backend", "tensorflow"],
        ["ops", "--status", "nonsense"],
        ["ops", "--source", "nonsense"],
        ["ops", "--source", "compile"],
        ["bench", "--group", "nonsense"],
        ["bench", "--size", "3"],
        ["bench", "--seconds", "fast"],
        ["doctor", "--nonsense"],
    ],
)
def test_wrong_input_is_one_clear_error_with_code_2(arguments: list[str], command: Any) -> None:
    shown = command(*arguments)
    assert shown.code == 2
    assert "Traceback" not in shown.out + shown.err
    assert "rror" in shown.err


def test_wrong_input_shows_no_traceback_in_a_real_shell(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "EMBER_ML_BACKEND": "tensorflow"}
    done = subprocess.run(
        [sys.executable, "-m", "ember_ml.cli", "use"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 2
    assert "EMBER_ML_BACKEND" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_tells_versions_backends_and_the_choice(command: Any) -> None:
    facts = command("doctor", "--json").json
    assert facts["versions"]["numpy"]
    assert facts["active"] == {"backend": "numpy", "chosen_by": "set_backend"}
    found = {entry["name"]: entry for entry in facts["backends"]}
    assert list(found)[:3] == ["numpy", "torch", "mlx"]
    for name in INSTALLED:
        assert "cpu" in found[name]["devices"]
        assert "float32" in found[name]["dtypes"]
    if "mlx" in INSTALLED:
        assert found["mlx"]["missing_dtypes"] == ["complex128"]
        assert found["mlx"]["blas"]


def test_doctor_prints_the_same_for_people(command: Any) -> None:
    shown = command("doctor")
    assert shown.code == 0
    assert "Active backend: numpy" in shown.out
    assert "ready" in shown.out


def test_doctor_names_the_extra_of_a_missing_backend(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_loaded", {"numpy": backends.load("numpy")})
    monkeypatch.setattr(backends, "is_installed", lambda name: name == "numpy")
    monkeypatch.setattr("ember_ml.backend.loading.is_installed", lambda name: name == "numpy")
    shown = command("doctor", "--json")
    assert shown.code == 0
    torch = next(entry for entry in shown.json["backends"] if entry["name"] == "torch")
    assert torch["installed"] is False
    assert "pip install 'ember-ml[torch]'" in torch["problem"]


def test_doctor_reports_a_corrupt_file_and_fails(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = backends.backend_file()
    path.parent.mkdir()
    path.write_text("nonsense")
    monkeypatch.setattr(backends, "_process", None)
    shown = command("doctor", "--json")
    assert shown.code == 1
    assert str(path) in shown.json["active"]["problem"]


def test_use_writes_and_clears_the_file(command: Any) -> None:
    path = backends.backend_file()
    assert command("use", "numpy").code == 0
    assert path.read_text() == "numpy\n"
    assert "removed" in command("use", "--clear").out
    assert not path.exists()
    assert command("use", "--clear").code == 0


def test_use_without_a_name_shows_the_choice(command: Any) -> None:
    ember_ml.set_backend("numpy")
    shown = command("use")
    assert (shown.code, shown.out) == (0, "numpy, chosen by set_backend\n")


def test_use_warns_where_the_variable_comes_first(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBER_ML_BACKEND", "torch")
    assert "EMBER_ML_BACKEND=torch is set here, and comes first" in command("use", "numpy").err
    monkeypatch.setenv("EMBER_ML_BACKEND", "numpy")
    assert command("use", "numpy").err == ""


def test_use_writes_nothing_for_an_unknown_backend(command: Any) -> None:
    command("use", "tensorflow")
    assert not backends.backend_file().exists()


def test_inventory_lists_every_op_on_every_backend(command: Any) -> None:
    entries = command("ops", "--json").json
    assert {entry["op"] for entry in entries} == set(OPS)
    for entry in entries:
        assert set(entry["status"]) == set(INSTALLED)
    statuses = {entry["op"]: entry["status"] for entry in entries}
    assert statuses["add"]["numpy"] == "native"
    assert statuses["get_item"]["numpy"] == "own"
    assert statuses["square"]["numpy"] in ("native", "derived")


def test_inventory_filters(command: Any) -> None:
    entries = command("ops", "--json", "--family", "arithmetic", "--backend", "numpy").json
    assert {entry["family"] for entry in entries} == {"arithmetic"}
    assert all(set(entry["status"]) == {"numpy"} for entry in entries)
    derived = command("ops", "--json", "--status", "derived").json
    assert derived
    assert all("derived" in entry["status"].values() for entry in derived)


def test_an_op_is_described(command: Any) -> None:
    shown = command("ops", "conv")
    assert shown.code == 0
    assert shown.out.startswith("ops.conv(\n    x: TensorLike,\n")
    assert "Differentiable with respect to `x` and `kernel`." in shown.out
    assert all(f"\n{name}: " in shown.out for name in INSTALLED)
    assert "ops.random_normal(" in command("ops", "ops.random.normal").out
    assert "Also: " in command("ops", "concat").out
    described = command("ops", "add", "--json").json
    assert described["signature"] == "(x: TensorLike, y: TensorLike) -> Tensor"
    assert described["doc"].startswith("The sums")


@pytest.mark.parametrize(("name", "hint"), [("cat", "is ops.concatenate here"), ("concatenat", "did you mean")])
def test_an_op_that_is_not_there_has_a_hint(command: Any, name: str, hint: str) -> None:
    shown = command("ops", name)
    assert shown.code == 2
    assert hint in " ".join(shown.err.split())


def test_a_filter_that_leaves_nothing_says_so(command: Any) -> None:
    assert command("ops", "--status", "missing", "--backend", "numpy").out == "No op is computed that way.\n"


def test_a_narrow_terminal_shows_whole_names(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(cli, "_PIPED_WIDTH", 50)
    shown = command("ops", "--family", "convolutions")
    assert "depthwise_conv" in shown.out
    assert "native" in shown.out or "own" in shown.out
    assert "dtype rule" not in shown.out


@pytest.mark.parametrize("columns", [50, 80])
def test_tables_cut_nothing(command: Any, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(cli, "_PIPED_WIDTH", columns)
    for arguments in (["doctor"], ["ops", "--family", "arithmetic"]):
        shown = command(*arguments).out
        assert "…" not in shown
        assert all(name in shown for name in INSTALLED)
        tables = [line for line in shown.splitlines() if line.startswith(("│", "┃", "  "))]
        assert max(map(len, tables)) <= columns


def test_help_names_types_of_values_and_cuts_nothing(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name in re.findall(r"^│ (\w+) ", command("--help").out, re.MULTILINE) if name != "name"]
    assert {"doctor", "plan", "serve"} <= {*names}
    for columns in ("50", "80"):
        monkeypatch.setenv("COLUMNS", columns)
        for name in names:
            shown = command(name, "--help").out
            assert "bool" not in shown
            assert "…" not in shown
            assert max(map(len, shown.splitlines())) <= int(columns)
    assert "--efficiency" in command("plan", "--help").out


def find_keys(value: Any) -> set[str]:
    """Return the keys of all objects in JSON."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {*(value if isinstance(value, dict) else ())}.union(*map(find_keys, parts))


@pytest.mark.parametrize("arguments", [["doctor"], ["ops", "--family", "arithmetic"]], ids=" ".join)
def test_keys_of_json_have_no_blanks(command: Any, arguments: list[str]) -> None:
    keys = find_keys(command(*arguments, "--json").json)
    assert len(keys) > 5
    assert not [key for key in keys if " " in key]


def test_inventory_by_use(command: Any) -> None:
    entries = command("ops", "--json", "--by-use", "--backend", "numpy").json
    uses = [entry["uses"] for entry in entries]
    assert uses == sorted(uses, reverse=True)
    assert {"add", "multiply", "reshape"} <= {entry["op"] for entry in entries[:40]}


def test_inventory_prints_a_table(command: Any) -> None:
    shown = command("ops", "--family", "bitwise")
    assert "bitwise_and" in shown.out
    assert "numpy: " in shown.out


def test_gaps_come_with_a_reason(command: Any) -> None:
    gaps = command("ops", "--gaps", "--json").json
    assert all(gap["reason"] for gap in gaps)
    if "mlx" in INSTALLED:
        assert {"backend": "mlx", "op": "*", "dtype": "complex128"}.items() <= gaps[0].items()
    assert command("ops", "--gaps").code == 0


def test_source_is_the_code_that_runs(command: Any, backend: str) -> None:
    entries = command("ops", "--source", "add", "--json").json
    assert {(entry["op"], entry["backend"]) for entry in entries} == {("add", name) for name in INSTALLED}
    shown = command("ops", "--source", "add", "--backend", backend).out
    header, _, source = shown.partition("\n")
    filename = ops.add.__code__.co_filename
    assert header == f"# {filename}" == f"# <ember_ml add on {backend}>"
    assert "".join(linecache.getlines(filename)).strip() == source.strip()
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    made = namespace["add"].__code__
    assert (made.co_code, made.co_names) == (ops.add.__code__.co_code, ops.add.__code__.co_names)


def test_source_knows_an_op_by_its_other_names(command: Any) -> None:
    name, op = next((alias, op) for op in OPS.values() for alias in op.aliases if not op.is_plain)
    assert f"def {op.name}(" in command("ops", "--source", name, "--backend", "numpy").out


def test_deviations_name_library_and_version(command: Any) -> None:
    entries = command("ops", "--deviations", "--json").json
    assert {entry["backend"] for entry in entries} == set(INSTALLED)
    for entry in entries:
        assert re.fullmatch(r"\d+\.\d+(\.\d+)?", entry["version"])
        assert entry["text"]
        assert entry["function"]
        assert entry["line"] > 0
    only = command("ops", "--deviations", "--json", "--backend", "numpy").json
    assert only == [entry for entry in entries if entry["backend"] == "numpy"]
    shown = command("ops", "--deviations", "--backend", "numpy")
    assert shown.code == 0
    assert "floor_divide" in shown.out


def test_deviations_are_found_in_the_comments_of_a_file(tmp_path: Path) -> None:
    planted = tmp_path / "bodies.py"
    planted.write_text(
        "# torch 2.13: about nothing below an import\n"
        "import math\n\n"
        "def _helper(x):\n"
        "    return x  # torch 2.11 on CUDA: sorts by bits\n\n"
        "def _middle(x):\n"
        "    return _helper(x)\n\n"
        "sort = _middle\n"
        "# MLX 0.32: another library\n"
        "# torch 2.13: takes no int,\n"
        "# nor a float (pytorch#1)\n"
        "reshape = math.floor  # no deviation: just a word\n"
        'text = "# torch 2.13: not a comment"\n'
    )
    first, second, third = read_deviations(planted, "torch")
    assert (first.line, first.function, first.ops) == (1, "bodies", ())
    assert (second.version, second.where, second.text) == ("2.11", "CUDA", "sorts by bits")
    assert (second.line, second.function, second.ops) == (5, "_helper", ("sort",))
    assert (third.line, third.function, third.ops) == (12, "reshape", ("reshape",))
    assert third.text == "takes no int, nor a float (pytorch#1)"
    assert [entry.text for entry in read_deviations(planted, "mlx")] == ["another library"]
    assert read_deviations(planted, "numpy") == []


def test_deviations_of_a_backend_outside_the_package_are_found(tmp_path: Path) -> None:
    planted = tmp_path / "counting.py"
    planted.write_text("def add(x, y):\n    return x + y  # Counting 1.0: adds from the left\n")
    module = ModuleType("counting")
    module.__file__, module.name = str(planted), "counting"  # type: ignore[attr-defined]
    assert [(entry.ops, entry.version) for entry in deviations(module)] == [(("add",), "1.0")]


def test_demo_agrees_on_every_backend(command: Any, tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    shown = command("demo", "--json", "--samples", "150", "--epochs", "1", "--picture", str(picture))
    assert shown.code == 0
    computation, training = shown.json["computation"], shown.json["training"]
    assert [result["backend"] for result in computation] == list(INSTALLED)
    for result in computation:
        assert result["difference"] < 1e-4
        assert result["facts"]["period"] == 365.0
        assert abs(result["facts"]["trend"] - 4.0) < 0.05
        assert abs(result["facts"]["wave"] - 3.0) < 0.05
    epochs = len(INSTALLED)
    alone = [[name] * epochs for name in INSTALLED]
    switched = [list(INSTALLED)] if epochs > 1 else []
    assert [run["backends"] for run in training] == switched + alone
    for run in training:
        assert (len(run["loss"]), len(run["seconds"])) == (3 * epochs, epochs)
        assert run["loss"][-1] < run["loss"][0]
        assert run["loss"] == pytest.approx(training[0]["loss"], rel=1e-4)
    assert shown.json["difference"] < 1e-4
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert shown.json["picture"] == str(picture)


@pytest.mark.skipif(len(INSTALLED) < 2, reason="it compares two backends, and one is installed")
def test_demo_prints_tables(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    shown = command("demo", "--samples", "50", "--epochs", "1", "--picture", str(tmp_path / "curve.png"))
    assert shown.code == 0
    for words in ("all agree", "One training run", "losses of", "without Matplotlib: pip install 'ember-ml[plot]'"):
        assert words in shown.out
    assert not (tmp_path / "curve.png").exists()


def test_demo_with_one_backend_claims_no_agreement(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "_working_backends", lambda: ["numpy"])
    shown = command("demo", "--samples", "50", "--epochs", "1", "--picture", str(tmp_path / "curve.png"))
    assert shown.code == 0
    assert "nothing to compare with" in " ".join(shown.out.split())
    assert "all agree" not in shown.out
    assert "losses of" not in shown.out


@pytest.mark.skipif(len(INSTALLED) < 2, reason="it compares two backends, and one is installed")
def test_demo_fails_where_losses_differ(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ember_ml.demo import training

    monkeypatch.setattr(training, "difference", lambda runs: 2e-4)
    shown = command("demo", "--samples", "50", "--epochs", "1", "--picture", str(tmp_path / "curve.png"))
    assert shown.code == 1
    assert "the losses differ by 2.0e-04 of the loss" in shown.out


@pytest.mark.long
def test_bench_measures_every_group(command: Any) -> None:
    from ember_ml.bench.run import GROUPS

    shown = command("bench", "--json", "--size", "100", "--seconds", "0.001", "--no-keras")
    assert shown.code == 0
    assert {row["group"] for row in shown.json["results"]} == (
        set(GROUPS) if len(INSTALLED) > 1 else set(GROUPS) - {"switching", "conversions"}
    )
    assert all(row["seconds"] > 0 and row["ratio"] > 0 for row in shown.json["results"])
    assert shown.json["machine"]["numpy"]


def test_bench_says_where_there_is_nothing_to_measure(command: Any) -> None:
    shown = command("bench", "--group", "switching", "--backend", "numpy", "--seconds", "0.001")
    assert (shown.code, shown.out) == (0, "switching: nothing to measure with numpy alone\n")


def test_bench_prints_a_table(command: Any) -> None:
    shown = command("bench", "--group", "copies", "--backend", "numpy", "--size", "100", "--seconds", "0.001")
    assert shown.code == 0
    assert "copy the operands first" in shown.out
    assert "2-5x" in shown.out

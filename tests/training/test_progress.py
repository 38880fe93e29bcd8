"""What training shows: lines where there is no terminal, a bar on a terminal, one changing output in a notebook."""

from __future__ import annotations

import io
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ember_ml import nn, ops
from ember_ml.training import Trainer, callbacks
from ember_ml.training.history import History


def fit(epochs: int, **settings: Any) -> History:
    x = ops.ones((8, 2))
    return Trainer(nn.Linear(2, 1), **settings).fit(x, ops.sum(x, axis=1, keepdims=True), epochs=epochs, batch_size=4)


def test_a_pipe_gets_one_line_for_each_epoch(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    history = fit(3)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    assert [line.split("  ")[1] for line in lines] == [f"loss {loss:.4g}" for loss in history["loss"].epochs]
    assert ["left" in line for line in lines] == [True, True, False]


def test_a_run_that_goes_on_counts_from_its_start(capsys: pytest.CaptureFixture[str]) -> None:
    x = ops.ones((8, 2))
    trainer = Trainer(nn.Linear(2, 1))
    trainer.fit(x, x[:, :1], epochs=1)
    trainer.fit(x, x[:, :1], epochs=2)
    assert [line.split("  ")[0] for line in capsys.readouterr().err.splitlines()] == ["epoch 1/1", "epoch 2/2"]


def test_progress_can_be_switched_off(capsys: pytest.CaptureFixture[str]) -> None:
    fit(2, progress=False)
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar_and_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    fit(2, callbacks=[callbacks.Progress(refresh=0.0)], progress=False)
    written = terminal.getvalue()
    assert "\x1b[" in written  # the bar is drawn over
    assert "━" in written
    assert re.search(r"epoch 2/2  loss ", written)


def test_a_notebook_gets_one_output_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data))
    shell, displays = ModuleType("IPython"), ModuleType("IPython.display")
    vars(shell).update(get_ipython=lambda: SimpleNamespace(kernel=True))
    vars(displays).update(display=lambda data, raw, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    fit(2, callbacks=[callbacks.Progress(refresh=0.0)], progress=False)
    assert '<progress value="1" max="2"></progress> 1/2' in shown[0]["text/html"]
    assert "<progress" not in shown[-1]["text/html"]
    assert shown[-1]["text/plain"].startswith("epoch 1/2  loss ")
    assert shown[-1]["text/html"].count("epoch ") == 2


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "1 s"), (59.0, "59 s"), (185.4, "3:05"), (3723.0, "1:02:03")])
def test_times_are_readable(seconds: float, text: str) -> None:
    assert callbacks._describe_time(seconds) == text


def test_a_notebook_shows_a_history_as_a_table() -> None:
    history = fit(2, progress=False)
    table = history._repr_html_()
    assert table.count("<tr>") == 3
    assert "<th>loss</th>" in table
    assert f"<td>{history['loss'].epochs[1]:.6g}</td>" in table


def test_a_summary_shows_itself() -> None:
    summary = nn.Linear(2, 1).summary()
    assert repr(summary) == str(summary)
    assert summary.splitlines()[-1] == "3 parameters, 3 trainable, 12 bytes"

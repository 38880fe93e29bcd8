"""Pictures of training: which curves they show, where they mark a switch, and what is said without Matplotlib."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ember_ml.training.history import History
from ember_ml.training.plotting import figure_of

pytest.importorskip("matplotlib")


def history() -> History:
    made = History()
    for step, name in enumerate(["numpy"] * 3 + ["torch"] * 3 + ["numpy"] * 2):
        made.add_step(float(8 - step), 1, name)
    made.end_epoch({"val_loss": 2.0, "accuracy": 0.25}, 1.0)
    return made


def test_steps_are_drawn_by_backend_and_switches_marked() -> None:
    axes = figure_of(history()).axes
    curves = [line for line in axes[0].lines if len(line.get_xdata()) > 1 and line.get_linestyle() == "-"]
    marks = [line.get_xdata()[0] for line in axes[0].lines if line.get_linestyle() == "--"]
    assert [list(line.get_xdata()) for line in curves] == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7]]
    assert list(curves[1].get_ydata()) == [5.0, 4.0, 3.0, 2.0]
    assert curves[0].get_color() == curves[2].get_color() != curves[1].get_color()
    assert marks == [3, 6]
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["numpy", "torch"]


def test_losses_and_metrics_of_epochs_are_apart() -> None:
    shown = [[line.get_label() for line in axis.lines] for axis in figure_of(history()).axes[1:]]
    assert shown == [["loss", "val_loss"], ["accuracy"]]


def test_a_history_of_losses_alone_and_an_empty_one() -> None:
    made = History()
    assert len(figure_of(made).axes) == 1
    made.add_step(1.0, 1, "numpy")
    assert len(figure_of(made).axes) == 1


def test_the_file_is_an_image(tmp_path: Path) -> None:
    history().plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'ember-ml\[plot\]'"):
        history().plot(tmp_path / "curve.png")
    assert not list(tmp_path.iterdir())


def test_a_notebook_shows_the_figure(tmp_path: Path) -> None:
    assert history().plot()._repr_png_().startswith(b"\x89PNG")
    assert not list(tmp_path.iterdir())

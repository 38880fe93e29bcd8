"""The pictures of the gallery: for each example a function that runs a part of it and draws what it found.

Lines and letters are of middle grey on no ground, so that they can be read in light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ember_ml import datasets, nn, ops
from ember_ml.dispatch.watching import watch_ops
from ember_ml.training import DataLoader, Trainer, metrics

__all__ = ["PICTURES", "STYLE"]

_DOCUMENTATION = Path(__file__).parents[1] / "docs"
_GREY = "#8a8a8a"
STYLE: Any = {
    "svg.fonttype": "none",  # letters stay letters, in a font of the reader
    "svg.hashsalt": "ember",  # the same names in every run
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "image.cmap": "magma",
    "axes.prop_cycle": "cycler('color', ['#e8590c', '#1c7ed6', '#2f9e44', '#9c36b5'])",
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), _GREY
    ),
}


def _values(tensor: Any) -> Any:
    return ops.to_numpy(tensor)


def _draw_matrix(axis: Any, counts: Any, names: list[str]) -> None:
    """Draw a confusion matrix: a row for what it is, a column for what it was taken for."""
    axis.imshow(counts, cmap="Oranges")
    largest = max(max(row) for row in counts.tolist())
    for row, line in enumerate(counts.tolist()):
        for column, count in enumerate(line):
            if count:
                shade = "white" if count > largest / 2 else "#444444"
                axis.text(column, row, f"{count:.0f}", ha="center", va="center", color=shade, fontsize=8)
    places = range(len(names))
    axis.set(xlabel="taken for", ylabel="is", xticks=places, yticks=places, xticklabels=names, yticklabels=names)
    axis.spines[:].set_visible(False)


def _draw_training(axis: Any, trainer: Trainer) -> None:
    """Draw the loss of each step, and the accuracy on other samples after each epoch."""
    history = trainer.history
    axis.plot(history["loss"], linewidth=1, label="loss")
    steps = len(history["loss"]) // len(history["val_accuracy"])
    places = [steps * (epoch + 1) - 1 for epoch in range(len(history["val_accuracy"]))]
    axis.plot(places, history["val_accuracy"], marker="o", markersize=4, label="accuracy on other samples")
    axis.set(xlabel="step", ylim=(0, None))
    axis.legend()


def _draw_losses(axis: Any, **curves: list[float]) -> None:
    """Draw the losses of steps, each as a mean of those around it, on a faint line of their own."""
    for name, losses in curves.items():
        width = max(1, len(losses) // 40)
        means = [sum(losses[i : i + width]) / len(losses[i : i + width]) for i in range(len(losses))]
        (line,) = axis.plot(means, linewidth=1.5, label=name)
        axis.plot(losses, linewidth=0.5, alpha=0.4, color=line.get_color())
    axis.set(xlabel="step", ylabel="loss")
    if len(curves) > 1:
        axis.legend()


def draw_classifier(example: ModuleType, figure: Any) -> None:
    """Draw the training, and which digit is taken for which."""
    training, test = datasets.digits("training"), datasets.digits("test")
    trainer = example.train(training, test, epochs=8)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_training(left, trainer)
    matrix = metrics.ConfusionMatrix(10)
    matrix.update(test[1], trainer.predict(test[0]))
    _draw_matrix(right, _values(matrix.result()), list("0123456789"))


def draw_spectrogram(example: ModuleType, figure: Any) -> None:
    """Draw a sound of each kind as the network sees it, and which kind is taken for which."""
    training, test = example.make_sounds(800, seed=1), example.make_sounds(200, seed=2)
    trainer = example.train(training, test, epochs=8)
    axes = figure.subplot_mosaic("01m;23m", width_ratios=(1, 1, 1.6))
    power = ops.spectrogram(test[0][4:8], example.FRAME, example.HOP, ops.hann_window(example.FRAME))
    loudness = ops.log(ops.add(ops.matmul(power, trainer.model.filters), 1e-3))
    for number, kind in enumerate(example.KINDS):
        axis = axes[str(number)]
        seconds = example.LENGTH / example.RATE
        axis.imshow(_values(ops.transpose(loudness[number])), origin="lower", aspect="auto", extent=(0, seconds, 0, 32))
        axis.set(title=kind, xlabel="seconds" if number > 1 else "", ylabel="mel band" if number % 2 == 0 else "")
    matrix = metrics.ConfusionMatrix(len(example.KINDS))
    matrix.update(test[1], trainer.predict(test[0]))
    _draw_matrix(axes["m"], _values(matrix.result()), list(example.KINDS))


def draw_physics_informed(example: ModuleType, figure: Any) -> None:
    """Draw the network before and after training beside the solution, and the loss."""
    x, fine = ops.linspace(0.0, 1.0, 33), ops.linspace(0.0, 1.0, 101)
    start = example.make_network(16)
    network, losses = example.train(start, x, 400)
    left, right = figure.subplots(1, 2)
    places = _values(fine)
    left.plot(places, _values(ops.sin(ops.multiply(math.pi, fine))), linewidth=5, alpha=0.35, label="solution")
    left.plot(places, _values(example.solution(network, fine)), label="network")
    left.plot(places, _values(example.solution(start, fine)), linestyle=":", label="before training")
    left.set(xlabel="x", ylabel="u(x)")
    left.legend()
    right.semilogy(losses, linewidth=1)
    right.set(xlabel="step", ylabel="mean square by which the equation fails")


def draw_character_model(example: ModuleType, figure: Any) -> None:
    """Draw which characters two heads of the first layer look back to, after training."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(example.DOCUMENTATION.glob("*.md")))
    alphabet = example.Alphabet(text)
    trainer = example.train(alphabet.encode(text[:60000]), len(alphabet.characters), epochs=3)
    shown = "The tensor is a tensor"
    seen: list[Any] = []

    def keep(op: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if op.name == "dot_product_attention":
            seen.append(args[:2])
        return function(*args, **kwargs)

    with watch_ops(keep):
        trainer.model.eval()(ops.expand_dims(alphabet.encode(shown), 0))
    query, key = (ops.transpose(part[0], (1, 0, 2)) for part in seen[0])
    scores = ops.multiply(ops.matmul(query, ops.matrix_transpose(key)), query.shape[-1] ** -0.5)
    past = ops.tri(len(shown), dtype="bool")
    weights = _values(ops.softmax(ops.where(past, scores, -math.inf)))
    for head, axis in enumerate(figure.subplots(1, 2)):
        axis.imshow(weights[head], vmin=0.0)
        axis.set(title=f"head {head + 1}", xticks=range(len(shown)), yticks=range(len(shown)))
        axis.set_xticklabels(list(shown), fontsize=8)
        axis.set_yticklabels(list(shown), fontsize=8)
        axis.tick_params(length=0)


def draw_time_series(example: ModuleType, figure: Any) -> None:
    """Draw three forecasts of a day, each behind the week that it is made from."""
    weeks = 80
    series = example.make_series(weeks * example.WEEK)
    known = weeks * example.WEEK * 3 // 4
    trainer = example.train(series[:known], 12)
    past, truth = example.samples(series[known:])
    axes = figure.subplots(1, 3, sharey=True)
    for axis, sample in zip(axes, (0, 300, 600), strict=True):
        forecast = _values(trainer.predict(past[sample : sample + 1])[0])
        hours = range(example.DAY)
        axis.plot(range(-72, 0), _values(past[sample][-72:]), color=_GREY, linewidth=1, label="last three days")
        axis.plot(hours, _values(truth[sample]), label="the day that came")
        axis.plot(hours, forecast, linestyle="--", label="forecast")
        axis.set(xlabel="hours")
    axes[-1].legend(fontsize=8)


def draw_rosenbrock_newton(example: ModuleType, figure: Any) -> None:
    """Draw the path through the valley."""
    path = example.newton(example.rosenbrock, ops.array([-1.2, 1.0]), 40)
    axis = figure.subplots()
    xs, ys = ops.meshgrid(ops.linspace(-1.6, 1.4, 120), ops.linspace(-0.6, 1.8, 120))
    height = ops.add(
        ops.multiply(100.0, ops.square(ops.subtract(ys, ops.square(xs)))), ops.square(ops.subtract(1.0, xs))
    )
    axis.contour(
        _values(xs), _values(ys), _values(ops.log(ops.add(height, 0.05))), levels=14, colors=_GREY, linewidths=0.5
    )
    points = [_values(x).tolist() for _, _, x in path]
    axis.plot(*zip(*points, strict=True), marker="o", markersize=4, label=f"Newton's method, {len(path) - 1} steps")
    axis.plot(1, 1, marker="*", markersize=12, linestyle="none", label="minimum")
    axis.legend(loc="upper center")


def draw_gan(example: ModuleType, figure: Any) -> None:
    """Draw real points, and those of the generator before and after training."""
    real = _values(example.make_ring(300, seed=9))
    noise = ops.random_normal((300, example.NOISE), seed=7)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, steps in zip(axes, (20, 1500), strict=True):
        drawn = _values(example.train(steps).predict(noise))
        axis.scatter(real[:, 0], real[:, 1], s=5, color=_GREY, alpha=0.6, label="real")
        axis.scatter(drawn[:, 0], drawn[:, 1], s=5, label="drawn")
        axis.set(title=f"after {steps} steps", aspect="equal")
    axes[0].legend(loc="upper right")


def draw_bilevel(example: ModuleType, figure: Any) -> None:
    """Draw the error on other samples by the strength, and the way of the search."""
    training, validation = example.make_samples(12, seed=5), example.make_samples(200, seed=55)
    path = example.search(training, validation, -3.0, 8, 100)
    axis = figure.subplots()
    strengths = [place / 10 - 3.5 for place in range(50)]
    errors = [ops.item(example.error(example.exact(ops.array(s), training), validation)) for s in strengths]
    axis.plot(strengths, errors, color=_GREY, label="in closed form")
    axis.plot([row["strength"] for row in path], [row["error"] for row in path], marker="o", label="the search")
    axis.set(xlabel="strength of the penalty", ylabel="error on other samples")
    axis.legend()


def draw_contrastive(example: ModuleType, figure: Any) -> None:
    """Draw for how many test pictures the nearest neighbour shows the same digit, as the encoder learns."""
    ops.random.seed(0)
    known, test = datasets.digits("training"), datasets.digits("test")
    encoder = nn.Sequential(nn.Flatten(), nn.MLP(128, 32, 256, "relu"))
    trainer = example.Contrastive(encoder, "adam", progress=False)
    steps = range(0, 201, 25)
    shares = []
    for step in steps:
        if step:
            trainer.fit(example.split(known[0]), epochs=1000, max_steps=step)
        shares.append(example.find_neighbours(encoder, known, test))
    left, right = figure.subplots(1, 2)
    _draw_losses(left, loss=list(trainer.history["loss"]))
    right.plot(steps, shares, marker="o", markersize=4)
    right.set(xlabel="step", ylabel="nearest neighbour shows the same digit")


def draw_distillation(example: ModuleType, figure: Any) -> None:
    """Draw the accuracy on test pictures of a student with a teacher and of one without, as they learn."""
    training, test = datasets.digits("training"), datasets.digits("test")
    teacher = Trainer(example.make_model(256), "adam", "sparse_categorical_crossentropy", ["accuracy"], progress=False)
    teacher.fit(DataLoader(training, batch_size=64, shuffle=True), epochs=20)
    student = example.Distillation(example.make_model(16), teacher.model, progress=False)
    alone = Trainer(example.make_model(16), "adam", "sparse_categorical_crossentropy", ["accuracy"], progress=False)
    axis = figure.subplots()
    for name, trainer in (("with a teacher", student), ("alone", alone)):
        loader = DataLoader(training, batch_size=64, shuffle=True)
        history = trainer.fit(loader, epochs=25, validation=test)
        axis.plot(history["val_accuracy"], label=name)
    axis.axhline(teacher.evaluate(*test)["accuracy"], color=_GREY, linestyle=":", label="the teacher")
    axis.set(xlabel="epoch", ylabel="accuracy on test pictures")
    axis.legend()


def draw_nanogpt(example: ModuleType, figure: Any) -> None:
    """Draw the loss and the rate of each update."""
    text = "".join(page.read_text("utf-8") for page in sorted(_DOCUMENTATION.glob("*.md")))
    characters = sorted(set(text))
    numbers = ops.array([characters.index(c) for c in text[: 2000 * example.LENGTH + 1]])
    x, y = (ops.reshape(part, (-1, example.LENGTH)) for part in (numbers[:-1], numbers[1:]))
    ops.random.seed(0)
    trainer = example.make_trainer(len(characters), 200, progress=False)
    losses = trainer.fit(x, y, epochs=1000, batch_size=example.BATCH_SIZE, max_steps=200 * example.ACCUMULATE)["loss"]
    _draw_losses(figure.subplots(), loss=list(losses))


def draw_finetune(example: ModuleType, figure: Any) -> None:
    """Draw the loss of each step for adapters of three ranks."""
    from ember_ml import models

    tokens = example.read_tokens(_DOCUMENTATION, None)[:64001]
    curves = {}
    for rank in (1, 4, 16):
        ops.random.seed(0)
        model = models.add_lora(models.from_config(example.SMALL), rank=rank, alpha=2 * rank).train()
        curves[f"rank {rank}"] = example.train(model, *example.cut(tokens, 32), 200)
    _draw_losses(figure.subplots(), **curves)


PICTURES: dict[str, tuple[Callable[[ModuleType, Any], None], tuple[float, float], str]] = {
    "bilevel": (draw_bilevel, (6, 3.4), "The error by the strength of the penalty, and the way of the search"),
    "character_model": (draw_character_model, (9, 4.4), "What two heads of the first layer look back to"),
    "classifier": (draw_classifier, (9, 3.6), "The training, and which digit is taken for which"),
    "contrastive": (draw_contrastive, (8, 3.4), "The loss, and how often the nearest neighbour shows the same digit"),
    "distillation": (draw_distillation, (6, 3.4), "A student with a teacher, and one without"),
    "finetune": (draw_finetune, (6, 3.4), "The loss of adapters of three ranks"),
    "gan": (draw_gan, (7, 3.6), "Real points, and points that the generator draws"),
    "nanogpt": (draw_nanogpt, (6, 3.4), "The loss of each step"),
    "physics_informed": (draw_physics_informed, (8.5, 3.4), "The network beside the solution, and its loss"),
    "rosenbrock_newton": (draw_rosenbrock_newton, (6, 4), "The path through the valley"),
    "spectrogram": (draw_spectrogram, (9, 3.8), "A sound of each kind, and which kind is taken for which"),
    "time_series": (draw_time_series, (9, 3), "Forecasts of three days"),
}
"""For each example: what draws, the size in inches, and what is to be seen."""

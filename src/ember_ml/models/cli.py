"""The commands of ``ember-ml`` for models: generate, chat, convert, serve. What computes is imported when one runs."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ember_ml.backend import selection as backends
from ember_ml.core.dtypes import as_dtype
from ember_ml.errors import EmberError

if TYPE_CHECKING:
    from ember_ml.models.generation import TextGenerator
    from ember_ml.models.tokenizers import Tokenizer

__all__ = ["app"]

app: typer.Typer = typer.Typer()

Source = Annotated[
    str, typer.Argument(metavar="FOLDER", help="The folder of a model, or its id on the Hub.", show_default=False)
]
OnBackend = Annotated[str | None, typer.Option("--backend", help="What computes (default: that of this program).")]
InDType = Annotated[str | None, typer.Option("--dtype", help="The dtype of the weights (default: as they are stored).")]
ToBits = Annotated[str | None, typer.Option("--quantize", help="Round the weights to int4 or int8.")]
OnDevice = Annotated[str | None, typer.Option("--device", help="Where to compute, such as cuda.")]
MaxTokens = Annotated[int, typer.Option("--max-tokens", min=1, help="The most tokens of an answer.")]
Temperature = Annotated[float, typer.Option(min=0.0, help="0 takes the likeliest token; above it, tokens are drawn.")]
TopK = Annotated[int | None, typer.Option("--top-k", min=1, help="Draw from so many of the likeliest tokens.")]
TopP = Annotated[float | None, typer.Option("--top-p", help="Draw from the tokens that have this share together.")]
Seed = Annotated[int | None, typer.Option(help="Where the random numbers start: the same answer each time.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@dataclass(frozen=True)
class _Choices:
    """How the tokens of an answer are chosen."""

    most: int
    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int | None


@dataclass(frozen=True)
class _Answer:
    """A text that was written, and what it took."""

    text: str
    tokens: list[int]
    prompt_tokens: int
    ending: str
    """ "stop": by a token that ends texts; "length": at its greatest length; "interrupted": by Ctrl-C."""
    first_seconds: float
    """Until the first token, in which the prompt was read."""
    seconds: float
    tokens_per_second: float | None
    """Of the tokens after the first."""

    def describe(self) -> str:
        speed = "" if self.tokens_per_second is None else f", {self.tokens_per_second:.1f} tokens/s"
        how = {"stop": "", "length": ", stopped at --max-tokens", "interrupted": ", interrupted"}[self.ending]
        return f"{len(self.tokens)} tokens after {self.prompt_tokens} in {self.seconds:.2f} s{speed}{how}"


@app.command()
def generate(
    source: Source,
    prompt: Annotated[str, typer.Argument(help="The text to go on with.", show_default=False)],
    backend: OnBackend = None,
    max_tokens: MaxTokens = 128,
    temperature: Temperature = 0.0,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    dtype: InDType = None,
    quantize: ToBits = None,
    device: OnDevice = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a text; Ctrl-C ends it."""
    with _explained():
        model, tokenizer = _open(source, backend, dtype, quantize, device)
        tokens = tokenizer.encode(prompt)
        show = None if as_json else _print_piece
        answer = _write(model, tokenizer, tokens, _Choices(max_tokens, temperature, top_k, top_p, seed), show)
    if as_json:
        typer.echo(json.dumps({**asdict(answer), "backend": backends.get_backend()}, indent=2))
    else:
        typer.echo()
        typer.echo(answer.describe(), err=True)
    if answer.ending == "interrupted":
        raise typer.Exit(130)


@app.command()
def chat(
    source: Source,
    backend: OnBackend = None,
    max_tokens: MaxTokens = 1024,
    temperature: Temperature = 0.0,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    dtype: InDType = None,
    quantize: ToBits = None,
    device: OnDevice = None,
) -> None:
    """Talk with a model: a line is a message, Ctrl-C ends an answer, Ctrl-D the conversation."""
    choices = _Choices(max_tokens, temperature, top_k, top_p, seed)
    messages: list[dict[str, str]] = []
    with _explained():
        model, tokenizer = _open(source, backend, dtype, quantize, device)
        while (said := _ask()) is not None:
            messages.append({"role": "user", "content": said})
            tokens = tokenizer.encode_chat(messages)
            answer = _write(model, tokenizer, tokens, choices, _print_piece)
            messages.append({"role": "assistant", "content": answer.text})
            typer.echo()
            typer.echo(answer.describe(), err=True)


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="The folder of a model, or its id.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The folder to write.", show_default=False)],
    dtype: InDType = None,
    quantize: ToBits = None,
    backend: OnBackend = None,
) -> None:
    """Write a model to another folder, in another dtype if asked for: a folder that Transformers opens.

    With --quantize, one that mlx-lm opens.
    """
    with _explained():
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(f"{target} is there already; choose a folder that is empty or not there")
        model = _load(source, backend, dtype, quantize, None)
        start = time.perf_counter()
        with Console(stderr=True).status(f"Writing {target}"):
            model.save(target)
    size = sum(entry.stat().st_size for entry in target.iterdir())
    typer.echo(f"{target}: {model.num_parameters} parameters, {size} bytes, {time.perf_counter() - start:.2f} s")


@app.command()
def serve(
    source: Source,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0: any free port.")] = 8000,
    slots: Annotated[int, typer.Option(min=1, help="The most texts that are written at the same time.")] = 16,
    api_key: Annotated[
        str | None,
        typer.Option(envvar="EMBER_ML_API_KEY", help="The key that requests must bring.", show_default=False),
    ] = None,
    backend: OnBackend = None,
    dtype: InDType = None,
    quantize: ToBits = None,
    device: OnDevice = None,
) -> None:
    """Serve a model to the programs of this machine, by OpenAI's protocol; Ctrl-C stops the server."""
    with _explained():
        try:
            import uvicorn

            from ember_ml.models.serving.app import make_app
        except ModuleNotFoundError as error:
            raise ImportError(
                f"ember-ml serve needs the package {error.name}: pip install 'ember-ml[serve]'"
            ) from error
        model, tokenizer = _open(source, backend, dtype, quantize, device)
        name = os.path.basename(os.path.abspath(source)) if os.path.isdir(source) else source
        served = make_app(model, tokenizer, name, slots, api_key or None)
    # a stream that nobody waits for to the end must not hold up Ctrl-C
    uvicorn.run(served, host="127.0.0.1", port=port, log_level="info", timeout_graceful_shutdown=2)


def _open(
    source: str, backend: str | None, dtype: str | None, quantize: str | None, device: str | None
) -> tuple[TextGenerator, Tokenizer]:
    """Return a model that writes texts, and its tokenizer."""
    from ember_ml import models
    from ember_ml.errors import ConfigError
    from ember_ml.models.generation import TextGenerator

    tokenizer = models.tokenizer(source)  # first, since it is there at once
    model = _load(source, backend, dtype, quantize, device)
    if not isinstance(model, TextGenerator):
        raise ConfigError(f"{source} holds a {model.settings.get('model_type')} model, which writes no texts")
    return model, tokenizer


def _load(source: str, backend: str | None, dtype: str | None, quantize: str | None, device: str | None) -> Any:
    """Return a model, with a bar of the parameters that were read."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from ember_ml import models

    if backend is not None:
        backends.set_backend(backend)
    if dtype is not None:
        try:
            as_dtype(dtype)
        except TypeError as error:
            raise EmberError(str(error)) from error
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"Loading {source}", total=None)
        return models.load(
            source,
            dtype=dtype,
            device=device,
            quantize=quantize,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )


def _write(
    model: TextGenerator,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    choices: _Choices,
    show: Callable[[str], object] | None,
) -> _Answer:
    """Let a model go on with a prompt; ``show`` gets each piece of the text. Ctrl-C ends the answer after a token."""
    from ember_ml.models.generation import find_ends
    from ember_ml.models.text_streams import TextStream

    ends, stream = find_ends(model, None), TextStream(tokenizer)
    tokens: list[int] = []
    pieces: list[str] = []
    start = first = time.perf_counter()

    def add(piece: str) -> None:
        pieces.append(piece)
        if show is not None and piece:
            show(piece)

    with _interruptible() as is_interrupted:

        def take(new: list[int | None]) -> bool:
            nonlocal first
            (token,) = new
            assert token is not None
            first = time.perf_counter() if not tokens else first
            tokens.append(token)
            add("" if token in ends else stream.push(token))
            return is_interrupted()

        model.generate(
            [list(prompt)],
            choices.most,
            temperature=choices.temperature,
            top_k=choices.top_k,
            top_p=choices.top_p,
            seed=choices.seed,
            on_tokens=take,
        )
        was_interrupted = is_interrupted()
    add(stream.finish())
    end = time.perf_counter()
    is_ended = tokens[-1] in ends
    return _Answer(
        text="".join(pieces),
        tokens=tokens,
        prompt_tokens=len(prompt),
        ending="stop" if is_ended else "interrupted" if was_interrupted else "length",
        first_seconds=first - start,
        seconds=end - start,
        tokens_per_second=(len(tokens) - 1) / (end - first) if len(tokens) > 1 else None,
    )


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether Ctrl-C was pressed; pressed again, it raises as ever."""
    presses = 0

    def note(number: int, frame: Any) -> None:
        nonlocal presses
        presses += 1
        if presses > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: presses > 0
    finally:
        signal.signal(signal.SIGINT, before)


def _ask() -> str | None:
    """Return the next message, or None where there is none."""
    try:
        while not (said := input("> " if sys.stdin.isatty() else "").strip()):
            pass
    except (EOFError, KeyboardInterrupt):
        typer.echo()
        return None
    return said


def _print_piece(piece: str) -> None:
    sys.stdout.write(piece)
    sys.stdout.flush()


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what is wrong with a folder, an argument or the installation into an error that is said in a line."""
    try:
        yield
    except EmberError:
        raise
    except (ImportError, OSError, ValueError) as error:
        raise EmberError(str(error)) from error

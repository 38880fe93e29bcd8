"""The command ``ember-ml plan``: how a decoder would train on a cluster. What computes is imported when it runs."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from ember_ml.errors import ConfigError, EmberError

if TYPE_CHECKING:
    from ember_ml.distributed.planning import Estimate
    from ember_ml.models.settings import Settings

__all__ = ["app"]

app: typer.Typer = typer.Typer()
_UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_SHOWN = 12
_MOST_SETTINGS = 1 << 24


@app.command("plan")
def show_plan(
    model: Annotated[Path, typer.Argument(help="The folder of a model, or its config.json; weights are not read.")],
    gpus: Annotated[int, typer.Option("--gpus", min=1, help="Number of devices.")],
    network: Annotated[str, typer.Option(help="Bits per second of each device between hosts, such as 400G.")] = "400G",
    device: Annotated[str, typer.Option(help="a100, h100, h200 or b200.")] = "h100",
    per_host: Annotated[int, typer.Option("--per-host", min=1, help="Devices of a host.")] = 8,
    sequence: Annotated[int, typer.Option(min=1, help="Tokens of a sequence.")] = 8192,
    batch: Annotated[int | None, typer.Option(min=1, help="Sequences of a step (default: 4 per device).")] = None,
    keep: Annotated[
        str, typer.Option(help="Activations that are kept: all, products, or inputs of the blocks alone.")
    ] = "products",
    efficiency: Annotated[
        float, typer.Option(min=0.01, max=1.0, help="Share of its FLOP/s that one device reaches; measure it.")
    ] = 0.45,
    show_all: Annotated[bool, typer.Option("--all", help=f"Show all meshes that fit, not {_SHOWN}.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print memory, bytes moved, time and efficiency of a training step, for the meshes of devices that fit."""
    from ember_ml.distributed.planning import DEVICES, Cluster, Job, plan
    from ember_ml.models.sizes import read_sizes

    if device not in DEVICES:
        raise typer.BadParameter(f"there is no device {device!r}; choose from {', '.join(DEVICES)}")
    sizes = read_sizes(_read_settings(model))
    cluster = Cluster(DEVICES[device], gpus, _read_number(network) / 8, per_host, efficiency)
    job = Job(sequence, sequence * (batch or 4 * gpus), keep)
    found = plan(sizes, cluster, job)
    if not found:
        raise EmberError(
            f"no mesh of {gpus} x {device} holds {sizes.parameters / 1e9:.1f} billion parameters with sequences of "
            f"{sequence} and {job.batch_tokens // sequence} of them in a step; take more devices, another batch, or "
            "--keep inputs"
        )
    shown = found if show_all else found[:_SHOWN]
    if as_json:
        rows = [each.row() for each in shown]
        typer.echo(
            json.dumps({"parameters": sizes.parameters, "meshes_that_fit": len(found), "meshes": rows}, indent=2)
        )
        return
    flops = sizes.flops(sequence) * job.batch_tokens
    typer.echo(
        f"{sizes.parameters / 1e9:.2f} billion parameters; a step: {job.batch_tokens:,} tokens, {flops:.3g} FLOP"
    )
    Console(highlight=False).print(_table(shown))
    typer.echo(
        f"{len(found)} meshes fit; estimates by the arithmetic of docs/planning.md, at {efficiency} of the FLOP/s."
    )


def _table(found: list[Estimate]) -> Table:
    """Return a row for each mesh; kinds that divide nothing anywhere have no column."""
    kinds = [kind for kind in asdict(found[0].mesh) if any(getattr(each.mesh, kind) > 1 for each in found)]
    named = ["pipe-\nline" if kind == "pipeline" else kind for kind in kinds]
    heads = [*named, "micro\nbatch", "GiB\neach", "GB\nsent", "step\ns", "waits", "tokens/s\neach", "of\npeak"]
    table = Table(*(Column(head, justify="right") for head in heads), box=None, padding=(0, 1, 0, 0))
    for each in found:
        table.add_row(
            *(str(getattr(each.mesh, kind)) for kind in kinds),
            str(each.micro_batch),
            f"{each.memory / 2**30:.1f}",
            _short(sum(each.moved.values()) / 1e9),
            _short(each.step),
            f"{(each.exposed + each.bubble) / each.step:.0%}",
            f"{each.tokens_per_second:,.0f}",
            f"{each.utilization:.0%}",
        )
    return table


def _short(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _read_settings(path: Path) -> Settings:
    from ember_ml.models.settings import Settings, parse_json

    file = path / "config.json" if path.is_dir() else path
    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_SETTINGS + 1)
    except OSError as error:
        raise EmberError(f"{file} cannot be read: {error.strerror}") from error
    if len(text) > _MOST_SETTINGS:
        raise ConfigError(f"{file} has more than {_MOST_SETTINGS} bytes; it is no config.json")
    return Settings(parse_json(text, str(file)), str(file))


def _read_number(text: str) -> float:
    """Return a number with a unit: 400G is 4e11."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(?:bit/s|b/s|bps)?", text.strip())
    if found is None or float(found[1]) == 0:
        raise typer.BadParameter(f"{text!r} is no rate; write bits per second as in 400G")
    return float(found[1]) * _UNITS[found[2]]

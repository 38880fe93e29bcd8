"""The command ``ember-ml``: what is installed, which backend computes, what each can do, and what it costs."""

from __future__ import annotations

import inspect
import json
import os
import platform
import re
import shutil
import warnings
from dataclasses import asdict
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table
from typer.core import TyperGroup

from ember_ml.backend import selection as backends
from ember_ml.backend.built_in import BUILT_IN
from ember_ml.backend.devices import default_device
from ember_ml.core import dtypes as dt
from ember_ml.errors import BackendError, EmberError
from ember_ml.models.cli import app as models_app
from ember_ml.models.plan_command import app as plan_app

__all__ = ["app", "main"]


class _Commands(TyperGroup):
    """The commands, whose help names a type only where a value is to be written, and cuts no word."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the command itself."""
        return _leave_out_types(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the command itself."""
        _leave_out_boxes(self)
        super().format_help(ctx, formatter)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by its name."""
        command: Any = super().get_command(ctx, cmd_name)
        if command is not None:
            _leave_out_types(command.get_params(ctx))
            _leave_out_boxes(command)
        return command


def _leave_out_boxes(command: Any) -> None:
    """Write help as text, in whole sentences, where a table would cut the names of options."""
    if shutil.get_terminal_size().columns < _NARROW_HELP:
        command.rich_markup_mode = None
        command.short_help = inspect.cleandoc(command.help or "").partition("\n\n")[0]


def _leave_out_types(parameters: list[Any]) -> list[Any]:
    """Show no type of flags, for which Typer writes <bool>, and of what may be repeated that of one."""
    for parameter in parameters:
        if parameter.metavar is None and parameter.param_type_name == "option":
            if parameter.is_flag:
                parameter.metavar = ""
            elif parameter.multiple:
                parameter.metavar = "<str>..."
    return parameters


app: typer.Typer = typer.Typer(
    name="ember-ml",
    cls=_Commands,
    help="Run the same machine-learning code on NumPy, PyTorch, MLX or JAX.",
    epilog="Examples: ember-ml doctor; ember-ml ops conv; ember-ml launch -n 4 train.py; ember-ml chat FOLDER",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_NARROW_HELP = 80  # columns
_NARROW = 100  # columns; tables leave out what is least asked for below it
_PIPED_WIDTH = 160  # a pipe has no width, and a table folded to 80 columns is hard to search
_LIBRARIES = tuple(entry.distribution for entry in BUILT_IN.values())
_PACKAGES = ("ember-ml", *_LIBRARIES, "ml-dtypes", "scipy", "scikit-learn", "einops", "keras")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def main() -> None:
    """Run the command; what is wrong is said in one line on stderr, with exit code 2."""
    try:
        app()
    except EmberError as error:
        Console(stderr=True, soft_wrap=True).print(f"[bold red]Error:[/] {escape(str(error))}")
        raise SystemExit(2) from None


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"ember-ml {version('ember-ml')}")
        raise typer.Exit


@app.callback()
def _take_options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _PIPED_WIDTH)
    return console


def _show(thing: Any) -> None:
    console = _console()
    if isinstance(thing, Table) and _is_cut(thing, console):
        _show_rows(thing, console)
    else:
        console.print(thing, soft_wrap=isinstance(thing, str))


def _is_cut(table: Table, console: Console) -> bool:
    """Whether words of the table, or whole columns, would be lost in this console."""
    if table.__rich_measure__(console, console.options).minimum > console.width:
        return True
    return any("…" in segment.text for line in console.render_lines(table) for segment in line)


def _show_rows(table: Table, console: Console) -> None:
    """Print a table that would be cut row by row: the first cell, and below it the others with their headings."""
    if table.title:
        console.print(table.title)
    first, *others = table.columns
    for number, name in enumerate(first.cells):
        console.print(f"[bold]{name}[/]")
        cells = [(column.header, [*column.cells][number]) for column in others]
        console.print(Padding(", ".join(f"{heading}: {cell}" for heading, cell in cells if cell), (0, 0, 0, 2)))
    if table.caption:
        console.print(table.caption)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _choice(value: str, known: tuple[str, ...], what: str) -> str:
    if value not in known:
        raise typer.BadParameter(f"there is no {what} {value!r}; choose from {', '.join(known)}")
    return value


def _chosen_backends(names: list[str] | None) -> list[str]:
    """The backends that were asked for, or all that are installed."""
    for name in names or ():
        _choice(name, backends.backend_names(), "backend")
        backends.load(name)
    return list(dict.fromkeys(names)) if names else _working_backends()


def _working_backends() -> list[str]:
    return [name for name in backends.installed_backends() if "problem" not in _backend_facts(name)]


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Show versions, backends, devices, dtypes, and how the active backend was chosen; exit code 1 if one is broken."""
    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": {name: _version(name) for name in _PACKAGES},
        "active": _active_facts(),
        "backends": [_backend_facts(name) for name in backends.backend_names()],
    }
    if as_json:
        _print_json(facts)
    else:
        _print_doctor(facts)
    broken = [entry for entry in facts["backends"] if entry["installed"] and "problem" in entry]
    if broken or "problem" in facts["active"]:
        raise typer.Exit(1)


def _active_facts() -> dict[str, Any]:
    """Return the active backend and what chose it; a choice that could not be used is a problem."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            facts = {"backend": backends.get_backend(), "chosen_by": backends.chosen_by()}
        except EmberError as error:
            return {"problem": str(error)}
    return {**facts, "problem": str(warned[0].message)} if warned else facts


def _backend_facts(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": name, "installed": backends.is_installed(name)}
    try:
        module = backends.load(name)
    except BackendError as error:
        return {**facts, "problem": str(error)}
    facts["devices"] = list(module.available_devices())
    facts["default_device"] = default_device(module)
    facts["dtypes"] = sorted(dtype.name for dtype in module.dtypes)
    facts["missing_dtypes"] = sorted(dtype.name for dtype in dt.ALL if dtype not in module.dtypes)
    return {**facts, **{what.replace(" ", "_"): text for what, text in module.notes.items()}}


def _print_doctor(facts: dict[str, Any]) -> None:
    versions = ", ".join(f"{name} {found}" for name, found in facts["versions"].items() if found)
    _show(f"Python {facts['python']} on {facts['system']}; {versions}")
    active = facts["active"]
    if "backend" not in active:
        _show(f"[bold red]No backend is active:[/] {escape(active['problem'])}")
    else:
        if "problem" in active:
            _show(f"[bold red]A choice was passed over:[/] {escape(active['problem'])}")
        _show(f"Active backend: [bold]{active['backend']}[/], chosen by {escape(active['chosen_by'])}")
    table = Table("backend", "state", "devices (default first)", "dtypes it lacks", "notes")
    for entry in facts["backends"]:
        if "problem" in entry:
            state = "[red]broken[/]" if entry["installed"] else "not installed"
            table.add_row(entry["name"], state, "", "", escape(entry["problem"]))
            continue
        devices = sorted(entry["devices"], key=lambda device: device != entry["default_device"])
        notes = "; ".join(f"{what}: {escape(text)}" for what, text in backends.load(entry["name"]).notes.items())
        table.add_row(entry["name"], "[green]ready[/]", ", ".join(devices), ", ".join(entry["missing_dtypes"]), notes)
    _show(table)


@app.command()
def use(
    name: Annotated[str | None, typer.Argument(help="The backend that later programs start with.")] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Clear the saved default.")] = False,
) -> None:
    """Save the default backend of later programs, in ~/.ember/backend; without a name, show what is chosen now."""
    path = backends.backend_file()
    if clear and name is not None:
        raise typer.BadParameter("give either the name of a backend or --clear")
    if name is None and not clear:
        typer.echo(f"{backends.get_backend()}, chosen by {backends.chosen_by()}")
        return
    if clear:
        existed = path.exists()
        path.unlink(missing_ok=True)
        typer.echo(f"{path} removed" if existed else f"there was no {path}")
        return
    assert name is not None
    backends.set_backend(name, persist=True)
    typer.echo(f"{name} is now the backend of programs that choose none; written to {path}")
    if os.environ.get(backends.VARIABLE, name) != name:
        typer.echo(f"but {backends.VARIABLE}={os.environ[backends.VARIABLE]} is set here, and comes first", err=True)


@app.command()
def ops(
    name: Annotated[str | None, typer.Argument(help="Describe this op in full.")] = None,
    family: Annotated[str | None, typer.Option(help="Only this family of ops.")] = None,
    backend: Annotated[list[str] | None, typer.Option(help="Only these backends.")] = None,
    status: Annotated[str | None, typer.Option(help="Only ops that some backend computes this way.")] = None,
    gaps: Annotated[bool, typer.Option("--gaps", help="Only what a backend cannot do, with the reason.")] = False,
    deviations: Annotated[
        bool, typer.Option("--deviations", help="Where a library deviates from the contract, and in which version.")
    ] = False,
    by_use: Annotated[bool, typer.Option("--by-use", help="Those first that the package calls most.")] = False,
    source: Annotated[str | None, typer.Option(help="Only the Python code that runs for this op.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show every op and how each backend computes it: native, own body, derived, plain, or missing."""
    from ember_ml.dispatch import inventory as inv

    if name is not None:
        _describe_op(name, [backends.load(backend) for backend in _chosen_backends(backend)], as_json)
        return
    if source is not None:
        _show_source(source, _chosen_backends(backend), as_json)
        return
    if family is not None:
        _choice(family, inv.families(), "family")
    if status is not None:
        _choice(status, (inv.NATIVE, inv.OWN, inv.DERIVED, inv.PLAIN, inv.MISSING), "status")
    modules = [backends.load(name) for name in _chosen_backends(backend)]
    if gaps:
        _show_gaps(modules, as_json)
        return
    if deviations:
        _show_deviations(modules, as_json)
        return
    entries = [
        entry
        for entry in inv.inventory(modules)
        if family in (None, entry.family) and (status is None or status in entry.status.values())
    ]
    if by_use:
        entries.sort(key=lambda entry: -entry.uses)
    if as_json:
        _print_json([asdict(entry) for entry in entries])
    else:
        _print_inventory(entries, modules)


def _find_op(name: str) -> Any:
    """Return the declaration of an op by one of its names, such as "ops.random.normal"."""
    from ember_ml import ops
    from ember_ml.core.other_names import explain
    from ember_ml.dispatch.declare import OPS

    short = name.removeprefix("ops.").replace("random.", "random_").rpartition(".")[2]
    found = OPS.get(short) or OPS.get(getattr(getattr(ops, short, None), "__name__", ""))
    if found is None:
        near = get_close_matches(short, ops.__all__)
        hint = explain("ember_ml.ops", short) or (f"did you mean {' or '.join(near)}?" if near else "")
        raise typer.BadParameter(f"{name!r} is not an op; {hint or '`ember-ml ops` lists them'}")
    return found


def _describe_op(name: str, modules: list[Any], as_json: bool) -> None:
    from ember_ml.dispatch import describe
    from ember_ml.dispatch import inventory as inv

    op = _find_op(name)
    entry = next(entry for entry in inv.inventory(modules) if entry.op == op.name)
    text = inspect.getdoc(op.declaration) or ""
    if as_json:
        _print_json({**asdict(entry), "doc": text})
        return
    parts = [f"ops.{op.name}{describe.write_signature(op.signature)}", _clean_markup(text)]
    if not op.is_plain:
        parts.append(f"Dtypes: {describe.describe_dtypes(op)}\nGradient: {describe.describe_gradient(op)}")
        how = {"native": "the library's own function", "own": "a custom kernel", "derived": "composed of other ops"}
        parts.append("\n".join(f"{key}: {how.get(status, status)}" for key, status in entry.status.items()))
    if op.aliases:
        parts.append(f"Also: {', '.join(op.aliases)}")
    typer.echo("\n\n".join(parts))


def _clean_markup(text: str) -> str:
    return re.sub(r":\w+:(?=`)", "", text).replace("``", "`")


def _show_source(name: str, names: list[str], as_json: bool) -> None:
    from ember_ml.dispatch.codegen import source_of

    found = _find_op(name)
    if found.is_plain:
        raise typer.BadParameter(f"{name!r} computes no tensors and has no code of a backend")
    sources = {backend: source_of(found, backends.load(backend)) for backend in names}
    if as_json:
        _print_json([{"op": found.name, "backend": backend, "source": text} for backend, text in sources.items()])
        return
    for backend, text in sources.items():
        typer.echo(f"# <ember_ml {found.name} on {backend}>\n{text}")


def _show_gaps(modules: list[Any], as_json: bool) -> None:
    from ember_ml.dispatch import inventory as inv

    found = [gap for module in modules for gap in inv.gaps(module)]
    if as_json:
        _print_json([asdict(gap) for gap in found])
        return
    table = Table("backend", "op", "dtype", "why")
    for gap in found:
        table.add_row(gap.backend, gap.op, gap.dtype, escape(gap.reason))
    _show(table if found else "No backend lacks anything.")


def _show_deviations(modules: list[Any], as_json: bool) -> None:
    from ember_ml.dispatch.deviations import deviations

    found = [entry for module in modules for entry in deviations(module)]
    if as_json:
        _print_json([asdict(entry) for entry in found])
        return
    table = Table("library", "op or function", "file", "what it does")
    for entry in found:
        library = f"{entry.backend} {entry.version}" + (f", {entry.where}" if entry.where else "")
        names = ", ".join(entry.ops[:3]) + (", ..." if len(entry.ops) > 3 else "")
        table.add_row(library, names or entry.function, f"{entry.file}:{entry.line}", escape(entry.text))
    _show(table if found else "No deviation is noted.")


def _print_inventory(entries: list[Any], modules: list[Any]) -> None:
    if not entries:
        _show("No op is computed that way.")
        return
    is_narrow = _console().width < _NARROW
    details = () if is_narrow else ("family", "dtype rule", "uses")
    whole = Column("op", min_width=max(len(entry.op) for entry in entries))
    table = Table(whole, *details, *(module.name for module in modules))
    colours = {"native": "green", "own": "cyan", "derived": "blue", "plain": "white", "missing": "bold red"}
    for entry in entries:
        cells = []
        for module in modules:
            status = entry.status[module.name]
            mark = "*" if module.name in entry.corrected else ""
            cells.append(f"[{colours[status]}]{status}[/]{mark}")
        names = ", ".join((entry.op, *entry.aliases))
        table.add_row(names, *(() if is_narrow else (entry.family, entry.rule, str(entry.uses))), *cells)
    _show(table)
    counts = {module.name: [entry.status[module.name] for entry in entries] for module in modules}
    for name, found in counts.items():
        parts = ", ".join(f"{found.count(status)} {status}" for status in colours if status in found)
        _show(f"{name}: {len(found)} ops: {parts}")
    if any(entry.corrected for entry in entries):
        _show("* with a body of its own for some dtypes (see --json)")


@app.command()
def bench(
    group: Annotated[list[str] | None, typer.Option(help="Only these groups.")] = None,
    backend: Annotated[list[str] | None, typer.Option(help="Only these backends.")] = None,
    size: Annotated[int, typer.Option(min=100, help="Elements of the large tensors.")] = 1_000_000,
    small: Annotated[int, typer.Option(min=2, help="Elements of the tensors whose calls are timed.")] = 10,
    seconds: Annotated[float, typer.Option(min=0.001, help="Time spent on each comparison.")] = 0.3,
    keras: Annotated[bool, typer.Option(help="Measure Keras too, where it is installed.")] = True,
    as_json: AsJson = False,
) -> None:
    """Measure what calls, conversions, operators, loops and reading values cost on this machine."""
    from ember_ml.bench import run
    from ember_ml.bench.measurement import machine

    groups = [_choice(name, tuple(run.GROUPS), "group") for name in group or run.GROUPS]
    names = _chosen_backends(backend)
    found = list(run.measure(groups, names, size, small, seconds, keras))
    if as_json:
        _print_json({"machine": machine(), "size": size, "small": small, "results": [row.as_dict() for row in found]})
        return
    for name in groups:
        rows = [row for row in found if row.group == name]
        _show(run.table(name, rows) if rows else f"{name}: nothing to measure with {', '.join(names)} alone")


@app.command()
def demo(
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of training on each backend.")] = 3,
    samples: Annotated[int | None, typer.Option(min=1, help="Train on this many digits only.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the curve of training to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute on every installed backend, then train a classifier that changes backends on its way, and compare."""
    from ember_ml.demo import computation, training

    names = _working_backends()
    results = computation.run(names)
    with Console(stderr=True).status("") as status:
        runs = training.compare(names, epochs, samples, status.update)
    drawn = picture is not None and training.draw(runs[0], picture)
    apart = training.difference(runs)
    if as_json:
        _print_json(
            {
                "computation": [asdict(result) for result in results],
                "training": [run.as_dict() for run in runs],
                "difference": apart,
                "picture": str(picture) if drawn else None,
            }
        )
    else:
        _show(computation.table(results))
        _show(training.table(runs))
        if drawn:
            typer.echo(f"curve: {picture}")
        elif picture is not None:
            typer.echo("no curve is drawn without Matplotlib: pip install 'ember-ml[plot]'")
    if not computation.agree(results) or apart >= training.TOLERANCE:
        raise typer.Exit(1)


@app.command(context_settings={"allow_interspersed_args": False})
def launch(
    script: Annotated[str, typer.Argument(help="The Python script that every rank runs.", show_default=False)],
    arguments: Annotated[list[str] | None, typer.Argument(help="What the script is given.")] = None,
    ranks: Annotated[
        int | None, typer.Option("-n", "--ranks", min=1, help="Number of processes (default with --hosts: all slots).")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="The backend of every rank (default: that of this program).")
    ] = None,
    hosts: Annotated[Path | None, typer.Option(help="A file of hosts for ssh: lines of 'name slots=4'.")] = None,
    timeout: Annotated[
        float, typer.Option(min=1.0, help="Seconds after which a rank that died or hangs ends the job.")
    ] = 300.0,
    restarts: Annotated[int, typer.Option(min=0, help="How often to start all ranks again after a failure.")] = 0,
    log_dir: Annotated[Path | None, typer.Option(help="A folder for what each rank prints: rank-0.log, ...")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line instead of text.")] = False,
) -> None:
    """Run a script in several processes, here or on several hosts; the exit code is that of the first failure."""
    from ember_ml.distributed.launch import launch as run

    name = backend if backend is not None else backends.starting_backend()
    if not backends.is_installed(_choice(name, backends.backend_names(), "backend")):
        backends.load(name)  # says what to install
    raise typer.Exit(run(script, arguments or [], name, ranks, hosts, timeout, restarts, log_dir, as_json))


app.add_typer(models_app)
app.add_typer(plan_app)


if __name__ == "__main__":
    main()

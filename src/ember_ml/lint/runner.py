"""One run: find the files, ask the cache, check what is new, on one core or several, and repair on request."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

from ember_ml.lint import cache, sources
from ember_ml.lint.config import Config, for_file
from ember_ml.lint.finding import Finding
from ember_ml.lint.history import History, Note, Repetition, Walk
from ember_ml.lint.project import Project, Settings, unreadable

BATCH = 20_000_000  # bytes of source that are held in memory together: their syntax trees take a hundred times that


@dataclass
class Input:
    """One file as it was read."""

    path: str
    name: str
    data: bytes
    settings: Settings
    config: Config

    @property
    def is_notebook(self) -> bool:
        """Whether the file is a notebook."""
        return self.path.endswith(".ipynb")

    def text(self) -> str:
        """Return the Python text.

        Raises:
            sources.Undecodable: with the reason.
        """
        return sources.notebook_text(self.data) if self.is_notebook else sources.decode(self.data)


@dataclass
class Result:
    """The findings of a run."""

    findings: list[Finding] = field(default_factory=list)
    files: list[Input] = field(default_factory=list)
    from_cache: int = 0


def read_inputs(paths: list[str], adjust: Callable[[Config], Config]) -> list[Input]:
    """Read the files below the paths, each with its settings; ``adjust`` applies the command line to a configuration.

    Raises:
        FileNotFoundError: for a path that does not exist.
        ConfigError: for a wrong configuration.
    """
    inputs: list[Input] = []
    seen: set[str] = set()
    adjusted: dict[int, Config] = {}
    for path in sources.find(paths):
        path = os.path.normpath(path)
        if path in seen:
            continue
        seen.add(path)
        found = for_file(path)
        config = adjusted.get(id(found))
        if config is None:
            config = adjusted[id(found)] = adjust(found)
        if config.excluded(path):
            continue
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except OSError as error:
            raise FileNotFoundError(f"{path}: {error.strerror}") from error
        inputs.append(Input(path, sources.module_name(path), data, config.settings(path), config))
    return inputs


def read_stdin(adjust: Callable[[Config], Config]) -> Input:
    """Read a Python program from the standard input, with the settings of the current folder."""
    config = adjust(for_file("stdin.py"))
    return Input("<stdin>", "stdin", sys.stdin.buffer.read(), config.settings("stdin.py"), config)


def check(inputs: list[Input], *, jobs: int = 1, use_cache: bool = True) -> Result:
    """Check files together.

    The garbage collector rests meanwhile: syntax trees are all alive until the end, and looking for cycles among them
    took a third of the time.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _check(inputs, jobs, use_cache)
    finally:
        if collecting:
            gc.enable()


def _check(inputs: list[Input], jobs: int, use_cache: bool) -> Result:
    result = Result(files=inputs)
    if not inputs:
        return result
    store = _cache_for(inputs) if use_cache else None
    hashes = {item.path: cache.digest(item.data) for item in inputs} if store is not None else {}
    known = store.load() if store is not None else {}
    fresh = {item.path for item in inputs if known.get(item.path, [None])[0] != hashes.get(item.path, "")}
    if store is not None and not fresh:
        result.findings = [cache.unpack_finding(item.path, row) for item in inputs for row in known[item.path][1]]
        result.from_cache = len(inputs)
        return result
    histories = store.load_histories() if store is not None and len(fresh) < len(inputs) else []
    found: dict[str, list[Finding]] = {}
    kept: list[History] = []
    for number, batch in enumerate(_batches(inputs)):
        old = histories[number] if number < len(histories) else History()
        new_found, history = _check_batch(batch, fresh, known, old, jobs)
        found.update(new_found)
        kept.append(history)
        if len(inputs) > len(batch):
            gc.collect()  # values and syntax nodes refer to each other
    for item in inputs:
        result.findings.extend(found[item.path])
    if store is not None:
        store.save(
            {item.path: [hashes[item.path], [cache.pack_finding(f) for f in found[item.path]]] for item in inputs},
            kept,
        )
    return result


def _batches(inputs: list[Input]) -> list[list[Input]]:
    """Return the files in the order of their paths, cut where memory asks for it; facts do not cross a cut."""
    batches: list[list[Input]] = [[]]
    size = 0
    for item in sorted(inputs, key=lambda item: item.path):
        if size + len(item.data) > BATCH and batches[-1]:
            batches.append([])
            size = 0
        batches[-1].append(item)
        size += len(item.data)
    return batches


def _check_batch(
    batch: list[Input], fresh: set[str], known: dict[str, list], old: History, jobs: int
) -> tuple[dict[str, list[Finding]], History]:
    """Check files, on several cores where there are many to walk, and only what has changed where little has."""
    by_path = {item.path: item for item in batch}
    asleep = {path: note for path, note in old.notes.items() if path not in fresh}
    if old.notes.keys() != by_path.keys() or 2 * len(asleep) < len(batch):
        old, asleep = History(), {}
        if jobs > 1 and len(batch) > 8:
            from ember_ml.lint.parallel import check_parallel

            return check_parallel(batch, jobs)
    walk = Walk()
    problems: dict[str, list[Finding]] = {}

    def add_paths(paths: list[str]) -> None:
        for path in paths:
            add(walk.project, by_path[path], problems)

    add_paths([path for path in by_path if path not in asleep])
    repetition = Repetition(walk, old, asleep, add_paths)
    history = repetition.run()
    found = collect(walk.project, [item for path, item in by_path.items() if path not in asleep], problems)
    for path in asleep:
        found[path] = [cache.unpack_finding(path, row) for row in known[path][1]]
    return found, History(history.rounds, {path: history.notes.get(path, Note()) for path in by_path})


def add(project: Project, item: Input, problems: dict[str, list[Finding]]) -> None:
    """Give a file to a project; one that cannot be decoded becomes a finding."""
    try:
        text = item.text()
    except sources.Undecodable as error:
        problems[item.path] = [unreadable(item.path, 1, 1, str(error))]
        return
    project.add(item.path, item.name, text, item.settings)


def collect(project: Project, items: list[Input], problems: dict[str, list[Finding]]) -> dict[str, list[Finding]]:
    """Return the findings of walked files."""
    return {item.path: problems[item.path] if item.path in problems else _finish(project, item) for item in items}


def _finish(project: Project, item: Input) -> list[Finding]:
    """Return the findings of one file, in the places of its notebook cells where it is one."""
    findings = project.findings(item.path)
    if not item.is_notebook or project.files[item.path].flow is None:
        return findings
    text = project.files[item.path].flow.module.source
    placed = []
    for finding in findings:
        cell, line = sources.cell_of(text, finding.line)
        placed.append(replace(finding, line=line, end_line=line + finding.end_line - finding.line, cell=cell))
    return placed


def _cache_for(inputs: list[Input]) -> cache.Cache:
    config = inputs[0].config
    folder = os.path.join(config.root or os.getcwd(), config.cache_dir)
    described = [cache.own_version()]
    numbers: dict[int, int] = {}
    for item in inputs:
        settings = item.settings
        number = numbers.get(id(settings))
        if number is None:
            number = numbers[id(settings)] = len(numbers)
            described.append(f"{number}: {_stable(settings)}")
        described.append(f"{item.path}|{item.name}|{number}")
    return cache.Cache(folder, cache.digest("\n".join(described).encode()))


def _stable(settings: Settings) -> str:
    """Return the settings in words that are the same in every process."""
    profile = settings.profile
    parts = [
        f"{f.name}={sorted(v) if isinstance(v := getattr(profile, f.name), frozenset) else v}"
        for f in fields(profile)
        if not f.name.startswith("_")
    ]
    return f"{parts} {sorted(settings.codes)} {settings.strict} {sorted(settings.allowed)}"

"""A set of files that are checked together: parse, walk, exchange facts, walk again what they change, collect."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from ember_ml.lint import rules, suppressions
from ember_ml.lint.facts import News, exchange
from ember_ml.lint.finding import Finding
from ember_ml.lint.fix import FixContext
from ember_ml.lint.flow import Flow
from ember_ml.lint.module import Module
from ember_ml.lint.profiles import EMBER, Profile
from ember_ml.lint.unit import Unit
from ember_ml.lint.values import SEQUENCE, form_of

_PASSES = 5  # over one file in one round
_DEEP = 20_000  # recursion limit while walking; Python-to-Python calls do not use the C stack
_DEEP_PARSE = 5_000  # the parser does use the C stack
_LIMIT_LOCK = RLock()
_TABLES: dict[frozenset[str], dict] = {}


@contextmanager
def _recursion_limit(least: int) -> Iterator[None]:
    """Let calls nest at least that deep. The limit is the whole process's, so one thread at a time changes it."""
    with _LIMIT_LOCK:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, least))
        try:
            yield
        finally:
            sys.setrecursionlimit(limit)


@dataclass(frozen=True)
class Settings:
    """The settings of one file.

    Args:
        profile: The conventions of the library that the file belongs to.
        codes: The codes of the rules that are checked.
        strict: Whether values that may be tensors are reported too.
        allowed: The libraries that the file may use.
    """

    profile: Profile = EMBER
    codes: frozenset[str] = rules.DEFAULT
    strict: bool = False
    allowed: frozenset[str] = frozenset()


@dataclass
class File:
    """One file of the project."""

    path: str
    flow: Any = None  # the walker; None if the file cannot be parsed
    settings: Settings = field(default_factory=Settings)
    interesting: bool = False
    imports: list[str] = field(default_factory=list)  # of modules and of names in them
    goes_on: bool = True  # there is something to walk without news of other files
    problem: Finding | None = None


def unreadable(path: str, line: int, column: int, message: str) -> Finding:
    """Return the finding for a file that cannot be checked."""
    return Finding(path, line, column, line, column, "EMB900", message)


class Project:
    """Files that are checked together."""

    def __init__(self) -> None:
        self.shared: dict[str, Any] = {}  # what all files had found by the end of the last round
        self.files: dict[str, File] = {}

    def add(self, path: str, name: str, source: str, settings: Settings) -> File:
        """Parse a file; a file that cannot be parsed keeps the reason as its only finding."""
        file = File(path, settings=settings)
        self.files[path] = file
        tree, file.problem = parse(path, source)
        if tree is None:
            return file
        module = Module(path, name, source, tree, settings.profile, strict=settings.strict, allowed=settings.allowed)
        table = _TABLES.get(settings.codes)
        if table is None:
            table = _TABLES[settings.codes] = rules.by_node(settings.codes)
        file.flow = Flow(module, self.shared, table)
        file.interesting = settings.strict or _interest(settings.profile).search(source) is not None
        return file

    def run(self) -> None:
        """Walk everything, round after round, until nothing changes any more."""
        exchange(self.step)

    def step(self, changed: dict[str, Any]) -> tuple[News, bool]:
        """Walk one round; return the news of each file, and whether no file would go on without news of others.

        The first round walks the top level of every file, the next ones what is new or has read one of the facts that
        the round before ``changed``. Within a round files see nothing of each other.
        """
        self.shared.update(changed)
        return self.advance(list(self.files.values()), changed)

    def advance(self, files: list[File], changed: dict[str, Any]) -> tuple[News, bool]:
        """Walk one round of some files."""
        news: News = {}
        with _recursion_limit(_DEEP):
            for file in files:
                try:
                    if file.flow is not None:
                        self._advance(file, changed)
                        if found := file.flow.facts.take_news():
                            news[file.path] = found
                except RecursionError:
                    file.flow = None
                    file.problem = unreadable(file.path, 1, 1, "nested too deeply to be checked")
        return news, not any(file.goes_on for file in files if file.flow is not None)

    def _advance(self, file: File, changed: dict[str, Any]) -> None:
        flow = file.flow
        if not flow.units[0].walked:
            flow.walk_top()
            file.imports = _imported_names(flow)
            self._note_interest(file)
            return
        if not file.goes_on and changed.keys().isdisjoint(flow.seen):
            return
        self._note_interest(file)
        for _ in range(_PASSES):
            file.goes_on = self._walk_changed(file)
            if not file.goes_on:
                break

    def _note_interest(self, file: File) -> None:
        """Say that a file can hold tensors, as it does where it imports from a file that can."""
        flow = file.flow
        reads = flow.facts.begin()
        if not file.interesting:
            file.interesting = any(flow.facts.read("mod:" + name) for name in file.imports)
            flow.seen.update(reads)
        if file.interesting:
            flow.facts.put("mod:" + flow.module.name, True)

    def _walk_changed(self, file: File) -> bool:
        """Walk what has not been walked or has read a fact that has changed since; return whether there was any."""
        flow = file.flow
        facts = flow.facts
        again = False
        if facts.changed_since(flow.units[0].reads):
            flow.walk_top()
            again = True
        index = 1
        while index < len(flow.units):
            unit = flow.units[index]
            if facts.changed_since(unit.reads) if unit.walked else file.interesting or _is_given_tensors(unit, flow):
                flow.walk(unit)
                again = True
            index += 1
        return again

    # --- results

    def findings(self, path: str) -> list[Finding]:
        """Return the findings of one file, suppressions applied."""
        file = self.files[path]
        if file.flow is None:
            return [file.problem] if file.problem is not None else []
        flow = file.flow
        context = FixContext(flow)
        found: list[Finding] = []
        for unit in flow.units:
            flow.unit = unit
            for rule, node, details in unit.reports.values():
                found.append(_finding(rule, node, details, context))
        module = flow.module
        known = frozenset(rules.ALL)
        comments, wrong = suppressions.read(module.source, known)
        found = suppressions.apply(found, comments)
        codes = file.settings.codes
        if "EMB902" in codes:
            found.extend(
                Finding(path, line, column, line, column, "EMB902", message) for line, column, message in wrong
            )
        if "EMB901" in codes:
            for comment in comments:
                for code in comment.codes:
                    if code not in comment.used and code in codes:
                        message = rules.ALL["EMB901"].message.format(code)
                        found.append(
                            Finding(path, comment.line, comment.column, comment.line, comment.column, "EMB901", message)
                        )
        return sorted(found, key=Finding.sort_key)


def _finding(rule: Any, node: Any, details: tuple[str, ...], context: FixContext) -> Finding:
    module = context.module
    if isinstance(
        node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.If, ast.While, ast.With, ast.Match)
    ):
        end_line, end_column = node.lineno, node.col_offset + 1
    else:
        end_line, end_column = node.end_lineno, node.end_col_offset
    try:
        fix = rule.fix(node, context)
    except (AttributeError, IndexError, ValueError, RecursionError):
        fix = None  # a repair that cannot be written must not hide the finding
    return Finding(
        module.path,
        node.lineno,
        module.column(node.lineno, node.col_offset) + 1,
        end_line,
        module.column(end_line, end_column) + 1,
        rule.code,
        rule.message.format(*details),
        fix,
    )


def parse(path: str, source: str) -> tuple[ast.Module | None, Finding | None]:
    """Return the syntax tree, or the finding that says why there is none."""
    if "\0" in source:
        line = source.count("\n", 0, source.index("\0")) + 1
        return None, unreadable(path, line, 1, "the file contains a null byte")
    try:
        with _LIMIT_LOCK:  # CPython 3.11: two threads at a time that parse deep trees raise SystemError
            try:
                return ast.parse(source, path), None
            except RecursionError:  # a sum of thousands of terms is a deep tree
                with _recursion_limit(_DEEP_PARSE):
                    return ast.parse(source, path), None
    except SyntaxError as error:
        return None, unreadable(path, error.lineno or 1, max(error.offset or 1, 1), f"cannot be parsed: {error.msg}")
    except (RecursionError, MemoryError):
        return None, unreadable(path, 1, 1, "nested too deeply to be parsed")
    except ValueError as error:
        return None, unreadable(path, 1, 1, f"cannot be parsed: {error}")


_INTEREST: dict[str, re.Pattern[str]] = {}


def _interest(profile: Profile) -> re.Pattern[str]:
    """Return the words without which a file can hold no tensor of its own."""
    pattern = _INTEREST.get(profile.name)
    if pattern is None:
        words = {
            "numpy",
            "torch",
            "mlx",
            "jax",
            "tensorflow",
            "cupy",
            "np",
            "mx",
            "jnp",
            "tf",
            "Tensor",
            "TensorLike",
            "tolist",
            "emberharmony",
            "get_backend",
        }
        words |= (
            {space.split(".")[0].lstrip("@") for space in profile.namespaces}
            | {profile.prefix}
            | set(profile.namespace_parameters)
        )
        words |= set(profile.tensor_parameters) | {name.rsplit(".", 1)[-1] for name in profile.tensor_types}
        words |= {"unsqueeze", "detach", "item", "backend"}
        pattern = _INTEREST[profile.name] = re.compile(
            r"\b(?:" + "|".join(sorted(re.escape(w) for w in words if w)) + r")\b"
        )
    return pattern


def _imported_names(flow: Flow) -> list[str]:
    """Return the dotted names that a file has at its top, and the modules that they may be of."""
    found: dict[str, None] = {}
    for value in flow.top.values():
        if form_of(value) == "ref" and "." in value.detail[1]:
            found |= dict.fromkeys((value.detail[1], value.detail[1].rpartition(".")[0]))
    return list(found)


def _is_given_tensors(unit: Unit, flow: Flow) -> bool:
    """Return whether a function of a file without tensors of its own is called with some."""
    node = unit.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    flow.facts.begin()
    args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    keys = [key for index, arg in enumerate(args) for key in (f"par:{unit.name}:{index}", f"par:{unit.name}:{arg.arg}")]
    values = [flow.facts.read(key) for key in keys]
    flow.seen.update(keys)
    return any(value is not None and value.kind >= SEQUENCE for value in values)


def lint_source(
    source: str, path: str = "<text>", settings: Settings | None = None, name: str = "snippet"
) -> list[Finding]:
    """Return the findings in one piece of source text.

    >>> [f.code for f in lint_source("import numpy as np\\ny = np.mean([1.0])")]
    ['EMB101', 'EMB201']
    """
    project = Project()
    project.add(path, name, source, settings or Settings())
    project.run()
    return project.findings(path)

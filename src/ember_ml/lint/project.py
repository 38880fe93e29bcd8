"""A set of files that are checked together: parse, walk, exchange facts, walk again what they change, collect."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ember_ml.lint import rules, suppressions
from ember_ml.lint.facts import Facts
from ember_ml.lint.finding import Finding
from ember_ml.lint.fix import FixContext
from ember_ml.lint.flow import Flow
from ember_ml.lint.module import Module
from ember_ml.lint.profiles import EMBER, Profile
from ember_ml.lint.unit import Unit

ROUNDS = 5
_DEEP = 20_000  # recursion limit while walking; Python-to-Python calls do not use the C stack
_DEEP_PARSE = 5_000  # the parser does use the C stack
_TABLES: dict[frozenset[str], dict] = {}


@dataclass(frozen=True)
class Settings:
    """The settings of one file."""

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
    problem: Finding | None = None


def unreadable(path: str, line: int, column: int, message: str) -> Finding:
    """Return the finding for a file that cannot be checked."""
    return Finding(path, line, column, line, column, "EMB900", message)


class Project:
    """Files that are checked together."""

    def __init__(self) -> None:
        self.facts = Facts()
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
        file.flow = Flow(module, self.facts, table)
        file.interesting = settings.strict or _interest(settings.profile).search(source) is not None
        self._note_interest(file)
        return file

    def run(self) -> None:
        """Walk everything until nothing changes any more, five rounds at most."""
        self.start()
        for _ in range(ROUNDS):
            if not self.step():
                break

    def start(self) -> None:
        """Walk the top level of every file, then the functions of the files that can hold tensors."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEEP))
        try:
            for file in self.files.values():
                self._walk_guarded(file, self._walk_top)
            self._spread_interest()
            for file in self.files.values():
                if file.interesting:
                    self._walk_guarded(file, self._walk_all)
        finally:
            sys.setrecursionlimit(limit)

    def _spread_interest(self) -> None:
        """Mark files that import from a file that can hold tensors as such files too."""
        sleeping = [file for file in self.files.values() if file.flow is not None and not file.interesting]
        changed = True
        while changed and sleeping:
            changed = False
            for file in list(sleeping):
                if self._imports_tensors(file.flow):
                    file.interesting = changed = True
                    self._note_interest(file)
                    sleeping.remove(file)

    def _imports_tensors(self, flow: Flow) -> bool:
        found = False
        for value in flow.top.values():
            detail = value.detail
            if type(detail) is tuple and detail[0] == "ref" and "." in detail[1]:
                for name in (detail[1], detail[1].rpartition(".")[0]):
                    known = self.facts.table.get("mod:" + name)
                    if known is not None:
                        flow.units[0].reads["mod:" + name] = known
                        found = found or known is True
        return found

    def _note_interest(self, file: File) -> None:
        self.facts.produced = file.flow.produced
        self.facts.put("mod:" + file.flow.module.name, file.interesting)

    def step(self) -> bool:
        """Walk again the units that read a fact that has changed since; return whether there were any."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _DEEP))
        before = len(self.facts.table)
        self._spread_interest()
        try:
            again = [
                self._walk_guarded(file, self._walk_changed) for file in self.files.values() if file.flow is not None
            ]
        finally:
            sys.setrecursionlimit(limit)
        return any(again) or len(self.facts.table) != before

    def _walk_guarded(self, file: File, action: Callable[[File], Any]) -> bool:
        if file.flow is None:
            return False
        try:
            return bool(action(file))
        except RecursionError:
            file.flow = None
            file.problem = unreadable(file.path, 1, 1, "nested too deeply to be checked")
            return False

    def _walk_top(self, file: File) -> None:
        file.flow.walk_top()

    def _walk_all(self, file: File) -> None:
        flow = file.flow
        index = 1
        while index < len(flow.units):
            flow.walk(flow.units[index])
            index += 1

    def _walk_changed(self, file: File) -> bool:
        flow, facts = file.flow, self.facts
        changed = False
        if facts.changed_since(flow.units[0].reads):
            flow.walk_top()
            changed = True
        index = 1
        while index < len(flow.units):
            unit = flow.units[index]
            if unit.walked:
                if facts.changed_since(unit.reads):
                    flow.walk(unit)
                    changed = True
            elif file.interesting or _called_with_tensors(unit, facts):
                flow.walk(unit)
                changed = True
            index += 1
        return changed

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
    limit = sys.getrecursionlimit()
    try:
        try:
            return ast.parse(source, path), None
        except RecursionError:  # a sum of thousands of terms is a deep tree
            sys.setrecursionlimit(max(limit, _DEEP_PARSE))
            return ast.parse(source, path), None
    except SyntaxError as error:
        return None, unreadable(path, error.lineno or 1, max(error.offset or 1, 1), f"cannot be parsed: {error.msg}")
    except (RecursionError, MemoryError):
        return None, unreadable(path, 1, 1, "nested too deeply to be parsed")
    except ValueError as error:
        return None, unreadable(path, 1, 1, f"cannot be parsed: {error}")
    finally:
        sys.setrecursionlimit(limit)


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


def _called_with_tensors(unit: Unit, facts: Facts) -> bool:
    node = unit.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    for index, arg in enumerate(args):
        for key in (f"par:{unit.name}:{index}", f"par:{unit.name}:{arg.arg}"):
            value = facts.table.get(key)
            if value is not None and value.kind >= 2:
                return True
    return False


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

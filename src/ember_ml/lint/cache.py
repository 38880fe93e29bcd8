"""Cache findings and facts by content hash, to skip unchanged files."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from ember_ml.lint.finding import Finding
from ember_ml.lint.fix import Edit, Fix
from ember_ml.lint.history import History, Note
from ember_ml.lint.values import Value


def digest(data: bytes) -> str:
    """Return the hash of a file's content."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def own_version() -> str:
    """Return the hash of the linter itself: another linter, another cache."""
    total = hashlib.blake2b(digest_size=12)
    here = Path(__file__).parent
    for path in sorted(here.rglob("*.py")):
        total.update(path.read_bytes())
    return total.hexdigest()


class Cache:
    """One run's cache: a file of findings, and a larger one of facts, which only changed trees need."""

    def __init__(self, folder: str, key: str) -> None:
        self.folder = folder
        self.key = key
        self._path = os.path.join(folder, f"{key}.findings.json")
        self._facts_path = os.path.join(folder, f"{key}.facts.json")

    def load(self) -> dict[str, list]:
        """Return ``{path: [hash, findings]}`` of the last run with this key, or nothing."""
        return self._read(self._path)

    def load_histories(self) -> list[History]:
        """Return what the last run with this key did, batch by batch, or nothing."""
        try:
            return [
                History(
                    [_unpack_facts(facts) for facts in rounds],
                    {
                        path: Note(reads, [_unpack_facts(facts) for facts in news])
                        for path, (reads, news) in notes.items()
                    },
                )
                for rounds, notes in self._read(self._facts_path)["batches"]
            ]
        except (KeyError, TypeError, ValueError, AttributeError):
            return []

    def _read(self, path: str) -> dict[str, list]:
        try:
            with open(path, encoding="utf-8") as stream:
                data = json.load(stream)
        except (OSError, ValueError):
            return {}
        return data if isinstance(data, dict) else {}

    def save(self, findings: dict[str, list], histories: list[History]) -> None:
        """Write both files; a folder that cannot be written is not an error."""
        facts = {
            "batches": [
                [
                    [_pack_facts(facts) for facts in history.rounds],
                    {
                        path: [note.reads, [_pack_facts(facts) for facts in note.news]]
                        for path, note in history.notes.items()
                    },
                ]
                for history in histories
            ]
        }
        try:
            os.makedirs(self.folder, exist_ok=True)
            ignore = os.path.join(self.folder, ".gitignore")
            if not os.path.exists(ignore):
                Path(ignore).write_text("*\n")
            for path, content in ((self._path, findings), (self._facts_path, facts)):
                temporary = f"{path}.{os.getpid()}"
                with open(temporary, "w", encoding="utf-8") as stream:
                    json.dump(content, stream, separators=(",", ":"))
                os.replace(temporary, path)
        except OSError:
            return


def pack_finding(finding: Finding) -> list:
    """Return a finding as JSON."""
    fix = finding.fix
    packed = (
        None
        if fix is None
        else [fix.title, [[e.start, e.end, e.text] for e in fix.edits], fix.safe, fix.needs_ops, fix.also_import]
    )
    return [
        finding.line,
        finding.column,
        finding.end_line,
        finding.end_column,
        finding.code,
        finding.message,
        packed,
        finding.cell,
    ]


def unpack_finding(path: str, row: list) -> Finding:
    """Return the finding behind its JSON."""
    packed = row[6]
    fix = None if packed is None else Fix(packed[0], tuple(Edit(*edit) for edit in packed[1]), *packed[2:])
    line, column, end_line, end_column, code, message, _, cell = row
    return Finding(path, line, column, end_line, end_column, code, message, fix, cell)


def _pack_facts(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: _pack(value) for key, value in facts.items()}


def _pack(value: object) -> object:
    """Return a fact as JSON."""
    if isinstance(value, Value):
        return {"k": value.kind, "d": _pack(value.detail)}
    if isinstance(value, tuple):
        return [_pack(item) for item in value]
    return value


def _unpack_facts(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: _unpack(value) for key, value in facts.items()}


def _unpack(value: object) -> object:
    """Return the fact behind its JSON."""
    if isinstance(value, dict):
        return Value(value["k"], _unpack(value["d"]))
    if isinstance(value, list):
        return tuple(_unpack(item) for item in value)
    return value

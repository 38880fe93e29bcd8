"""The baseline: how many findings of each rule a file may still have. It only ever shrinks."""

from __future__ import annotations

import json
import os
from collections import Counter

from ember_ml.lint.config import ConfigError
from ember_ml.lint.finding import Finding

Counts = dict[str, dict[str, int]]


def load(path: str) -> Counts:
    """Return the baseline of a file.

    Raises:
        ConfigError: if it cannot be read or has another form.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            data = json.load(stream)
        counts = data["counts"]
        if not all(isinstance(n, int) for codes in counts.values() for n in codes.values()):
            raise TypeError("counts must be whole numbers")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: not a baseline: {error}") from error
    return counts


def count(findings: list[Finding]) -> Counts:
    """Return how many findings of each rule each file has."""
    counts: Counts = {}
    for finding in findings:
        if finding.code != "EMB900":
            per_file = counts.setdefault(finding.path.replace(os.sep, "/"), {})
            per_file[finding.code] = per_file.get(finding.code, 0) + 1
    return counts


def shrink(old: Counts, new: Counts, checked: set[str]) -> Counts:
    """Return the baseline after a run: for the files that were checked, never more than before."""
    result: Counts = {}
    for path, codes in old.items():
        if path not in checked:
            result[path] = codes
            continue
        kept = {code: min(allowed, new.get(path, {}).get(code, 0)) for code, allowed in codes.items()}
        kept = {code: n for code, n in kept.items() if n}
        if kept:
            result[path] = kept
    return result


def save(path: str, counts: Counts) -> None:
    """Write a baseline, sorted to keep changes readable."""
    ordered = {name: dict(sorted(codes.items())) for name, codes in sorted(counts.items())}
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({"version": 1, "counts": ordered}, stream, indent=1)
        stream.write("\n")


def apply(findings: list[Finding], allowed: Counts) -> list[Finding]:
    """Return the findings that the baseline does not cover: all of a rule in a file if there are more than allowed."""
    present = Counter((finding.path.replace(os.sep, "/"), finding.code) for finding in findings)
    return [
        f
        for f in findings
        if present[f.path.replace(os.sep, "/"), f.code] > allowed.get(f.path.replace(os.sep, "/"), {}).get(f.code, 0)
    ]

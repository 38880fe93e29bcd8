"""The whole benchmark: which groups there are, running them, and the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table

from ember_ml.bench.calls import measure_calls
from ember_ml.bench.conversions import measure_conversions, measure_switching
from ember_ml.bench.measurement import Measurement
from ember_ml.bench.patterns import PATTERNS, measure_patterns

__all__ = ["GROUPS", "measure", "readable", "table"]

_PATTERN_GROUPS = tuple(dict.fromkeys(pattern.group for pattern in PATTERNS))
GROUPS = {
    "calls": "one op on a small tensor, beside the library's own call",
    "switching": "set_backend between loaded backends; the baseline is one small op, to compare with",
    "conversions": "a tensor from one backend to another, beside a copy",
    "leaving": "computing on NumPy in the middle of a computation",
    "copies": "copies that nobody needs",
    "operators": "Python operators, beside the functions of ops",
    "loops": "Python loops, beside whole tensors",
    "scalars": "reading values in the middle of a computation",
}


def measure(
    groups: Sequence[str], backends: Sequence[str], size: int, small: int, seconds: float, keras: bool
) -> Iterator[Measurement]:
    """Yield every measurement of ``groups`` on ``backends``, as it comes.

    ``size`` is the number of elements of the large tensors, ``small`` that of the tensors whose call is timed, and
    ``seconds`` the time spent per comparison.
    """
    if "calls" in groups:
        for name in backends:
            yield from measure_calls(name, small, seconds, keras)
    if "switching" in groups:
        yield from measure_switching(backends, seconds)
    if "conversions" in groups:
        yield from measure_conversions(backends, size, seconds)
    wanted = frozenset(groups) & frozenset(_PATTERN_GROUPS)
    if wanted:
        for name in backends:
            yield from measure_patterns(name, wanted, size, seconds)


def table(group: str, measurements: Iterable[Measurement]) -> Table:
    """Return the measurements of one group as a table, a row for each."""
    rows = list(measurements)
    headings = ["backend", "case", "way", "time", "baseline", "time", "ratio"]
    has_claims = any(row.claimed for row in rows)
    caption = "claimed: the slowdown that is commonly told of this" if has_claims else None
    result = Table(title=f"{group}: {GROUPS[group]}", title_justify="left", caption=caption, caption_justify="left")
    for heading in [*headings, "claimed"] if has_claims else headings:
        result.add_column(heading, justify="right" if heading in ("time", "ratio", "claimed") else "left")
    for row in rows:
        cells = [row.backend, row.case, row.way, readable(row.seconds), row.baseline, readable(row.baseline_seconds)]
        cells.append(f"{row.ratio:.2f}x")
        result.add_row(*cells, *([row.claimed] if has_claims else []))
    return result


def readable(seconds: float) -> str:
    """Return a time in the unit that suits it.

    >>> readable(0.00123), readable(4.5e-7)
    ('1.23 ms', '450 ns')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"

"""Run one script in several processes, here or on several hosts, for ``ember-ml launch``."""

from __future__ import annotations

import sys
from pathlib import Path

from ember_ml.backend.built_in import BUILT_IN
from ember_ml.distributed.failure_detection import Failure, RankState, checkpoint_error_in
from ember_ml.distributed.hosts import LOCAL, check_reach, places, read_hosts
from ember_ml.distributed.report import JsonReport, Report
from ember_ml.distributed.start_agents import Job, mpi_command
from ember_ml.distributed.supervisor import Supervisor
from ember_ml.errors import LaunchError

__all__ = ["launch"]


def launch(
    script: str,
    arguments: list[str],
    backend: str,
    ranks: int | None = None,
    hosts: Path | None = None,
    timeout: float = 300.0,
    restarts: int = 0,
    log_dir: Path | None = None,
    as_json: bool = False,
) -> int:
    """Run a script in several processes, show what they print, and return the exit code of the rank that failed first.

    With ``restarts``, all ranks are started again after a failure, that often at most. A checkpoint that two starts in
    a row cannot use ends the job: the next start would find it as it is.
    """
    if sys.platform == "win32":
        raise LaunchError("ember-ml launch needs process groups, which Windows does not have; use WSL")
    if not Path(script).is_file():
        raise LaunchError(f"there is no script {script!r}")
    placed = places(read_hosts(hosts) if hosts is not None else [(LOCAL, ranks or 1)], ranks)
    check_reach(placed)
    by_mpi = backend in BUILT_IN and BUILT_IN[backend].started_by == "mpi"
    mpi = mpi_command(placed) if by_mpi and sum(len(host.ranks) for host in placed) > 1 else None
    job = Job([sys.executable, script, *arguments], placed, backend, timeout, mpi)
    report = (JsonReport if as_json else Report)(log_dir)
    try:
        return _run(job, restarts, report)
    finally:
        report.close()


def _run(job: Job, restarts: int, report: Report) -> int:
    unusable = ""
    for restart in range(restarts + 1):
        supervisor = Supervisor(job, restart, report)
        failure = supervisor.run()
        if failure is None:
            if len(supervisor.ranks) > 1 and not any(rank.joined for rank in supervisor.ranks):
                report.note("no rank made a strategy or a group of ember_ml.distributed: each has run by itself")
            report.ended(0, restart + 1)
            return 0
        report.failed(failure, supervisor.ranks)
        before, unusable = unusable, _unusable_checkpoint(failure, supervisor.ranks)
        is_hopeless = bool(unusable) and unusable == before
        if is_hopeless and restart < restarts:
            report.note("two starts could not use the checkpoint, for the same reason: it is not tried again")
        if is_hopeless or failure.final or restart == restarts:
            report.ended(failure.code, restart + 1)
            return failure.code
    raise AssertionError("a job is run at least once")


def _unusable_checkpoint(failure: Failure, ranks: list[RankState]) -> str:
    """Return why the rank that failed first could not use a checkpoint; empty where that was not the reason."""
    return "" if failure.rank is None else checkpoint_error_in(list(ranks[failure.rank].errors))

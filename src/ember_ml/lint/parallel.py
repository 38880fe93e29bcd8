"""Check on several cores: each process walks a part of the files, and news are exchanged between rounds."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from ember_ml.lint.facts import News, exchange
from ember_ml.lint.finding import Finding
from ember_ml.lint.history import History, Note, Walk


def check_parallel(inputs: list, jobs: int) -> tuple[dict[str, list[Finding]], History]:
    """Return the findings of all files, and what the cache keeps of the run."""
    context = multiprocessing.get_context("spawn")
    pipes, workers = [], []
    for share in _shares(inputs, jobs):
        here, there = context.Pipe()
        worker = context.Process(target=_work, args=(there, share), daemon=True)
        worker.start()
        there.close()
        pipes.append(here)
        workers.append(worker)
    try:
        rounds = exchange(_step_of(pipes))
        found: dict[str, list[Finding]] = {}
        notes: dict[str, Note] = {item.path: Note() for item in inputs}
        for pipe in pipes:
            pipe.send(None)
        for pipe in pipes:
            findings, noted = pipe.recv()
            found.update(findings)
            notes.update(noted)
    finally:
        for pipe in pipes:
            pipe.close()
        for worker in workers:
            worker.join(timeout=5)
            if worker.is_alive():
                worker.terminate()
    return found, History(rounds, notes)


def _step_of(pipes: list[Connection]) -> Callable[[dict[str, Any]], tuple[News, bool]]:
    """Return the function that walks one round in all processes."""

    def step(changed: dict[str, Any]) -> tuple[News, bool]:
        for pipe in pipes:
            pipe.send(changed)
        answers = [pipe.recv() for pipe in pipes]
        return {path: facts for news, _ in answers for path, facts in news.items()}, all(done for _, done in answers)

    return step


def _shares(inputs: list, jobs: int) -> list[list]:
    """Distribute the files such that every process gets about the same number of bytes."""
    shares: list[list] = [[] for _ in range(min(jobs, len(inputs)))]
    sizes = [0] * len(shares)
    for item in sorted(inputs, key=lambda item: -len(item.data)):
        smallest = sizes.index(min(sizes))
        shares[smallest].append(item)
        sizes[smallest] += len(item.data)
    return shares


def _work(pipe: Connection, share: list) -> None:
    from ember_ml.lint.runner import add, collect

    walk = Walk()
    problems: dict[str, list[Finding]] = {}
    for item in share:
        add(walk.project, item, problems)
    while (changed := pipe.recv()) is not None:
        pipe.send(walk.step(changed))
    pipe.send((collect(walk.project, share, problems), walk.notes()))
    pipe.close()

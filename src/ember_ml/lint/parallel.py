"""Check on several cores: each process walks a part of the files, and exchanges facts between rounds."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from typing import Any

from ember_ml.lint.finding import Finding
from ember_ml.lint.project import ROUNDS, Project
from ember_ml.lint.values import Value, join


def check_parallel(inputs: list, jobs: int) -> tuple[dict[str, list[Finding]], dict[str, list]]:
    """Return the findings of all files and the facts for the cache, as one process would have found them."""
    context = multiprocessing.get_context("spawn")
    shares = _shares(inputs, jobs)
    pipes, workers = [], []
    for share in shares:
        here, there = context.Pipe()
        worker = context.Process(target=_work, args=(there, share), daemon=True)
        worker.start()
        there.close()
        pipes.append(here)
        workers.append(worker)
    try:
        table: dict[str, Any] = {}
        for _ in range(ROUNDS):
            news = [pipe.recv() for pipe in pipes]
            changed = _merge(table, news)
            if not changed:
                break
            for pipe in pipes:
                pipe.send(changed)
        for pipe in pipes:
            pipe.send(None)
        found: dict[str, list[Finding]] = {}
        facts: dict[str, list] = {}
        for pipe in pipes:
            while isinstance(answer := pipe.recv(), dict):  # facts of a round that nobody waited for
                pass
            found.update(answer[0])
            facts.update(answer[1])
    finally:
        for pipe in pipes:
            pipe.close()
        for worker in workers:
            worker.join(timeout=5)
            if worker.is_alive():
                worker.terminate()
    return found, facts


def _shares(inputs: list, jobs: int) -> list[list]:
    """Distribute the files such that every process gets about the same number of bytes."""
    shares: list[list] = [[] for _ in range(min(jobs, len(inputs)))]
    sizes = [0] * len(shares)
    for item in sorted(inputs, key=lambda item: -len(item.data)):
        smallest = sizes.index(min(sizes))
        shares[smallest].append(item)
        sizes[smallest] += len(item.data)
    return shares


def _merge(table: dict[str, Any], news: list[dict[str, Any]]) -> dict[str, Any]:
    """Add what the workers found to the table; return the changed facts."""
    changed: dict[str, object] = {}
    for facts in news:
        for key, value in facts.items():
            old = table.get(key)
            new = value if old is None or not isinstance(value, Value) else join(old, value)
            if old is None or new != old:
                table[key] = changed[key] = new
    return changed


def _work(pipe: Connection, share: list) -> None:
    from ember_ml.lint.runner import add, finish, packed_facts

    project = Project()
    problems: dict[str, list[Finding]] = {}
    for item in share:
        add(project, item, problems)
    project.start()
    sent: dict[str, object] = {}
    while True:
        for _ in range(ROUNDS):
            if not project.step():
                break
        news = {
            key: value
            for key, value in project.facts.table.items()
            if sent.get(key) is not value and sent.get(key) != value
        }
        sent.update(news)
        pipe.send(news)
        others = pipe.recv()
        if others is None:
            break
        project.facts.merge(others)
        sent.update(others)
    found = {item.path: problems[item.path] if item.path in problems else finish(project, item) for item in share}
    pipe.send((found, packed_facts(project)))
    pipe.close()

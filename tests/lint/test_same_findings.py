"""The same findings whatever walks the files: one process or several, any order, with or without a cache."""

from __future__ import annotations

import json
import random

import pytest

from tests.lint.conftest import Run, Write


def write_tree(write: Write, files: dict[str, str]) -> None:
    """Write a package of at least nine files, which several processes share."""
    write("pkg/__init__.py", "")
    for number in range(9):
        write(f"pkg/apart{number}.py", "x = 1\n" * number)
    for name, text in files.items():
        write(f"pkg/{name}", text)


def make_tree(seed: int) -> dict[str, str]:
    """Return modules whose functions call each other back and forth, with tensors, lists, numbers and unknowns."""
    draw = random.Random(seed)
    names = [f"m{number}" for number in range(10)]
    values = ["ops.ones((3,))", "[ops.ones((3,))]", "(1, 2)", "3", "thing()", "x", "[x]", "x.held"]
    result = {}
    for name in names:
        others = draw.sample(names, 4)
        lines = ["from ember_ml import ops", "from outside import thing"] if draw.random() < 0.6 else []
        lines += [f"import pkg.{other}" for other in others]
        lines += ["", "", "class Box:", "    held = None"]
        for place in range(3):
            calls = [f"pkg.{other}.f{draw.randrange(3)}({draw.choice(values)})" for other in draw.sample(others, 2)]
            lines += ["", "", f"def f{place}(x):"]
            lines += [f"    box = pkg.{draw.choice(others)}.Box()", f"    box.held = {draw.choice([*values, *calls])}"]
            lines += [f"    for part in {draw.choice([*calls, 'box.held'])}:", "        x = x + part"]
            lines += [f"    return {draw.choice([*values, *calls, 'x * 2', 'box.held'])}"]
        result[f"{name}.py"] = "\n".join(lines) + "\n"
    return result


def find(emberlint: Run, *arguments: str) -> list[dict[str, object]]:
    """Return the findings in the package, and with ``--strict`` what may be one."""
    return json.loads(emberlint("--select", "ALL", "--format", "json", *arguments).out)


@pytest.mark.parametrize("strict", [(), ("--strict",)], ids=["known", "possible"])
def test_processes_and_order_make_no_difference(emberlint: Run, write: Write, strict: tuple[str, ...]) -> None:
    for seed in range(4):
        files = make_tree(seed)
        write_tree(write, files)
        alone = find(emberlint, "--no-cache", "--jobs", "1", *strict, "pkg")
        assert alone
        paths = sorted(f"pkg/{name}" for name in files)
        for draw in range(2):
            random.Random(draw).shuffle(paths)
            assert find(emberlint, "--no-cache", *strict, *paths, "pkg") == alone
        if seed == 3:
            assert find(emberlint, "--no-cache", "--jobs", "2", *strict, "pkg") == alone


@pytest.mark.parametrize("strict", [(), ("--strict",)], ids=["known", "possible"])
def test_a_warm_cache_makes_no_difference(emberlint: Run, write: Write, strict: tuple[str, ...]) -> None:
    """Exchange files one after the other for those of another tree: each run finds what one without a cache does."""
    old, new = make_tree(1), make_tree(2)
    write_tree(write, old)
    find(emberlint, *strict, "pkg")
    seen = set()
    for name in new:
        write(f"pkg/{name}", new[name])
        warm = find(emberlint, *strict, "pkg")
        assert warm == find(emberlint, "--no-cache", *strict, "pkg")
        assert warm == find(emberlint, *strict, "pkg")
        seen.add(len(warm))
    assert len(seen) > 3


def test_a_recursive_function_of_lists_ends(emberlint: Run, write: Write) -> None:
    """A list of its own results is a deeper list in each round."""
    write("pkg/__init__.py", "")
    write("pkg/a.py", "from pkg import b\n\n\ndef deeper(x):\n    return [b.deeper(x)]\n")
    write("pkg/b.py", "from pkg import a\n\n\ndef deeper(x):\n    return (a.deeper(x), x + 1)\n")
    assert find(emberlint, "--no-cache", "--strict", "pkg")[0]["code"] == "EMB401"

"""Plant one silent error at a time in a copy of the package, and see that the tests that CI runs find it.

``python utils/mutants.py`` tries all of them; names as arguments try those alone. It ends with 1 if one survives:
then a test is missing. Every error stands for a kind that a user would not notice.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """What is replaced in which file of the package, and the arguments of pytest that must fail then."""

    file: str
    old: str
    new: str
    tests: str
    chosen: str


MUTANTS = {
    "forward derivative": Mutant(
        "autodiff/tape_engine.py",
        "return outputs, push(tangents)",
        "return outputs, push([tangents[0] for _ in tangents])",
        "tests/autodiff/test_ops.py",
        "forward and numpy and multiply",
    ),
    "operand that vmap does not map": Mutant(
        "backend/mlx/vmap_rules.py",
        "if is_vectorizing() else function(*arrays)",
        "if False else function(*arrays)",
        "tests/contract/test_vmap.py",
        "mlx and (not_equal or bitwise_xor or bitwise_and)",
    ),
    "portable tensors alone": Mutant(
        "dispatch/codegen.py",
        'kind = "_kind" if op.rule.result == "same" else "_kind.boolean"',
        'kind = "_kind"',
        "tests/contract/test_input_kinds.py",
        "numpy and outside and less",
    ),
    "promotion": Mutant(
        "core/promotion.py",
        "max(signed.bits, 2 * unsigned.bits)",
        "max(signed.bits, unsigned.bits)",
        "tests/behaviour/test_promotion.py",
        "numpy",
    ),
    "last rows of a scatter": Mutant(
        "backend/numpy/bodies/scatter.py",
        "step = -(-len(ids) // parts)",
        "step = len(ids) // parts",
        "tests/ops/test_scatter.py",
        "numpy",
    ),
    "gradient of equals": Mutant(
        "ops/elementwise/arithmetic.py",
        "where(is_tie, multiply(g, 0.5), multiply(g, is_chosen))",
        "where(is_tie, g, multiply(g, is_chosen))",
        "tests/autodiff/test_special_points.py",
        "numpy or mlx",
    ),
    "word of the random stream": Mutant(
        "backend/random/threefry.py",
        "(13, 15, 26, 6)",
        "(13, 15, 27, 6)",
        "tests/ops/test_random.py",
        "numpy",
    ),
    "field of a checkpoint": Mutant(
        "training/trainer_state.py",
        '"rate": _get_number(trainer.optimizer.learning_rate)',
        '"rate": None',
        "tests/training/test_trainer_meanings.py",
        "rate and numpy",
    ),
    "view that is not written": Mutant(
        "tensor/in_place.py",
        "_read_views(source, array, tensor, changes, what)",
        "pass",
        "tests/tensor/test_in_place.py",
        "torch",
    ),
    "constant of one backend": Mutant(
        "backend/mlx/bodies/exponential.py",
        "-2.12194440e-4",
        "-2.12144440e-4",
        "tests/ops/test_special.py",
        "mlx and exponential",
    ),
}


def survives(mutant: Mutant, folder: Path) -> bool:
    """Plant an error in the copy, run its tests, and take it back; whether they all pass."""
    path = folder / "src" / "ember_ml" / mutant.file
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} must have {mutant.old!r} once, not {text.count(mutant.old)} times")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long", mutant.tests, "-k", mutant.chosen]
    settings = {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "HYPOTHESIS_PROFILE": "quick"}
    done = subprocess.run(command, cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=False)
    path.write_text(text, encoding="utf-8")
    if done.returncode not in (0, 1):  # no tests, or an error of pytest
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    found = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    print(found[0].partition(" - ")[0] if found else "SURVIVES", flush=True)
    return done.returncode == 0


def main(names: list[str]) -> int:
    """Try the mutants of the names, or all; return 1 where one survives."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for part in ("src", "tests", "docs", "examples", "utils"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy(ROOT / "pyproject.toml", folder)
        left = []
        for name in names or MUTANTS:
            print(f"{name}: ", end="", flush=True)
            if survives(MUTANTS[name], folder):
                left.append(name)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

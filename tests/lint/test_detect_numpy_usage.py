"""The script utils/detect_numpy_usage.py: NumPy and operators are found, other libraries are not its business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "utils" / "detect_numpy_usage.py"


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "a.py").write_text(text)
    return subprocess.run(
        [sys.executable, str(SCRIPT), "a.py"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_numpy_is_found(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "import numpy as np\nfrom numpy.linalg import norm\ny = np.float32\nz = norm([1.0])\n\n\ndef "
        "f(t):\n    return t.numpy()\n",
    )
    assert done.returncode == 1
    assert [line.split()[1] for line in done.stdout.splitlines() if "a.py:" in line] == [
        "EMB101",
        "EMB101",
        "EMB601",
        "EMB201",
        "EMB202",
    ]


def test_other_libraries_are_not(tmp_path: Path) -> None:
    assert run(tmp_path, "import torch\ny = torch.zeros(3)\n").returncode == 0


def test_operators_and_ways_from_numpy_are(tmp_path: Path) -> None:
    done = run(tmp_path, "import torch\ny = torch.from_numpy(a)\n\n\ndef f(x: Tensor):\n    return x + 1\n")
    assert done.returncode == 1
    assert [line.split()[1] for line in done.stdout.splitlines() if "a.py:" in line] == ["EMB202", "EMB401"]


def test_it_needs_no_other_package(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import numpy as np\n")
    # -I and -S: neither the folder, nor variables, nor installed packages are looked into
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), "a.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "EMB101" in done.stdout


def test_what_cannot_be_read(tmp_path: Path) -> None:
    assert run(tmp_path, "def f(:\n").returncode == 2

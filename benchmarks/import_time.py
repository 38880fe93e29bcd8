"""Measure what `import ember_ml` costs over `import numpy`: processor time of the importing thread, best of many.

    python benchmarks/import_time.py [--runs 20] [--json]

Each run is an interpreter of its own with its bytecode cached, as in an installed copy. Neither other programs nor the
threads of NumPy's BLAS, which spin a while after its import, lengthen the time of the importing thread by much.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

CODE = "import numpy, time; t = time.thread_time(); import ember_ml; print(time.thread_time() - t)"
LIMIT = 60.0


def measure(runs: int) -> list[float]:
    """Return the milliseconds of each run, in order of size; the run that writes the bytecode is not among them."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        taken = [
            float(subprocess.run([sys.executable, "-c", CODE], capture_output=True, env=environment, check=True).stdout)
            for _ in range(runs + 1)
        ]
    return sorted(1000 * seconds for seconds in taken[1:])


def main() -> None:
    """Print the best and the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    taken = measure(options.runs)
    best, median = taken[0], taken[len(taken) // 2]
    if options.json:
        print(json.dumps({"best_ms": best, "median_ms": median, "limit_ms": LIMIT}))
    else:
        print(f"import ember_ml: {best:.1f} ms over NumPy at best, {median:.1f} in the median (limit {LIMIT:.0f})")


if __name__ == "__main__":
    main()

"""Random groups of parameters under ZeRO, which each rank trains with its share of the same gradients."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ember_ml import distributed, ops
from ember_ml.distributed import strategy as strategies
from ember_ml.training import optimizers
from tests.training.test_groups import KINDS, draw_case

CASES = [(kind, seed) for kind in KINDS for seed in range(25)]


def groupings() -> list[Any]:
    """The parameters after the steps of each case."""
    share = 1.5 if distributed.rank() == 0 else 0.5  # the mean of both ranks is the gradient
    found = []
    for kind, seed in CASES:
        model, steps, options, _ = draw_case(kind, seed)
        made, optimizer = strategies.ZeroStrategy(), type(optimizers.get(kind))(**options)
        made.prepare(model, optimizer)
        named = model.trainable()
        for step in steps:
            gradients = [ops.reshape(ops.multiply(ops.array(step[name]), share), x.shape) for name, x in named.items()]
            made.apply(optimizer, named, made.average(gradients))
        found.append({name: ops.to_numpy(x).ravel().tolist() for name, x in model.state_dict().items()})
    return found


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))

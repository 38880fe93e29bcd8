"""What the ranks of a test do with collectives: each job gives plain data, which the test compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ember_ml import distributed, ops
from ember_ml.distributed import collectives, groups
from ember_ml.nn import tensor
from tests.distributed.comparing import plain, raised

REDUCED = ("int8", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "complex64")


def exchange() -> dict[str, Any]:
    """Every collective, on tensors that differ from rank to rank."""
    rank, count = distributed.rank(), distributed.world_size()
    base = ops.asarray([[1 + rank, 2], [3, 5 * rank], [7, 0], [rank, rank]])
    found: dict[str, Any] = {"rank": rank, "count": count}
    for dtype in REDUCED:
        x = ops.cast(base, dtype)
        found[f"sum {dtype}"] = plain(collectives.all_reduce(x))
        found[f"kept {dtype}"] = str(collectives.all_reduce(x).dtype) == str(x.dtype)
        found[f"gather {dtype}"] = plain(collectives.all_gather(x))
        found[f"broadcast {dtype}"] = plain(collectives.broadcast(x, count - 1))
        if count in (2, 4):
            found[f"scatter {dtype}"] = plain(collectives.reduce_scatter(x))
        if dtype != "complex64":
            found[f"max {dtype}"] = plain(collectives.all_reduce(x, "max"))
            found[f"min {dtype}"] = plain(collectives.all_reduce(x, "min"))
    wide = ops.cast(base, "float32")
    found["mean"] = plain(collectives.all_reduce(wide, "mean"))
    found["any"] = plain(collectives.all_reduce(ops.equal(base, 3), "max"))
    found["0-d"] = plain(collectives.all_gather(ops.asarray(float(rank))))
    found["strided"] = plain(collectives.all_reduce(ops.transpose(wide)))
    found["empty"] = list(collectives.all_gather(ops.zeros((3, 0))).shape)
    found["bits"] = plain(collectives.broadcast(ops.divide(1.0, ops.asarray([-0.0, 0.0]))))
    long = ops.add(ops.arange(100_000, dtype="float32"), 100_000.0 * rank)  # which travels in another way on gloo
    are_right = ops.all(ops.equal(collectives.all_gather(long), ops.arange(100_000 * count, dtype="float32")))
    found["long"] = bool(ops.item(are_right))
    portable = collectives.all_reduce(tensor.array([1.0]))
    found["portable"] = isinstance(portable, tensor.EmberTensor), float(portable.item())
    found["average"] = [plain(x) for x in collectives.average([wide, ops.asarray([float(rank)])])]
    found["weighted"] = [plain(x) for x in collectives.average([ops.full((2,), 1.0 + rank)], weight=rank)]
    hidden = ops.full((1,), float("nan") if rank else 5.0)
    found["hidden"] = [plain(x) for x in collectives.average([hidden], weight=rank == 0)]
    if rank == 0:
        collectives.send(ops.cast(base, "float16"), 1)
        found["received"] = plain(collectives.recv((2,), "int64", 1))
    elif rank == 1:
        found["received"] = plain(collectives.recv((4, 2), "float16", 0))
        collectives.send(ops.asarray([8, 9]), 0)
    collectives.barrier()
    found["begun"] = begun(wide)
    found["errors"] = {
        "mean of integers": raised(collectives.all_reduce, base, "mean"),
        "sum of bools": raised(collectives.all_reduce, ops.equal(base, 3)),
        "no such reduction": raised(collectives.all_reduce, base, "median"),
        "no such rank": raised(collectives.broadcast, base, count),
        "to itself": raised(collectives.send, base, rank),
        "uneven": raised(collectives.reduce_scatter, ops.zeros((2 * count + 1,))),
        "too many": raised(distributed.initialize, count + 1),
        "differentiated": raised(ops.grad(lambda x: ops.sum(collectives.all_reduce(x, "max"))), wide),
        "begun": raised(ops.grad(lambda x: ops.sum(collectives.begin(collectives.all_reduce, x).wait())), wide),
        "no collective": raised(collectives.begin, collectives.average, wide),
    }
    return found


def begun(wide: Any) -> list[Any]:
    """Collectives of which all are under way at once, and which are waited for in another order."""
    count = distributed.world_size()
    order = groups.group().subgroup([list(range(count))])  # of all ranks, and not that of all calls
    pending = [
        collectives.begin(collectives.all_reduce, wide, "mean"),
        collectives.begin(collectives.all_gather, wide, group=order),
        collectives.begin(collectives.broadcast, tensor.array([distributed.rank()]), source=0, group=order),
        collectives.begin(collectives.all_to_all, ops.asarray([distributed.rank()] * count)),
        collectives.begin(collectives.reduce_scatter, ops.asarray([1] * count)),
    ]
    found = [plain(one.wait()) for one in pending[::-1]][::-1]
    return [*found, plain(pending[0].wait()), isinstance(pending[2].wait(), tensor.EmberTensor)]


def gradients() -> dict[str, Any]:
    """The gradients of collectives in what all ranks compute together: the sum of their results."""
    rank, count = distributed.rank(), distributed.world_size()
    x = ops.asarray([1.0 + rank, 2.0, 3.0 * rank, 4.0])
    weights = ops.asarray([float(place + 1 + 10 * rank) for place in range(4 * count)])

    def gradient(function: Any, weights: Any) -> Any:
        return plain(ops.grad(lambda x: ops.sum(ops.multiply(function(x), weights)))(x))

    def cubes(x: Any) -> Any:
        return ops.sum(ops.power(collectives.all_reduce(x), 3.0))

    pair = collectives.make_group([[rank] for rank in range(count)])
    return {
        "sum": gradient(collectives.all_reduce, weights[:4]),
        "mean": gradient(lambda x: collectives.all_reduce(x, "mean"), weights[:4]),
        "gather": gradient(collectives.all_gather, weights),
        "scatter": gradient(lambda x: collectives.reduce_scatter(x, "mean"), weights[: 4 // count]),
        "to all": gradient(collectives.all_to_all, weights[:4]),
        "broadcast": gradient(lambda x: collectives.broadcast(x, 1), weights[:4]),
        "alone": gradient(lambda x: collectives.all_reduce(x, group=pair), weights[:4]),
        "second": plain(ops.grad(lambda x: ops.sum(ops.grad(cubes)(x)))(x)),
        "sent": plain(collectives.all_to_all(x)),
        "members": raised(collectives.make_group, [[0, 1], [1]]),
        "context": [context_error(is_causal) for is_causal in (False, True)],
    }


def context_error(is_causal: bool) -> float:
    """How far attention of this rank's part of a sequence, and its gradients, are from those of the whole sequence."""
    rank, count = distributed.rank(), distributed.world_size()
    steps = ops.reshape(ops.arange(48 * count, dtype="float32"), (2, 3 * count, 2, 4))
    whole = [ops.sin(ops.multiply(steps, factor)) for factor in (1.0, 2.0, 3.0)]
    part = slice(3 * rank, 3 * rank + 3)

    def of_whole(query: Any, key: Any, value: Any) -> Any:
        return ops.sum(ops.square(ops.dot_product_attention(query, key, value, is_causal=is_causal)))

    def of_part(query: Any, key: Any, value: Any) -> Any:
        return ops.sum(ops.square(distributed.context_attention(query, key, value, is_causal=is_causal)))

    expected = [x[:, part] for x in ops.grad(of_whole, argnums=(0, 1, 2))(*whole)]
    found = ops.grad(of_part, argnums=(0, 1, 2))(*[x[:, part] for x in whole])
    total = collectives.all_reduce(of_part(*[x[:, part] for x in whole]))
    errors = [ops.max(ops.abs(ops.subtract(x, y))) for x, y in zip(found, expected, strict=True)]
    return max(float(ops.item(x)) for x in (*errors, ops.abs(ops.subtract(total, of_whole(*whole)))))


def in_pairs(pairs: list[list[int]]) -> dict[str, Any]:
    """Collectives of pairs of ranks, of which one makes more calls than the other, and of all ranks between."""
    rank = distributed.rank()
    pair = collectives.make_group(pairs)
    for _ in range(3 if rank in pairs[0] else 0):
        collectives.all_reduce(ops.asarray([rank]), group=pair)
    everyone = collectives.all_gather(ops.asarray(rank))
    three = collectives.make_group([[0], [1, 2, 3]])

    def weighted(x: Any) -> Any:
        return ops.multiply(ops.sum(ops.square(collectives.all_reduce(x, group=pair))), 1.0 + rank)

    return {
        "place": pair.rank,
        "all": plain(everyone),
        "three": plain(collectives.all_gather(ops.asarray(rank), three)),
        "sum": plain(collectives.all_reduce(ops.asarray([rank]), group=pair)),
        "gather": plain(collectives.all_gather(ops.asarray(rank), pair)),
        "weighted": plain(collectives.average([ops.asarray([float(rank)])], weight=1.0 + rank, group=pair)[0]),
        "gradient": plain(ops.grad(weighted)(ops.asarray([float(rank)]))),
    }


if __name__ == "__main__":
    name, folder, given = sys.argv[1:]
    result = globals()[name](**json.loads(given))
    (Path(folder) / f"{distributed.rank()}.json").write_text(json.dumps(result))

"""Sequences of which each rank has a part: the attention over them, and models whose layers compute with parts."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from ember_ml import ops
from ember_ml.backend.processes.group import Group
from ember_ml.core import trees
from ember_ml.distributed import collectives
from ember_ml.distributed.groups import group as all_ranks
from ember_ml.nn.layers.sequence_mixing.sequence_parts import SequencePart
from ember_ml.nn.modules.module import Module
from ember_ml.typing import Tensor, TensorLike

__all__ = [
    "POSITIONWISE",
    "check_positionwise",
    "check_targets",
    "context_attention",
    "make_part",
    "take_positions",
]

POSITIONWISE: tuple[str, ...] = (
    *("nn.modules.module.Module", "nn.modules.sequential", "nn.modules.activations", "nn.model.Model"),
    *("nn.layers.base", "nn.layers.channel_mixing.base", "nn.layers.channel_mixing.shaping.Identity"),
    *("nn.layers.channel_mixing.linear", "nn.layers.channel_mixing.embedding", "nn.layers.channel_mixing.mlp"),
    *("nn.layers.channel_mixing.dropout", "nn.layers.channel_mixing.mixture"),
    *("nn.layers.channel_mixing.normalization.LayerNorm", "nn.layers.channel_mixing.normalization.RMSNorm"),
    *("nn.layers.sequence_mixing.attention.Attention", "nn.layers.sequence_mixing.grouped_query"),
    *("nn.blocks.transformer", "nn.blocks.residual", "nn.blocks.language"),
    *("models.gpt2", "models.llama", "models.lora", "models.quantization"),
)
"""The modules of this package, and files of them, that compute rightly with a part of the positions."""


def context_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    scale: float | None = None,
    is_causal: bool = False,
    group: Group | None = None,
) -> Tensor:
    """This rank's part of the attention of a sequence that is split over the ranks, equally and in their order.

    The arguments are as in ``ops.dot_product_attention``, and (batch, length of the part, heads, dim); positions that
    are encoded in them are those in the whole sequence. Keys and values are gathered from all ranks, forward and
    backward, and the products are never whole: each rank has those of its own queries. With ``is_causal`` the last rank
    has the most to compute. ``group`` is one of ``collectives.make_group``; None: all ranks.

    The layers of a model compute so along the axis ``context`` of a mesh: see ``MeshStrategy``.

    >>> from ember_ml import distributed, ops
    >>> query, key = ops.ones((1, 2, 1, 4)), ops.ones((1, 2, 1, 4))
    >>> value = ops.reshape(ops.array([1.0, 3.0]), (1, 2, 1, 1))
    >>> ops.to_numpy(distributed.context_attention(query, key, value, is_causal=True)).ravel().tolist()
    [1.0, 2.0]
    """
    part = make_part(all_ranks() if group is None else group)
    keys, values, *_ = part.gather_keys(ops.asarray(key), ops.asarray(value), None, None, is_causal)
    return ops.dot_product_attention(query, keys, values, scale=scale, is_causal=is_causal)


def make_part(group: Group) -> SequencePart:
    """Return the part of sequences that this rank has in a group."""

    def join(x: Tensor, axis: int) -> Tensor:
        return ops.swapaxes(collectives.all_gather(ops.swapaxes(x, 0, axis), group), 0, axis)

    return SequencePart(group.rank, group.size, join)


def take_positions(batch: Any, index: int, count: int) -> Any:
    """Return one of ``count`` parts of a batch along the second axis; tensors of one axis stay as they are."""
    leaves, structure = trees.flatten(batch)
    lengths = sorted({ops.shape(x)[1] for x in leaves if _has_positions(x)})
    if len(lengths) != 1:
        found = f"its tensors have {' and '.join(map(str, lengths))} there" if lengths else "it has no such tensor"
        raise ValueError(
            f"a mesh with context={count} splits a batch along its second axis, the positions, and {found}"
        )
    length = lengths[0]
    if length % count or length < 2 * count:
        raise ValueError(
            f"sequences of {length} positions do not split into {count} equal parts of at least 2: pad the sequences"
        )
    own = slice(None), slice(length * index // count, length * (index + 1) // count)
    return structure([ops.get_item(x, own) if _has_positions(x) else x for x in leaves])


def check_targets(batch: Any) -> None:
    """Raise where the targets of a batch are not of positions: their loss would be that of a part of a sequence."""
    targets = trees.flatten(batch[1])[0] if isinstance(batch, tuple | list) and len(batch) in (2, 3) else []
    if not all(map(_has_positions, targets)):
        raise ValueError(
            "a mesh that splits sequences over the axis context needs a target for each position, (batch, length)"
        )


def _has_positions(x: Any) -> bool:
    return hasattr(x, "shape") and len(x.shape) > 1


def check_positionwise(model: Module, plan: Mapping[str, str] | None) -> None:
    """Raise where a layer may compute with several positions, in a way that knows nothing of parts."""
    declared = [pattern for pattern, style in (plan or {}).items() if style == "positionwise"]
    for path, module in model.named_modules():
        if any(fnmatchcase(path, pattern) for pattern in declared) or _is_positionwise(module):
            continue
        raise ValueError(
            f"{path or 'the model'} is of the class {type(module).__name__}, which may compute with several positions, "
            "and each process has some of them: if it does not, let the plan say 'positionwise' of it"
        )


def _is_positionwise(module: Module) -> bool:
    base = next(kind for kind in type(module).__mro__ if kind.__module__.startswith("ember_ml."))
    name = f"{base.__module__}.{base.__name__}".removeprefix("ember_ml.")
    if not any(f"{name}.".startswith(f"{known}.") for known in POSITIONWISE):
        return False
    settings = vars(module)
    if settings.get("axis", -1) != -1 or len(settings.get("shape") or ()) > 1:  # of activations, of normalizations
        return False
    # what a class of the program's own computes with parameters of its own is unknown
    return type(module) is base or not any(True for _ in module.own_variables())

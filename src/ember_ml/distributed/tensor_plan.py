"""Which layers of a model are split over the ``tensor`` axis of a mesh, and how: one table for all backends.

A layer that is split by ``column`` takes a whole input and gives a part of the outputs; one that is split by ``row``
takes such a part and gives the whole sum. Between the two each process computes with its part alone (Shoeybi et al.,
2019).
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any, NamedTuple

from ember_ml.nn.layers.channel_mixing.embedding import Embedding
from ember_ml.nn.layers.channel_mixing.linear import Linear
from ember_ml.nn.layers.channel_mixing.normalization import LayerNorm, RMSNorm
from ember_ml.nn.layers.sequence_mixing.heads import Heads
from ember_ml.nn.modules.module import Module

__all__ = ["PLAN", "STYLES", "Cut", "Layout", "make_layout"]

STYLES: tuple[str, ...] = (
    *("column", "column, gathered", "row", "vocabulary", "summed"),
    *("sequence", "sequence, gathered", "whole", "positionwise"),
)
"""What a plan may say of a layer.

``column``: a ``Linear`` that computes a part of its outputs; ``column, gathered``: and gathers them. ``row``: a
``Linear`` that gets such a part and sums. ``vocabulary``: an ``Embedding`` with a part of its vectors. ``summed``: any
module between a column and a row, whose parameters are whole, and whose gradients are summed. ``whole``: as without
a plan; said of a class alone, of everything in it.

Where tensors between these layers are split along the sequence too: ``sequence``, any module of whose result each
process keeps a part of the positions; ``sequence, gathered``, one that gets such a part, and whose results are
gathered.

Where a mesh splits sequences over ``context``: ``positionwise``, any module that computes with each position alone.
"""

PLAN: Mapping[str, str] = {
    "Attention.qkv": "column",
    "Attention.query_norm": "summed",
    "Attention.key_norm": "summed",
    "Attention.output": "row",
    "CrossAttention.query": "column",
    "CrossAttention.key_value": "column",
    "CrossAttention.output": "row",
    "GroupedQueryAttention.qkv": "column",
    "GroupedQueryAttention.query": "column",
    "GroupedQueryAttention.key": "column",
    "GroupedQueryAttention.value": "column",
    "GroupedQueryAttention.query_norm": "summed",
    "GroupedQueryAttention.key_norm": "summed",
    "GroupedQueryAttention.output": "row",
    "MLP.up": "column",
    "MLP.gate": "column",
    "MLP.down": "row",
    "_FusedMLP.gate_up": "column",
    "_FusedMLP.down": "row",
    "CausalModel.embedding": "vocabulary",
    "CausalModel.output": "column, gathered",
    "GPT2.places": "sequence",
    "T5": "whole",  # its biases of positions have all heads
}
"""How the layers of a module are split: by the name of its class, or of one that it derives from, and the layer's.

Those of one module belong together: where one cannot be split evenly, or is of another class, none is.
"""


class Cut(NamedTuple):
    """How a tensor is cut into equal parts along an axis: each part has its share of each of the sections."""

    axis: int
    sections: tuple[int, ...]
    """The lengths of the sections, which together are the whole axis."""

    def bounds(self, part: int, count: int) -> list[tuple[int, int]]:
        """Return where the shares of a part begin and end along the axis, one for each section.

        >>> from ember_ml.distributed.tensor_plan import Cut
        >>> Cut(0, (4, 2)).bounds(1, 2)
        [(2, 4), (5, 6)]
        """
        starts = [0, *accumulate(self.sections)]
        return [
            (start + length * part // count, start + length * (part + 1) // count)
            for start, length in zip(starts, self.sections, strict=False)
        ]


class Layout(NamedTuple):
    """How a model is split over the ``tensor`` axis: the layers and what is cut, in the order of the model."""

    styles: dict[str, str]
    """By the names of the layers."""
    cuts: dict[str, Cut]
    """By the names of the parameters; one of several layers has the first of its names."""


def make_layout(
    model: Module, count: int, plan: Mapping[str, str] | None = None, splits_sequence: bool = False
) -> Layout:
    """Return how ``model`` is split in ``count`` parts; what no row names stays whole.

    The rows of ``plan`` come before those of :data:`PLAN`: patterns of names of layers in the model, as
    ``"blocks.*.up"``, and a style each. A layer that they name and that cannot be split so is an error. With
    ``splits_sequence`` the layers that ``plan`` leaves whole are in the layout too.
    """
    own = dict(plan or {})
    for pattern, style in own.items():
        if style not in STYLES:
            raise ValueError(f"the plan says {style!r} of {pattern!r}, and the styles are {', '.join(STYLES)}")
    layout = Layout({}, {})
    if count == 1:
        return layout
    names = {id(variable): name for name, variable in model.named_variables().items()}
    left_whole = [name for name, module in model.named_modules() if _style_in(PLAN, module) == "whole"]
    for name, parent in model.named_modules():
        styled: dict[str, tuple[Module, str]] = {}
        for key, layer in parent.children():
            path = f"{name}.{key}" if name else key
            given = next((style for pattern, style in own.items() if fnmatchcase(path, pattern)), None)
            is_whole = any(not above or path.startswith(f"{above}.") for above in left_whole)
            style = given or (None if is_whole else _style_in(PLAN, parent, key))
            if given == "whole" and splits_sequence:
                layout.styles[path] = given
            if (
                style is None
                or style in ("whole", "positionwise")
                or (style in _ALONG_SEQUENCE and not splits_sequence)
            ):
                continue
            reason = _find_obstacle(parent, layer, style, count)
            if given is not None and reason:
                raise ValueError(f"the plan splits {path} by {style!r}, and {reason}")
            if reason:
                styled.clear()
                break
            styled[path] = layer, style
        _add_layers(styled, parent, names, layout)
    if splits_sequence:
        _check_sequence(model, layout.styles)
    return layout


_ALONG_SEQUENCE = ("sequence", "sequence, gathered")
_WITHOUT_CUTS = ("summed", *_ALONG_SEQUENCE)
_FIRST, _LAST = ("vocabulary", "sequence"), ("column, gathered", "sequence, gathered")
_POSITIONWISE = (Linear, LayerNorm, RMSNorm)


def _check_sequence(model: Module, styles: Mapping[str, str]) -> None:
    """Raise unless ``model`` can compute with parts of the sequence, by all that is known of it."""
    for wanted, does in ((_FIRST, "begins to split the sequence"), (_LAST, "makes it whole again")):
        if not any(style in wanted for style in styles.values()):
            names = " or ".join(map(repr, wanted))
            raise ValueError(f"no layer of {type(model).__name__} {does}: the plan must say {names} of one")
    whole = [f"{path}." for path, style in styles.items() if style == "whole"]
    left = {path: module for path, module in model.named_modules() if not f"{path}.".startswith(tuple(whole))}
    last = ""
    for path, module in left.items():
        has_parameters = any(True for _ in module.own_variables())
        if isinstance(module, Heads):
            if not any(styles.get(f"{path}.{key}".lstrip(".")) == "column" for key, _ in module.children()):
                raise ValueError(f"{path} is not split, and computes with all positions: the sequence cannot be split")
        elif last and has_parameters:
            raise ValueError(
                f"{path} stands behind {last}, where the sequence is whole again: if it computes with the whole, let "
                "the plan say 'whole' of it; otherwise let it stand before"
            )
        elif has_parameters and path not in styles and type(module) not in _POSITIONWISE:
            raise ValueError(
                f"{path} is of the class {type(module).__name__}, which may compute with several positions: if it does "
                "not, let the plan say 'summed' of it"
            )
        last = path if styles.get(path) in _LAST else last


def _style_in(rows: Mapping[str, str], module: Module, key: str = "") -> str | None:
    classes = [base.__name__ for base in type(module).__mro__]
    return next((rows[row] for row in (f"{name}.{key}".rstrip(".") for name in classes) if row in rows), None)


def _find_obstacle(parent: Module, layer: Module, style: str, count: int) -> str | None:
    """Return why a layer cannot be split so; None where it can."""
    if style in _WITHOUT_CUTS:
        return None
    wanted = Embedding if style == "vocabulary" else Linear
    if type(layer) is not wanted:  # another class may compute in another way
        return f"it is of the class {type(layer).__name__}, and not {wanted.__name__}"
    if not layer.is_built:
        return "its sizes are unknown until it is called"
    uneven = [length for cut in _cuts_of(parent, layer, style).values() for length in cut.sections if length % count]
    if isinstance(parent, Heads):
        uneven += [length for length in (parent.heads, parent.groups) if length % count]
    return f"{uneven[0]} does not split into {count} equal parts" if uneven else None


def _cuts_of(parent: Module, layer: Module, style: str) -> dict[str, Cut]:
    """Return the cuts of a layer's own parameters."""
    if style in _WITHOUT_CUTS:
        return {}
    rows, columns = layer.variable("weight").shape
    if style == "row":
        return {"weight": Cut(1, (columns,))}
    cut = Cut(0, _sections_of(parent, layer, rows))
    has_bias = style != "vocabulary" and layer.bias is not None
    return {"weight": cut, "bias": cut} if has_bias else {"weight": cut}


def _sections_of(parent: Any, layer: Module, rows: int) -> tuple[int, ...]:
    """Return the numbers of rows of what one linear map computes beside each other: queries, keys and values, say."""
    if layer is getattr(parent, "qkv", None):
        return parent.heads * parent.width, parent.groups * parent.width, parent.groups * parent.width
    if layer is getattr(parent, "key_value", None) or layer is getattr(parent, "gate_up", None):
        return rows // 2, rows - rows // 2
    return (rows,)


def _add_layers(
    styled: Mapping[str, tuple[Module, str]], parent: Module, names: Mapping[int, str], layout: Layout
) -> None:
    """Add the layers of one module; none of them where two layers would cut one parameter in different ways."""
    cuts = dict(layout.cuts)
    for layer, style in styled.values():
        for key, cut in _cuts_of(parent, layer, style).items():
            if cuts.setdefault(names[id(layer.variable(key))], cut) != cut:
                return
    layout.cuts.update(cuts)
    layout.styles.update({path: style for path, (_, style) in styled.items()})

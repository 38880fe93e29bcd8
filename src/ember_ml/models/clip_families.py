"""CLIP and SigLIP as data: what each differs in, and the names of tensors."""

from __future__ import annotations

from typing import NamedTuple

from ember_ml.models.names import Names

__all__ = ["FAMILIES", "Family", "pair_names"]


class Family(NamedTuple):
    """What CLIP and SigLIP differ in."""

    is_clip: bool
    activation: str
    epsilon: float
    text_hidden: int
    text_heads: int
    vocabulary: int
    longest: int
    patch: int


_CLIP = Family(True, "quick_gelu", 1e-5, 512, 8, 49408, 77, 32)
_SIGLIP = Family(False, "gelu_pytorch_tanh", 1e-6, 768, 12, 32000, 64, 16)
FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("clip", "clip_text_model", "clip_vision_model"), _CLIP),
    **dict.fromkeys(("siglip", "siglip_text_model", "siglip_vision_model"), _SIGLIP),
}
_LAYER = {
    "layers.{}.attention_norm": "encoder.layers.{}.layer_norm1",
    "layers.{}.attention.query": "encoder.layers.{}.self_attn.q_proj",
    "layers.{}.attention.key": "encoder.layers.{}.self_attn.k_proj",
    "layers.{}.attention.value": "encoder.layers.{}.self_attn.v_proj",
    "layers.{}.attention.output": "encoder.layers.{}.self_attn.out_proj",
    "layers.{}.mlp_norm": "encoder.layers.{}.layer_norm2",
    "layers.{}.mlp.up": "encoder.layers.{}.mlp.fc1",
    "layers.{}.mlp.down": "encoder.layers.{}.mlp.fc2",
}
_TEXT = {
    **_LAYER,
    "embedding": "embeddings.token_embedding",
    "places": "embeddings.position_embedding",
    "norm": "final_layer_norm",
    "head": "head",
}
_IMAGE = {
    **_LAYER,
    "patches.first": "embeddings.class_embedding",
    "patches.map": "embeddings.patch_embedding",
    "patches.places": "embeddings.position_embedding.weight",
    "first_norm": "pre_layrnorm",
    "norm": "post_layernorm",
    "head.query": "head.probe",
    "head.qkv.weight": "head.attention.in_proj_weight",
    "head.qkv.bias": "head.attention.in_proj_bias",
    "head.output": "head.attention.out_proj",
    "head.norm": "head.layernorm",
    "head.mlp.up": "head.mlp.fc1",
    "head.mlp.down": "head.mlp.fc2",
}
_HEADS = {
    "text_map": "text_projection",
    "image_map": "visual_projection",
    "similarity.scale": "logit_scale",
    "similarity.offset": "logit_bias",
    "classifier": "classifier",
}
_IGNORED = [r"(^|\.)embeddings\.position_ids$"]


def pair_names(prefix: str = "", *, is_alone: bool = False, ignored: tuple[str, ...] = ()) -> Names:
    """Return the names of both encoders; ``is_alone``: without the prefixes that tell one from the other."""
    table = dict(_HEADS)
    for ours, theirs, names in (("text", "text_model.", _TEXT), ("image", "vision_model.", _IMAGE)):
        table.update({f"{ours}.{key}": ("" if is_alone else theirs) + name for key, name in names.items()})
    return Names(table, prefix, ignored=[*_IGNORED, *ignored])

"""Small random models of images, and of images and texts, that Transformers writes and computes on PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.reference.pretrained import Case, make, open_with, quietly

__all__ = ["CASES", "IMAGES", "TEXTS", "WrittenImages", "compute", "hide_patches", "write"]

_TINY = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
_VISION = {**_TINY, "image_size": 8, "patch_size": 4}
_TEXT = {**_TINY, "vocab_size": 31, "max_position_embeddings": 9, "eos_token_id": 30}
_LABELS = {"num_labels": 5}


def _vit(head: str = "Model", **settings: Any) -> Case:
    return Case(f"ViT{head}", "ViTConfig", {**_VISION, **settings})


def _dino(head: str = "Model", **settings: Any) -> Case:
    return Case(f"Dinov2{head}", "Dinov2Config", {**_VISION, "mlp_ratio": 2, **settings})


_SMALL = {"hidden_sizes": [8, 16], "depths": [1, 2]}


def _resnet(head: str = "Model", **settings: Any) -> Case:
    return Case(f"ResNet{head}", "ResNetConfig", {**_SMALL, "embedding_size": 8, **settings})


def _convnext(head: str = "Model", version: str = "", **settings: Any) -> Case:
    sizes = {**_SMALL, "num_stages": 2, "patch_size": 2}
    return Case(f"ConvNext{version}{head}", f"ConvNext{version}Config", {**sizes, **settings})


def _pair(name: str, text: dict[str, Any] | None = None, image: dict[str, Any] | None = None, **settings: Any) -> Case:
    parts = {"text_config": {**_TEXT, **(text or {})}, "vision_config": {**_VISION, **(image or {})}}
    return Case(f"{name}Model", f"{name}Config", {**parts, **settings})


IMAGES: dict[str, Case] = {
    "vit": _vit(),
    "vit-classifier": _vit("ForImageClassification", **_LABELS),
    "vit-pooler": _vit(pooler_output_size=12, pooler_act="relu", hidden_act="gelu_new"),
    "vit-no-bias": _vit("ForImageClassification", qkv_bias=False, layer_norm_eps=1e-3),
    "vit-oblong": _vit(image_size=[8, 12], patch_size=[4, 2], num_channels=1, num_attention_heads=4),
    "dinov2": _dino(),
    "dinov2-classifier": _dino("ForImageClassification", **_LABELS),
    "dinov2-gated": _dino(use_swiglu_ffn=True),
    "dinov2-unmasked": _dino(use_mask_token=False, qkv_bias=False),
    "dinov2-scales": _dino(layerscale_value=0.1, mlp_ratio=3, hidden_act="relu", num_hidden_layers=1),
    "clip-images": Case("CLIPVisionModel", "CLIPVisionConfig", _VISION),
    "clip-images-projected": Case(
        "CLIPVisionModelWithProjection", "CLIPVisionConfig", {**_VISION, "projection_dim": 10}
    ),
    "clip-classifier": _pair("CLIP", **_LABELS)._replace(kind="CLIPForImageClassification"),
    "siglip-images": Case("SiglipVisionModel", "SiglipVisionConfig", _VISION),
    "siglip-headless": Case("SiglipVisionModel", "SiglipVisionConfig", {**_VISION, "vision_use_head": False}),
    "siglip-classifier": _pair("Siglip", **_LABELS)._replace(kind="SiglipForImageClassification"),
}
CONVOLUTIONS: dict[str, Case] = {
    "resnet": _resnet(),
    "resnet-classifier": _resnet("ForImageClassification", **_LABELS),
    "resnet-basic": _resnet("ForImageClassification", layer_type="basic"),
    "resnet-early": _resnet(downsample_in_bottleneck=True, downsample_in_first_stage=True),
    "resnet-gelu": _resnet(layer_type="basic", hidden_act="gelu", num_channels=1, depths=[2, 1]),
    "convnext": _convnext(),
    "convnext-classifier": _convnext("ForImageClassification", **_LABELS),
    "convnext-unscaled": _convnext(layer_scale_init_value=0.0, hidden_act="relu"),
    "convnext-patches": _convnext(patch_size=4, hidden_sizes=[8, 8], depths=[2, 2]),
    "convnext-silu": _convnext("ForImageClassification", num_labels=1, hidden_act="silu", layer_norm_eps=1e-3),
    "convnext-v2": _convnext(version="V2"),
    "convnext-v2-relu": _convnext(version="V2", hidden_act="relu", layer_norm_eps=1e-3),
    "convnext-v2-patches": _convnext(version="V2", patch_size=4, hidden_sizes=[8, 8], depths=[2, 2]),
    "convnext-v2-one": _convnext("ForImageClassification", "V2", num_labels=1, depths=[1, 2]),
    "convnext-v2-classifier": _convnext("ForImageClassification", "V2", patch_size=4, hidden_sizes=[8, 8]),
}
IMAGES.update(CONVOLUTIONS)
TEXTS: dict[str, Case] = {
    "clip-texts": Case("CLIPTextModel", "CLIPTextConfig", _TEXT),
    "clip-texts-projected": Case("CLIPTextModelWithProjection", "CLIPTextConfig", {**_TEXT, "projection_dim": 10}),
    "siglip-texts": Case("SiglipTextModel", "SiglipTextConfig", {**_TEXT, "projection_size": 12}),
}
PAIRS: dict[str, Case] = {
    "clip": _pair("CLIP", projection_dim=10),
    "clip-old-end": _pair("CLIP", {"eos_token_id": 2}, {"hidden_act": "gelu"}, projection_dim=12),
    "clip-widths": _pair("CLIP", {"hidden_size": 24, "num_attention_heads": 3}, {"num_hidden_layers": 1}),
    "siglip": _pair("Siglip"),
    "siglip-widths": _pair(
        "Siglip", {"hidden_size": 24, "projection_size": 16, "hidden_act": "gelu"}, {"num_attention_heads": 4}
    ),
}
CASES: dict[str, Case] = {**IMAGES, **TEXTS, **PAIRS}


class WrittenImages(NamedTuple):
    """A model in a folder, and what Transformers computes with it."""

    folder: Path
    images: np.ndarray
    """(batch, height, width, channels)"""
    tokens: list[list[int]]
    mask: list[list[int]]
    result: np.ndarray
    pooled: np.ndarray | None
    """One vector for each image or text, of models that make one."""


def write(name: str, folder: Path) -> WrittenImages:
    """Write a model, and compute with it."""
    case = CASES[name]
    model = quietly(make, case, len(name))
    quietly(model.save_pretrained, folder)
    stream = np.random.default_rng(5)
    vision = case.settings.get("vision_config", case.settings)
    sides = 16 if name in CONVOLUTIONS else vision.get("image_size", 8)
    height, width = sides if isinstance(sides, list) else (sides, sides)
    images = stream.normal(size=(2, height, width, vision.get("num_channels", 3))).astype(np.float32)
    tokens = stream.integers(3, 30, (3, 9))
    mask = np.ones_like(tokens)
    tokens[:, 7], tokens[2, 5], mask[2, 6:] = 30, 30, 0
    result, pooled = compute(name, model, images, tokens, mask)
    return WrittenImages(folder, images, tokens.tolist(), mask.tolist(), result, pooled)


def compute(
    name: str, model: Any, images: np.ndarray, tokens: Any, mask: Any, **settings: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return what a model, or that in a folder, computes: its result and one vector for each image or text."""
    import torch

    model = open_with(CASES[name].kind, model) if isinstance(model, Path) else model
    given: dict[str, Any] = dict(settings)
    if name not in TEXTS:
        given["pixel_values"] = torch.tensor(images).permute(0, 3, 1, 2)
    if name not in IMAGES:
        given.update(input_ids=torch.tensor(tokens), attention_mask=torch.tensor(mask))
    with torch.no_grad():
        found = quietly(model, **given)
    pooled = getattr(found, "pooler_output", None)
    result = found[0].float().numpy()
    if result.ndim == 4:  # features, with the channels before height and width
        result = result.transpose(0, 2, 3, 1)
    return result, None if pooled is None else pooled.float().numpy().reshape(len(result), -1)


def hide_patches(name: str, folder: Path, images: np.ndarray, hidden: list[list[int]]) -> np.ndarray:
    """Return what the model in a folder computes while some patches are hidden."""
    import torch

    model, pixels = open_with(CASES[name].kind, folder), torch.tensor(images).permute(0, 3, 1, 2)
    with torch.no_grad():
        return quietly(model, pixels, bool_masked_pos=torch.tensor(hidden, dtype=torch.bool))[0].numpy()

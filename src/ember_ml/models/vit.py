"""ViT (Dosovitskiy et al., 2021) and DINOv2 (Oquab et al., 2024): encoders of images cut into patches.

A linear map makes a vector of each patch; a learned first vector and positions are added. For each layer
``x = x + attention(norm(x))``, then ``x = x + W2 gelu(W1 norm(x))``; after the last one a norm. DINOv2 multiplies what
each part adds by a learned vector.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ember_ml import ops
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.image_encoder import EncoderBlock, FusedGatedMLP, Patches
from ember_ml.models.names import Names
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings, count_labels
from ember_ml.nn.layers.channel_mixing import MLP, Dropout, LayerNorm, Linear
from ember_ml.typing import MaskLike, Tensor, TensorLike

__all__ = ["ImageClassifier", "ImageEncoder"]


class _Family(NamedTuple):
    """What ViT and DINOv2 differ in."""

    prefix: str
    layer: dict[str, str]
    epsilon: float
    patch: int
    has_scales: bool
    """Whether what each part adds is multiplied by a learned vector."""
    has_pooler: bool
    """Whether the model without a head has a linear map and tanh of the first position."""
    joins_mean: bool
    """Whether the head gets the mean of the patches besides the first position."""


_EMBEDDINGS = {
    "patches.first": "embeddings.cls_token",
    "patches.masked": "embeddings.mask_token",
    "patches.places": "embeddings.position_embeddings",
    "patches.map": "embeddings.patch_embeddings.projection",
    "norm": "layernorm",
    "pooler": "pooler.dense",
}
_ATTENTION = {
    "layers.{}.attention.query": "encoder.layer.{}.attention.attention.query",
    "layers.{}.attention.key": "encoder.layer.{}.attention.attention.key",
    "layers.{}.attention.value": "encoder.layer.{}.attention.attention.value",
    "layers.{}.attention.output": "encoder.layer.{}.attention.output.dense",
}
_VIT = _Family(
    prefix="vit.",
    layer={
        "layers.{}.attention_norm": "encoder.layer.{}.layernorm_before",
        "layers.{}.mlp_norm": "encoder.layer.{}.layernorm_after",
        "layers.{}.mlp.up": "encoder.layer.{}.intermediate.dense",
        "layers.{}.mlp.down": "encoder.layer.{}.output.dense",
    },
    epsilon=1e-12,
    patch=16,
    has_scales=False,
    has_pooler=True,
    joins_mean=False,
)
_DINOV2 = _Family(
    prefix="dinov2.",
    layer={
        "layers.{}.attention_norm": "encoder.layer.{}.norm1",
        "layers.{}.attention_scale": "encoder.layer.{}.layer_scale1.lambda1",
        "layers.{}.mlp_norm": "encoder.layer.{}.norm2",
        "layers.{}.mlp_scale": "encoder.layer.{}.layer_scale2.lambda1",
        "layers.{}.mlp.up": "encoder.layer.{}.mlp.fc1",
        "layers.{}.mlp.gate_up": "encoder.layer.{}.mlp.weights_in",
    },
    epsilon=1e-6,
    patch=14,
    has_scales=True,
    has_pooler=False,
    joins_mean=True,
)
FAMILIES: dict[str, _Family] = {"vit": _VIT, "dinov2": _DINOV2}


class ImageEncoder(PretrainedModel):
    """An encoder without a head: (batch, 1 + patches, hidden) vectors for (batch, height, width, channels) images.

    ``hidden_patches`` is true at patches that a learned vector stands for, of models that have one.
    """

    has_head: bool = False
    family: _Family
    names: Names
    patches: Patches
    drop: Dropout
    layers: list[Any]
    norm: LayerNorm
    pooler: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.family = family = settings.choice("model_type", FAMILIES)
        is_gated = family.has_scales and settings.flag("use_swiglu_ffn", False)
        self.names = self._names(is_gated)
        hidden, heads = settings.integer("hidden_size", 768), settings.integer("num_attention_heads", 12)
        epsilon = settings.number("layer_norm_eps", family.epsilon)
        dropout = settings.number("hidden_dropout_prob", 0.0)
        has_masked = family.has_scales and settings.flag("use_mask_token", True)
        self.patches = Patches(
            settings,
            hidden,
            first=(1, 1, hidden),
            has_batch_axis=True,
            masked=(1, hidden) if has_masked else None,
            patch=family.patch,
        )
        activation = settings.choice("hidden_act", ACTIVATIONS, "gelu")
        if family.has_scales:
            inner = int(hidden * settings.number("mlp_ratio", 4))
        else:
            inner = settings.integer("intermediate_size", 4 * hidden)

        def network() -> MLP | FusedGatedMLP:
            if is_gated:  # two thirds of the width, in whole eights
                return FusedGatedMLP(hidden, (int(inner * 2 / 3) + 7) // 8 * 8, ops.silu)
            return MLP(inner, inputs=hidden, activation=activation)

        self.layers = [
            EncoderBlock(
                hidden,
                heads,
                network(),
                epsilon,
                bias=settings.flag("qkv_bias", True),
                dropout=dropout,
                attention_dropout=settings.number("attention_probs_dropout_prob", 0.0),
                scale=settings.number("layerscale_value", 1.0) if family.has_scales else None,
                dropped=settings.number("drop_path_rate", 0.0) if family.has_scales else 0.0,
            )
            for _ in range(settings.integer("num_hidden_layers", 12, most=1000))
        ]
        self.norm, self.drop = LayerNorm(hidden, epsilon), Dropout(dropout)
        self._has_pooler = family.has_pooler and not self.has_head
        if self._has_pooler:
            self.pooler = Linear(hidden, settings.integer("pooler_output_size", hidden))
            self._pooled = settings.choice("pooler_act", ACTIVATIONS, "tanh")

    def _names(self, is_gated: bool) -> Names:
        table = {**_EMBEDDINGS, **_ATTENTION, **self.family.layer}
        if self.family.has_scales:
            table["layers.{}.mlp.down"] = f"encoder.layer.{{}}.mlp.{'weights_out' if is_gated else 'fc2'}"
        prefix = self.family.prefix
        table = {key: prefix + name for key, name in table.items()}
        ignored = [r"(^|\.)embeddings\.mask_token$"] if not self.family.has_scales else []
        ignored += [r"(^|\.)pooler\."] if self.has_head else [r"^classifier\."]
        names = Names({**table, "classifier": "classifier"}, prefix, ignored=ignored)
        return names if self.has_head else names.without_prefix()

    def forward(self, images: TensorLike, hidden_patches: MaskLike | None = None) -> Tensor:
        return self.hidden_states(images, hidden_patches)

    def hidden_states(self, images: TensorLike, hidden_patches: MaskLike | None = None) -> Tensor:
        """The normalized vectors that the last layer makes of the images."""
        x = self.drop(self.patches(images, hidden_patches))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def pool(self, x: Tensor) -> Tensor:
        """Return the vector of each image: that of the first position, where the model has one through its pooler."""
        first = ops.get_item(x, (slice(None), 0))
        return self._pooled(self.pooler(first)) if self._has_pooler else first

    def embed(self, images: TensorLike) -> Tensor:
        """Return one vector for each image, (batch, hidden)."""
        return self.pool(self.hidden_states(images))


class ImageClassifier(ImageEncoder):
    """An encoder with logits for each image, (batch, labels)."""

    has_head = True
    classifier: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        width = settings.integer("hidden_size", 768) * (2 if self.family.joins_mean else 1)
        self.classifier = Linear(width, count_labels(settings))

    def forward(self, images: TensorLike, hidden_patches: MaskLike | None = None) -> Tensor:
        x = self.hidden_states(images, hidden_patches)
        found = self.pool(x)
        if self.family.joins_mean:
            found = ops.concatenate([found, ops.mean(ops.get_item(x, (slice(None), slice(1, None))), 1)], -1)
        return self.classifier(found)

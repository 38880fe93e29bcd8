"""CLIP (Radford et al., 2021) and SigLIP (Zhai et al., 2023): an encoder of texts and one of images, compared.

Both encoders have layers ``x = x + attention(norm(x))``, then ``x = x + W2 act(W1 norm(x))``. CLIP takes the vector of
the token that ends a text, of tokens that see only those before them, and that of the first position of an image;
SigLIP the last token's, and what a learned query collects from an image. Their cosines, times a learned scale, are the
logits of each pair.
"""

from __future__ import annotations

from typing import Any

from ember_ml import ops
from ember_ml.models.activations import ACTIVATIONS
from ember_ml.models.clip_families import FAMILIES, Family, pair_names
from ember_ml.models.image_encoder import EncoderBlock, Patches, QueryPooling
from ember_ml.models.names import Names
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings, count_labels
from ember_ml.nn.initializers import constant, normal
from ember_ml.nn.layers.base import Layer
from ember_ml.nn.layers.channel_mixing import MLP, Embedding, LayerNorm, Linear
from ember_ml.nn.layers.sequence_mixing.heads import causal_mask
from ember_ml.nn.modules.module import Module
from ember_ml.typing import IndexLike, MaskLike, Tensor, TensorLike

__all__ = ["ImageModel", "ImageTower", "PairClassifier", "PairModel", "ProjectedImages", "ProjectedTexts", "TextModel"]


def _blocks(settings: Settings, family: Family, hidden: int, heads: int) -> list[EncoderBlock]:
    heads = settings.integer("num_attention_heads", heads)
    return [
        EncoderBlock(
            hidden,
            heads,
            _network(settings, family, hidden),
            settings.number("layer_norm_eps", family.epsilon),
            attention_dropout=settings.number("attention_dropout", 0.0),
        )
        for _ in range(settings.integer("num_hidden_layers", 12, most=1000))
    ]


def _network(settings: Settings, family: Family, hidden: int) -> MLP:
    activation = settings.choice("hidden_act", ACTIVATIONS, family.activation)
    return MLP(settings.integer("intermediate_size", 4 * hidden), inputs=hidden, activation=activation)


class TextTower(Module):
    """The encoder of texts."""

    embedding: Embedding
    places: Embedding
    layers: list[Any]
    norm: LayerNorm
    head: Linear

    def __init__(self, settings: Settings, family: Family) -> None:
        self.hidden: int = settings.integer("hidden_size", family.text_hidden)
        self.longest: int = settings.integer("max_position_embeddings", family.longest)
        self.embedding = Embedding(settings.integer("vocab_size", family.vocabulary), self.hidden, normal(0.02))
        self.places = Embedding(self.longest, self.hidden, normal(0.02))
        self.layers = _blocks(settings, family, self.hidden, family.text_heads)
        self.norm = LayerNorm(self.hidden, settings.number("layer_norm_eps", family.epsilon))
        self._is_clip, self._end = family.is_clip, settings.integer("eos_token_id", 49407, least=0)
        if not family.is_clip:
            self.head = Linear(self.hidden, settings.integer("projection_size", self.hidden))

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        tokens = ops.asarray(tokens)
        if tokens.ndim != 2 or not 0 < tokens.shape[1] <= self.longest:
            raise ValueError(
                f"texts are (batch, length) tokens, at most {self.longest} of them (max_position_embeddings), not of "
                f"shape {ops.shape(tokens)}"
            )
        count, device = tokens.shape[1], ops.get_device(tokens)
        x = ops.add(self.embedding(tokens), self.places(ops.expand_dims(ops.arange(count, device=device), 0)))
        is_real = None if mask is None else ops.asarray(mask, dtype="bool", device=device)
        if self._is_clip:
            seen, is_causal = causal_mask(count, count, None, device, is_real)
        else:
            seen, is_causal = None if is_real is None else ops.expand_dims(is_real, (1, 2)), False
        for layer in self.layers:
            x = layer(x, seen, is_causal)
        return self.norm(x)

    def pool(self, x: Tensor, tokens: IndexLike) -> Tensor:
        """Return the vector of each text."""
        if not self._is_clip:
            return self.head(ops.get_item(x, (slice(None), -1)))
        tokens = ops.asarray(tokens)
        # models of before 2023 say 2 and mean the token with the largest number
        marks = tokens if self._end == 2 else ops.cast(ops.equal(tokens, self._end), "int64")
        place = ops.reshape(ops.argmax(marks, -1), (-1, 1, 1))
        return ops.squeeze(ops.take_along_axis(x, ops.broadcast_to(place, (x.shape[0], 1, x.shape[2])), 1), 1)


class ImageTower(Module):
    """The encoder of images."""

    patches: Patches
    layers: list[Any]
    first_norm: LayerNorm
    norm: LayerNorm
    head: Any

    def __init__(self, settings: Settings, family: Family) -> None:
        self.hidden: int = settings.integer("hidden_size", 768)
        heads = settings.integer("num_attention_heads", 12)
        epsilon = settings.number("layer_norm_eps", family.epsilon)
        first = (self.hidden,) if family.is_clip else None
        self.patches = Patches(settings, self.hidden, not family.is_clip, first, patch=family.patch)
        self.layers = _blocks(settings, family, self.hidden, 12)
        self.norm, self._is_clip = LayerNorm(self.hidden, epsilon), family.is_clip
        self._has_head = not family.is_clip and settings.flag("vision_use_head", True)
        if family.is_clip:
            self.first_norm = LayerNorm(self.hidden, epsilon)
        if self._has_head:
            self.head = QueryPooling(self.hidden, heads, _network(settings, family, self.hidden), epsilon)

    def forward(self, images: TensorLike) -> Tensor:
        x = self.patches(images)
        x = self.first_norm(x) if self._is_clip else x
        for layer in self.layers:
            x = layer(x)
        return x if self._is_clip else self.norm(x)  # CLIP has the norm for the first position alone

    def pool(self, x: Tensor) -> Tensor:
        """Return the vector of each image."""
        if self._is_clip:
            return self.norm(ops.get_item(x, (slice(None), 0)))
        if not self._has_head:
            raise ValueError("this model has no head that makes one vector of an image (vision_use_head)")
        return self.head(x)


class TextModel(PretrainedModel):
    """The encoder of texts alone: (batch, length, hidden) vectors of (batch, length) tokens."""

    names: Names
    text: TextTower

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = pair_names(
            "text_model.", is_alone=True, ignored=(r"^vision_model\.", "^visual_", "^logit_", "^text_")
        )
        self.text = TextTower(settings, settings.choice("model_type", FAMILIES))

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        return self.text(tokens, mask)

    def embed(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        """Return one vector for each text."""
        return self.text.pool(self.text(tokens, mask), tokens)


class ProjectedTexts(TextModel):
    """CLIP's encoder of texts alone with its projection: one vector for each text, to be compared with images'."""

    names: Names
    text_map: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = pair_names()
        self.text_map = Linear(self.text.hidden, settings.integer("projection_dim", 512), bias=False)

    def forward(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        return self.text_map(self.embed(tokens, mask))


class ImageModel(PretrainedModel):
    """The encoder of images alone: (batch, positions, hidden) vectors of (batch, height, width, channels) images."""

    names: Names
    image: ImageTower

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = pair_names(
            "vision_model.", is_alone=True, ignored=(r"^text_model\.", "^text_", "^logit_", "^visual_")
        )
        self.image = ImageTower(settings, settings.choice("model_type", FAMILIES))

    def forward(self, images: TensorLike) -> Tensor:
        return self.image(images)

    def embed(self, images: TensorLike) -> Tensor:
        """Return one vector for each image."""
        return self.image.pool(self.image(images))


class ProjectedImages(ImageModel):
    """CLIP's encoder of images alone with its projection: one vector for each image, to be compared with texts'."""

    names: Names
    image_map: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names = pair_names()
        self.image_map = Linear(self.image.hidden, settings.integer("projection_dim", 512), bias=False)

    def forward(self, images: TensorLike) -> Tensor:
        return self.image_map(self.embed(images))


class _Similarity(Layer):
    """The cosines of images with texts, times a learned scale, and in SigLIP plus a learned offset."""

    scale: Any
    offset: Any

    def __init__(self, is_clip: bool, start: float) -> None:
        self._is_clip = is_clip
        self.add_parameter("scale", () if is_clip else (1,), constant(start))
        if not is_clip:
            self.add_parameter("offset", (1,), "zeros")

    def forward(self, images: Tensor, texts: Tensor) -> Tensor:
        cosines = ops.matmul(_direction(images), ops.matrix_transpose(_direction(texts)))
        found = ops.multiply(cosines, ops.exp(self.scale))
        return found if self._is_clip else ops.add(found, self.offset)


class PairModel(PretrainedModel):
    """Both encoders: logits of each image with each text, (images, texts)."""

    names: Names
    family: Family
    text: TextTower
    image: ImageTower
    text_map: Linear
    image_map: Linear
    similarity: Any

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names, self.family = pair_names(), settings.choice("model_type", FAMILIES)
        self.text = TextTower(settings.section("text_config", "text_config_dict"), self.family)
        self.image = ImageTower(settings.section("vision_config", "vision_config_dict"), self.family)
        if self.family.is_clip:
            width = settings.integer("projection_dim", 512)
            self.text_map = Linear(self.text.hidden, width, bias=False)
            self.image_map = Linear(self.image.hidden, width, bias=False)
        start = settings.number("logit_scale_init_value", 2.6592) if self.family.is_clip else 0.0
        self.similarity = _Similarity(self.family.is_clip, start)

    def embed_texts(self, tokens: IndexLike, mask: MaskLike | None = None) -> Tensor:
        """Return the vector of each text; ``mask`` is false, or 0, at padding."""
        found = self.text.pool(self.text(tokens, mask), tokens)
        return self.text_map(found) if self.family.is_clip else found

    def embed_images(self, images: TensorLike) -> Tensor:
        """Return the vector of each image, (batch, height, width, channels)."""
        found = self.image.pool(self.image(images))
        return self.image_map(found) if self.family.is_clip else found

    def forward(self, tokens: IndexLike, images: TensorLike, mask: MaskLike | None = None) -> Tensor:
        return self.similarity(self.embed_images(images), self.embed_texts(tokens, mask))


class PairClassifier(PretrainedModel):
    """The encoder of images with logits of classes, (batch, labels), of the mean of all patches."""

    names: Names
    image: ImageTower
    classifier: Linear

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        family = settings.choice("model_type", FAMILIES)
        self.names = pair_names(ignored=(r"^text_model\.", "^logit_", "^(text|visual)_projection"))
        self.image = ImageTower(settings.section("vision_config", "vision_config_dict"), family)
        self._start = 1 if family.is_clip else 0
        self.classifier = Linear(self.image.hidden, count_labels(settings))

    def forward(self, images: TensorLike) -> Tensor:
        x = ops.get_item(self.image(images), (slice(None), slice(self._start, None)))
        return self.classifier(ops.mean(x, 1))


def _direction(x: Tensor) -> Tensor:
    """Return vectors divided by their lengths."""
    return ops.divide(x, ops.sqrt(ops.sum(ops.square(x), -1, keepdims=True)))

"""BERT and its family as data: keys of config.json, names of tensors, and what each differs in."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DECODER_BIASES", "EMBEDDINGS", "FAMILIES", "IGNORED", "Family"]


class Family(NamedTuple):
    """The keys in config.json, the names of tensors, and what differs from BERT."""

    prefix: str
    keys: dict[str, str]
    layer: dict[str, str]
    heads: dict[str, str]
    has_types: bool = True
    counts_tokens: bool = False
    """Whether positions count tokens that are not padding, from the number of the padding token on."""
    pools: tuple[str, ...] = ()
    """The heads that have a pooler, a linear map and tanh of the first position."""
    activation: str | None = None
    """The activation in the head of masked words; None: that of the layers."""


_KEYS = {
    **{"hidden": "hidden_size", "layers": "num_hidden_layers", "heads": "num_attention_heads"},
    **{"inner": "intermediate_size", "activation": "hidden_act", "dropout": "hidden_dropout_prob"},
    **{"attention_dropout": "attention_probs_dropout_prob", "head_dropout": "classifier_dropout"},
}
_LAYER = {
    "layers.{}.attention.query": "encoder.layer.{}.attention.self.query",
    "layers.{}.attention.key": "encoder.layer.{}.attention.self.key",
    "layers.{}.attention.value": "encoder.layer.{}.attention.self.value",
    "layers.{}.attention.output": "encoder.layer.{}.attention.output.dense",
    "layers.{}.attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "layers.{}.mlp.up": "encoder.layer.{}.intermediate.dense",
    "layers.{}.mlp.down": "encoder.layer.{}.output.dense",
    "layers.{}.mlp_norm": "encoder.layer.{}.output.LayerNorm",
    "pooler": "pooler.dense",
}
_BERT = Family(
    prefix="bert.",
    keys=_KEYS,
    layer=_LAYER,
    heads={
        "words.dense": "cls.predictions.transform.dense",
        "words.norm": "cls.predictions.transform.LayerNorm",
        "words.output.weight": "cls.predictions.decoder.weight",
        "words.output.bias": "cls.predictions.bias",
        "classifier": "classifier",
    },
    pools=("model", "sequence"),
)
_ROBERTA = Family(
    prefix="roberta.",
    keys=_KEYS,
    layer=_LAYER,
    heads={
        "words.dense": "lm_head.dense",
        "words.norm": "lm_head.layer_norm",
        "words.output.weight": "lm_head.decoder.weight",
        "words.output.bias": "lm_head.bias",
        "classifier": "classifier",
        "dense": "classifier.dense",
        "classifier_of_dense": "classifier.out_proj",
    },
    counts_tokens=True,
    pools=("model",),
    activation="gelu",
)
_DISTILBERT = Family(
    prefix="distilbert.",
    keys={
        **{"hidden": "dim", "layers": "n_layers", "heads": "n_heads", "inner": "hidden_dim"},
        **{"activation": "activation", "dropout": "dropout", "attention_dropout": "attention_dropout"},
        "head_dropout": "seq_classif_dropout",
    },
    layer={
        "layers.{}.attention.query": "transformer.layer.{}.attention.q_lin",
        "layers.{}.attention.key": "transformer.layer.{}.attention.k_lin",
        "layers.{}.attention.value": "transformer.layer.{}.attention.v_lin",
        "layers.{}.attention.output": "transformer.layer.{}.attention.out_lin",
        "layers.{}.attention_norm": "transformer.layer.{}.sa_layer_norm",
        "layers.{}.mlp.up": "transformer.layer.{}.ffn.lin1",
        "layers.{}.mlp.down": "transformer.layer.{}.ffn.lin2",
        "layers.{}.mlp_norm": "transformer.layer.{}.output_layer_norm",
    },
    heads={
        "words.dense": "vocab_transform",
        "words.norm": "vocab_layer_norm",
        "words.output": "vocab_projector",
        "classifier": "classifier",
        "dense": "pre_classifier",
    },
    has_types=False,
)
FAMILIES: dict[str, Family] = {"bert": _BERT, "roberta": _ROBERTA, "xlm-roberta": _ROBERTA, "distilbert": _DISTILBERT}
EMBEDDINGS: dict[str, str] = {
    "embedding": "embeddings.word_embeddings",
    "places": "embeddings.position_embeddings",
    "types": "embeddings.token_type_embeddings",
    "norm": "embeddings.LayerNorm",
}
IGNORED: list[str] = [r"embeddings\.position_ids$", r"^cls\.seq_relationship\."]
DECODER_BIASES: dict[str, str] = {
    "cls.predictions.bias": "cls.predictions.decoder.bias",
    "lm_head.bias": "lm_head.decoder.bias",
}
"""The bias of masked words where the vectors of tokens are not shared; the first name is then of a tensor not used."""

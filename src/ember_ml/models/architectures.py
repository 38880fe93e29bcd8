"""The architectures that can be opened: the names in ``config.json``, and the class of each."""

from __future__ import annotations

from importlib import import_module

from ember_ml.errors import ConfigError
from ember_ml.models.pretrained import PretrainedModel
from ember_ml.models.settings import Settings

__all__ = ["ARCHITECTURES", "find_class"]

_DECODERS = (
    *("Gemma2ForCausalLM", "Gemma3ForCausalLM", "LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM"),
    *("Phi3ForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "SmolLM3ForCausalLM"),
)
_HEADS = {
    "Model": "Encoder",
    "ForMaskedLM": "MaskedWords",
    "ForSequenceClassification": "SequenceClassifier",
    "ForTokenClassification": "TokenClassifier",
}
ARCHITECTURES: dict[str, str] = {
    "GPT2LMHeadModel": "gpt2:GPT2",
    "Mamba2ForCausalLM": "mamba2:Mamba2",
    "ModernBertModel": "modernbert:ModernBert",
    "ModernBertForMaskedLM": "modernbert:ModernBertWords",
    "ModernBertForSequenceClassification": "modernbert:ModernBertSequence",
    "ModernBertForTokenClassification": "modernbert:ModernBertTokens",
    "T5ForConditionalGeneration": "t5:T5",
    "WhisperForConditionalGeneration": "whisper:Whisper",
    **dict.fromkeys(_DECODERS, "llama:CausalDecoder"),
    **dict.fromkeys(("ViTModel", "Dinov2Model"), "vit:ImageEncoder"),
    **dict.fromkeys(("ViTForImageClassification", "Dinov2ForImageClassification"), "vit:ImageClassifier"),
    **dict.fromkeys(("CLIPModel", "SiglipModel"), "clip:PairModel"),
    **dict.fromkeys(("CLIPTextModel", "SiglipTextModel"), "clip:TextModel"),
    **dict.fromkeys(("CLIPVisionModel", "SiglipVisionModel"), "clip:ImageModel"),
    **dict.fromkeys(("CLIPForImageClassification", "SiglipForImageClassification"), "clip:PairClassifier"),
    "ResNetModel": "resnet:ResNet",
    "ResNetForImageClassification": "resnet:ResNetClassifier",
    **dict.fromkeys(("ConvNextModel", "ConvNextV2Model"), "convnext:ConvNext"),
    **dict.fromkeys(
        ("ConvNextForImageClassification", "ConvNextV2ForImageClassification"), "convnext:ConvNextClassifier"
    ),
    "CLIPTextModelWithProjection": "clip:ProjectedTexts",
    "CLIPVisionModelWithProjection": "clip:ProjectedImages",
    **{
        family + head: f"bert:{name}"
        for family in ("Bert", "DistilBert", "Roberta", "XLMRoberta")
        for head, name in _HEADS.items()
    },
}
"""By the name of an architecture: the module in this folder, and the class."""
_USUAL = {
    "bert": "BertModel",
    "clip": "CLIPModel",
    "clip_text_model": "CLIPTextModel",
    "clip_vision_model": "CLIPVisionModel",
    "convnext": "ConvNextModel",
    "convnextv2": "ConvNextV2Model",
    "dinov2": "Dinov2Model",
    "distilbert": "DistilBertModel",
    "gpt2": "GPT2LMHeadModel",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3_text": "Gemma3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "mamba2": "Mamba2ForCausalLM",
    "mistral": "MistralForCausalLM",
    "mixtral": "MixtralForCausalLM",
    "modernbert": "ModernBertModel",
    "phi3": "Phi3ForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "resnet": "ResNetModel",
    "roberta": "RobertaModel",
    "siglip": "SiglipModel",
    "siglip_text_model": "SiglipTextModel",
    "siglip_vision_model": "SiglipVisionModel",
    "smollm3": "SmolLM3ForCausalLM",
    "t5": "T5ForConditionalGeneration",
    "vit": "ViTModel",
    "whisper": "WhisperForConditionalGeneration",
    "xlm-roberta": "XLMRobertaModel",
}
"""By model_type: the architecture of a config.json that names none."""


def find_class(settings: Settings) -> type[PretrainedModel]:
    """Return the class of the model that the settings describe; raise where there is none."""
    _refuse_code(settings)
    ours, others = settings.table("quantization"), settings.get("quantization_config")
    if others is not None and others != ours:
        raise ConfigError(
            f"{settings.where} describes quantized weights in quantization_config that Ember ML does not read; it "
            "reads those of mlx-lm, and originals"
        )
    kind = settings.get("model_type")
    if kind is None and settings.get("architecture") is not None:
        from ember_ml.models.timm_models import find_timm_class  # which is loaded for its own folders alone

        return find_timm_class(settings)
    if not isinstance(kind, str) or kind not in _USUAL:
        raise ConfigError(f"{settings.where} has model_type = {kind!r:.80}; Ember ML has {', '.join(sorted(_USUAL))}")
    named = settings.get("architectures", [_USUAL[kind]])
    if not isinstance(named, list) or not named or not isinstance(named[0], str) or named[0] not in ARCHITECTURES:
        raise ConfigError(
            f"{settings.where} has architectures = {named!r:.80}; Ember ML has {', '.join(ARCHITECTURES)}"
        )
    module, _, name = ARCHITECTURES[named[0]].partition(":")
    if module != ARCHITECTURES[_USUAL[kind]].partition(":")[0]:
        raise ConfigError(
            f"{settings.where} has architectures = {named[0]!r}, which is no model of model_type {kind!r}"
        )
    return getattr(import_module(f"ember_ml.models.{module}"), name)


def _refuse_code(settings: Settings) -> None:
    for key in ("auto_map", "trust_remote_code"):
        if settings.get(key):
            raise ConfigError(
                f"{settings.where} has {key}: it asks to run Python code that came with the weights, and Ember ML runs "
                "none. If the model is what its model_type says, remove the key"
            )

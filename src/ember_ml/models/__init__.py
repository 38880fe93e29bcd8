"""Models that people already have: folders in the format of Hugging Face, opened on every backend and written back."""

from ember_ml import _lazy

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "ARCHITECTURES": "ember_ml.models.architectures:ARCHITECTURES",
        "AudioProcessor": "ember_ml.models.processors:AudioProcessor",
        "ImageProcessor": "ember_ml.models.processors:ImageProcessor",
        "PretrainedModel": "ember_ml.models.pretrained:PretrainedModel",
        "SentenceEncoder": "ember_ml.models.sentences:SentenceEncoder",
        "TextStream": "ember_ml.models.text_streams:TextStream",
        "Tokenizer": "ember_ml.models.tokenizers:Tokenizer",
        "add_lora": "ember_ml.models.lora:add_lora",
        "dequantize": "ember_ml.models.quantization:dequantize",
        "from_config": "ember_ml.models.loading:from_config",
        "load": "ember_ml.models.loading:load",
        "load_adapter": "ember_ml.models.adapter_files:load_adapter",
        "load_sentence_encoder": "ember_ml.models.sentences:load_sentence_encoder",
        "merge_adapter": "ember_ml.models.lora:merge_adapter",
        "processor": "ember_ml.models.processors:processor",
        "quantize": "ember_ml.models.quantization:quantize",
        "remove_adapter": "ember_ml.models.lora:remove_adapter",
        "save_adapter": "ember_ml.models.adapter_files:save_adapter",
        "tokenizer": "ember_ml.models.tokenizers:tokenizer",
        "unmerge_adapter": "ember_ml.models.lora:unmerge_adapter",
    },
)

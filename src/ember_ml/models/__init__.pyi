# Written by utils/make_tables.py: the public names, for editors and type checkers.

from ember_ml.models.adapter_files import load_adapter as load_adapter
from ember_ml.models.adapter_files import save_adapter as save_adapter
from ember_ml.models.architectures import ARCHITECTURES as ARCHITECTURES
from ember_ml.models.loading import from_config as from_config
from ember_ml.models.loading import load as load
from ember_ml.models.lora import add_lora as add_lora
from ember_ml.models.lora import merge_adapter as merge_adapter
from ember_ml.models.lora import remove_adapter as remove_adapter
from ember_ml.models.lora import unmerge_adapter as unmerge_adapter
from ember_ml.models.pretrained import PretrainedModel as PretrainedModel
from ember_ml.models.processors import AudioProcessor as AudioProcessor
from ember_ml.models.processors import ImageProcessor as ImageProcessor
from ember_ml.models.processors import processor as processor
from ember_ml.models.quantization import dequantize as dequantize
from ember_ml.models.quantization import quantize as quantize
from ember_ml.models.sentences import SentenceEncoder as SentenceEncoder
from ember_ml.models.sentences import load_sentence_encoder as load_sentence_encoder
from ember_ml.models.text_streams import TextStream as TextStream
from ember_ml.models.tokenizers import Tokenizer as Tokenizer
from ember_ml.models.tokenizers import tokenizer as tokenizer

__all__ = [
    "ARCHITECTURES",
    "AudioProcessor",
    "ImageProcessor",
    "PretrainedModel",
    "SentenceEncoder",
    "TextStream",
    "Tokenizer",
    "add_lora",
    "dequantize",
    "from_config",
    "load",
    "load_adapter",
    "load_sentence_encoder",
    "merge_adapter",
    "processor",
    "quantize",
    "remove_adapter",
    "save_adapter",
    "tokenizer",
    "unmerge_adapter",
]

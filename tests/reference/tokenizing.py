"""Small tokenizers that the library ``tokenizers`` trains, and what Transformers makes of conversations."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

__all__ = ["TEMPLATE", "chat_of_transformers", "tokens_of_transformers", "write_tokenizer", "write_word_tokenizer"]

TEMPLATE = """{{ bos_token }}{% for message in messages %}
{% if message.role not in ['user', 'assistant'] %}{{ raise_exception('unknown role ' + message.role) }}{% endif %}
<|{{ message.role }}|> {{ message['content'] | trim }}{{ eos_token }}
{% endfor %}{% if tools is defined %}{{ tools | tojson }}{% endif %}
{% if add_generation_prompt %}<|assistant|>{% endif %}"""


def write_tokenizer(folder: Path, template: str | None = TEMPLATE) -> None:
    """Train a byte-level tokenizer on a few words and write it as Transformers does."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<|user|>", "<|assistant|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(["the hat and the cat sat on the mat", "über Straße, naïve café"], trainer)
    inner.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import PreTrainedTokenizerFast

        whole = PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>")
        whole.chat_template = template
        whole.save_pretrained(folder)


def write_word_tokenizer(folder: Path) -> None:
    """Train a tokenizer whose tokens begin with their blank, which its decoder drops before the first."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    inner = Tokenizer(models.BPE(unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=200, special_tokens=["<unk>", "</s>"], show_progress=False)
    inner.train_from_iterator(["the hat and the cat sat on the mat"] * 9, trainer)
    inner.save(str(folder / "tokenizer.json"))


def _open(folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(folder)


def tokens_of_transformers(folder: Path, text: str) -> tuple[list[int], str]:
    """Return the tokens of a text, and their text."""
    whole = _open(folder)
    tokens = whole(text)["input_ids"]
    return tokens, whole.decode(tokens, skip_special_tokens=True)


def chat_of_transformers(folder: Path, messages: list[dict[str, str]], **values: Any) -> str:
    """Return a conversation as text."""
    return _open(folder).apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **values)

"""Tokenizers and chat templates: what Transformers makes of the same files, and templates that try to get out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ember_ml import models
from ember_ml.errors import ConfigError
from tests.reference import tokenizing

CHAT = [
    {"role": "user", "content": " the hat? "},
    {"role": "assistant", "content": "Sat on <b>the</b> mat."},
    {"role": "user", "content": "über"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    tokenizing.write_tokenizer(path)
    return path


@pytest.mark.parametrize("text", ["the cat sat", "naïve Straße 🙂\n\ttab", "", "  two  spaces", "</s> and <|user|>"])
def test_tokens_are_those_of_transformers(text: str, folder: Path) -> None:
    tokens, decoded = tokenizing.tokens_of_transformers(folder, text)
    tokenizer = models.tokenizer(folder)
    assert tokenizer.encode(text) == tokens
    assert tokenizer.decode(tokens) == decoded
    assert [tokenizer.token_of("<s>"), *tokenizer.encode(text, add_special_tokens=False)] == tokens


def test_chats_are_those_of_transformers(folder: Path) -> None:
    tokenizer = models.tokenizer(folder)
    assert tokenizer.special == {"bos_token": "<s>", "eos_token": "</s>"}
    assert tokenizer.render_chat(CHAT) == tokenizing.chat_of_transformers(folder, CHAT)
    tools = [{"name": "weather <b>", "städte": ["Ulm"]}]
    assert tokenizer.render_chat(CHAT, tools=tools) == tokenizing.chat_of_transformers(folder, CHAT, tools=tools)
    assert tokenizer.encode_chat(CHAT) == tokenizer.encode(tokenizer.render_chat(CHAT), add_special_tokens=False)
    assert not tokenizer.render_chat(CHAT, add_generation_prompt=False).endswith("<|assistant|>")
    with pytest.raises(ConfigError, match="unknown role judge"):
        tokenizer.render_chat([{"role": "judge", "content": ""}])


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{{ cycler.__init__.__globals__.os.popen('true').read() }}",
        "{% for x in range(99999999) %}{% endfor %}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update(role='x') }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% if %}",
        "{{ 1 / 0 }}",
        "{{ '%s' | format(messages.__class__.__base__) }}{{ ''|attr('__class__')|attr('__mro__') }}",
    ],
)
def test_templates_cannot_get_out(template: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    tokenizer = models.tokenizer(tmp_path)
    chat = [dict(message) for message in CHAT]
    try:
        rendered = tokenizer.render_chat(chat)
    except ConfigError:
        rendered = ""
    assert "class" not in rendered  # Jinja renders some of what is forbidden as nothing
    assert "module" not in rendered
    assert chat == CHAT


def test_damaged_files_raise(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no tokenizer\.json"):
        models.tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(ConfigError, match=r"tokenizer\.json cannot be read"):
        models.tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    with pytest.raises(ConfigError, match="has no chat template"):
        models.tokenizer(tmp_path).render_chat(CHAT)
    (tmp_path / "tokenizer_config.json").write_text('{"bos_token": 7}')
    with pytest.raises(ConfigError, match="special token"):
        models.tokenizer(tmp_path)
    named = [{"name": "tool_use", "template": "a"}, {"name": "default", "template": "b{{ bos_token }}"}]
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": named, "bos_token": {"content": "<s>"}})
    )
    assert models.tokenizer(tmp_path).render_chat([]) == "b<s>"

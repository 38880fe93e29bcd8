"""Turn text into tokens and back, and conversations into text: the tokenizer that came with a model.

``tokenizer.json`` is read by the library ``tokenizers``, chat templates are rendered by Jinja's sandbox, in which a
template can neither reach Python's objects nor change what it gets.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import Any

from ember_ml.errors import ConfigError
from ember_ml.models.folder import Folder
from ember_ml.models.hub import open_folder

__all__ = ["Tokenizer", "tokenizer"]

_LONGEST_TEMPLATE = 1 << 20
_MOST_STEPS = 100_000
_SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token")


class Tokenizer:
    """The tokenizer of a model; :func:`tokenizer` reads it from a folder."""

    special: dict[str, str]
    """The special tokens by their role, as ``bos_token``."""

    def __init__(self, folder: Folder) -> None:
        try:
            import tokenizers
        except ImportError as error:
            raise ImportError(
                "models.tokenizer needs the package tokenizers: pip install 'ember-ml[models]'"
            ) from error
        if not folder.has("tokenizer.json"):
            raise FileNotFoundError(
                f"{folder.path} has no tokenizer.json, which is the only form of tokenizer that is read"
            )
        text = folder.read_bytes("tokenizer.json")
        try:
            self._inner: Any = tokenizers.Tokenizer.from_str(text.decode())
        except Exception as error:  # the library raises Exception itself
            raise ConfigError(f"{folder.path / 'tokenizer.json'} cannot be read: {error}") from error
        self._inner.no_padding()
        self._inner.no_truncation()
        config = folder.read_json("tokenizer_config.json") if folder.has("tokenizer_config.json") else {}
        self.special = {name: _text_of(config[name]) for name in _SPECIAL if config.get(name) is not None}
        self._template, self._where = _find_template(folder, config), str(folder.path)

    def __len__(self) -> int:
        """The number of tokens, special ones included."""
        return self._inner.get_vocab_size()

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Return the tokens of a text, with those that the model expects around it unless told otherwise."""
        return self._inner.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of tokens, without special ones unless told otherwise."""
        return self._inner.decode(list(tokens), skip_special_tokens=skip_special_tokens)

    def token_of(self, text: str) -> int | None:
        """Return the number of a token, such as ``"<s>"``, or None where there is no such token."""
        return self._inner.token_to_id(text)

    def render_chat(
        self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True, **values: Any
    ) -> str:
        """Return a conversation as the text that the model was trained on, by the template of its folder.

        A message is ``{"role": "user", "content": "..."}``. With ``add_generation_prompt`` the text ends where the
        answer begins. ``values`` are further names that the template may use.
        """
        if self._template is None:
            raise ConfigError(f"the tokenizer in {self._where} has no chat template")
        try:
            from jinja2 import TemplateError
            from jinja2.sandbox import ImmutableSandboxedEnvironment

            class Sandbox(ImmutableSandboxedEnvironment):
                """Jinja's sandbox, with products and powers that cannot fill the memory."""

                intercepted_binops = frozenset(["*", "**"])

                def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
                    return _multiply(operator, left, right)

        except ImportError as error:
            raise ImportError("chat templates need the package jinja2: pip install 'ember-ml[models]'") from error
        environment = Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        environment.filters["tojson"] = _to_json
        more: dict[str, Any] = {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
        more["range"] = _limited_range()
        environment.globals.update(more)
        names = {
            **{"tools": None, "documents": None},  # templates ask whether they are none
            **self.special,
            **values,
            "messages": list(messages),
            "add_generation_prompt": add_generation_prompt,
        }
        try:
            return environment.from_string(self._template).render(**names)
        except (
            TemplateError,
            ArithmeticError,
            LookupError,
            MemoryError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise ConfigError(f"the chat template in {self._where} cannot be used: {error}") from error

    def encode_chat(
        self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True, **values: Any
    ) -> list[int]:
        """Return the tokens of :meth:`render_chat`; the template writes the special tokens itself."""
        return self.encode(self.render_chat(messages, add_generation_prompt, **values), add_special_tokens=False)


def tokenizer(folder: str | PathLike[str], *, revision: str | None = None) -> Tokenizer:
    """Return the tokenizer in the folder of a model: ``tokenizer.json``, its special tokens and its chat template.

    ``folder`` and ``revision`` are those of :func:`ember_ml.models.load`.
    """
    return Tokenizer(open_folder(folder, revision))


def _text_of(token: Any) -> str:
    """Return the text of a special token, which is stored as text or as a table."""
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str):
        raise ConfigError(f"tokenizer_config.json has {token!r:.80} for a special token")
    return text


def _find_template(folder: Folder, config: Mapping[str, Any]) -> str | None:
    if folder.has("chat_template.jinja"):
        try:
            return folder.read_bytes("chat_template.jinja", _LONGEST_TEMPLATE).decode()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{folder.path / 'chat_template.jinja'} is not text: {error}") from error
    found = config.get("chat_template")
    if isinstance(found, list):  # several, by name
        named = {entry.get("name"): entry.get("template") for entry in found if isinstance(entry, dict)}
        found = named.get("default")
    if found is not None and (not isinstance(found, str) or len(found) > _LONGEST_TEMPLATE):
        raise ConfigError(f"{folder.path / 'tokenizer_config.json'} has a chat_template that is not a short text")
    return found


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, **more: Any) -> str:
    """Return JSON as the templates expect it, without Jinja's escapes for web pages."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, **more)


def _multiply(operator: str, left: Any, right: Any) -> Any:
    """Return a product or a power of a template, unless it is out of all proportion."""
    sizes = [len(side) if isinstance(side, str | bytes | list | tuple) else side for side in (left, right)]
    if operator == "*" and any(isinstance(side, str | bytes | list | tuple) for side in (left, right)):
        is_large = math.prod(sizes) > _LONGEST_TEMPLATE
    else:
        is_large = any(isinstance(side, int) and abs(side) > (1000 if operator == "**" else 2**64) for side in sizes)
    if is_large:
        raise ValueError(f"{operator} of a text or number that is too large")
    return left * right if operator == "*" else left**right


def _limited_range() -> Callable[..., range]:
    """Return a ``range`` for one rendering, in which all loops over ranges together have a limited number of steps."""
    left = _MOST_STEPS

    def limited(*bounds: int) -> range:
        nonlocal left
        found = range(*bounds)
        left -= len(found)
        if left < 0:
            raise ValueError(f"its ranges have more than {_MOST_STEPS} numbers")
        return found

    return limited


def _refuse(message: str) -> None:
    """Raise for a template that refuses a conversation."""
    raise ValueError(message)

"""Read requests in OpenAI's form, checked: what is wrong becomes an error in OpenAI's form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ember_ml.errors import ConfigError
from ember_ml.models.tokenizers import Tokenizer

__all__ = ["ApiError", "Request", "Served", "read_body", "read_chat", "read_completion"]

_IGNORED = {"metadata", "prompt_cache_key", "safety_identifier", "service_tier", "store", "user"}
"""Keys that do not change the text."""
_NOT_HERE: dict[str, tuple[Any, ...]] = {
    **{"best_of": (1,), "echo": (False,), "suffix": ("",), "logprobs": (False,), "top_logprobs": (0,)},
    **{"frequency_penalty": (0, 0.0), "presence_penalty": (0, 0.0), "logit_bias": ({},)},
    **{"tools": ([],), "functions": ([],), "tool_choice": ("none", "auto"), "function_call": ("none", "auto")},
    **{"parallel_tool_calls": (True, False), "response_format": ({"type": "text"},)},
    **{"modalities": (["text"],), "audio": (), "prediction": (), "reasoning_effort": ()},
}
"""Keys of OpenAI that are not served, with the values that ask for nothing."""
_MOST_TEXTS = 128
_LARGEST_SEED = 2**63 - 1


class ApiError(Exception):
    """A request that cannot be answered, as OpenAI's clients expect it."""

    status: int

    def __init__(
        self,
        message: str,
        param: str | None = None,
        status: int = 400,
        code: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.status, self._param, self._code, self._kind = status, param, code, kind

    @property
    def body(self) -> dict[str, Any]:
        """What the client gets."""
        return {"error": {"message": str(self), "type": self._kind, "param": self._param, "code": self._code}}


@dataclass(frozen=True)
class Served:
    """What requests are about: a model with its tokenizer."""

    name: str
    tokenizer: Tokenizer
    vocabulary: int
    """The number of tokens that the model knows."""
    longest: int
    """The most tokens of a prompt and its answer together."""


@dataclass(frozen=True)
class Request:
    """A request that was checked."""

    prompts: list[list[int]]
    """The tokens of each text to be written: every prompt, ``n`` times."""
    read: int
    """The number of tokens of all prompts, each counted once."""
    most: list[int]
    """The most tokens of each text."""
    temperature: float = 1.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: list[str] = field(default_factory=list)
    streams: bool = False
    counts_usage: bool = False


def read_body(data: bytes) -> dict[str, Any]:
    """Return the object in the body of a request."""
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ApiError(f"the body of the request is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ApiError(f"the body of the request is a {type(found).__name__}; it must be an object")
    return found


def read_completion(body: Mapping[str, Any], served: Served) -> Request:
    """Check a request to ``/v1/completions``."""
    given = _Given(body)
    given.check_model(served)
    prompts = _read_prompts(given.get("prompt"), served)
    return _finish(given, served, "prompt", prompts, given.integer("max_tokens", 16, 1))


def read_chat(body: Mapping[str, Any], served: Served) -> Request:
    """Check a request to ``/v1/chat/completions``."""
    given = _Given(body)
    given.check_model(served)
    messages = _read_messages(given.get("messages"))
    try:
        prompt = served.tokenizer.encode_chat(messages)
    except ConfigError as error:  # the template refuses it, or there is none
        raise ApiError(str(error), "messages") from error
    most = given.integer("max_completion_tokens", None, 1)
    older = given.integer("max_tokens", None, 1)
    return _finish(given, served, "messages", [prompt], older if most is None else most)


class _Given:
    """The keys of a request, each read with its type; ``null`` and a key that is not there mean the default."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._body, self._asked = {key: value for key, value in body.items() if value is not None}, {"model"}

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        return self._body.get(key, default)

    def integer(self, key: str, default: int | None, least: int, most: int = _LARGEST_SEED) -> int | None:
        value = self.get(key, default)
        if value is not None and (type(value) is not int or not least <= value <= most):
            raise ApiError(f"{key} is {value!r:.80}; it must be a whole number from {least} to {most}", key)
        return value

    def number(self, key: str, default: float, least: float, most: float) -> float:
        value = self.get(key, default)
        if type(value) not in (int, float) or not math.isfinite(value) or not least <= value <= most:
            raise ApiError(f"{key} is {value!r:.80}; it must be a number from {least} to {most}", key)
        return float(value)

    def flag(self, key: str) -> bool:
        value = self.get(key, False)
        if type(value) is not bool:
            raise ApiError(f"{key} is {value!r:.80}; it must be true or false", key)
        return value

    def check_model(self, served: Served) -> None:
        name = self.get("model")
        if not isinstance(name, str):
            raise ApiError(f"model is {name!r:.80}; it must be the name of a model: {served.name!r}", "model")
        if name != served.name:
            raise ApiError(
                f"there is no model {name!r:.200}; this server has {served.name!r}", "model", 404, "model_not_found"
            )

    def check_rest(self) -> None:
        """Raise for keys that nobody asked for: a wish that is passed over would be a wrong answer."""
        for key, value in self._body.items():
            if key in self._asked or key in _IGNORED:
                continue
            if key not in _NOT_HERE:
                raise ApiError(f"{key!r:.80} is not a key of this request", key[:80])
            if not any(type(value) is type(usual) and value == usual for usual in _NOT_HERE[key]):
                raise ApiError(f"{key} = {value!r:.80} is not served here; leave it out", key)


def _finish(given: _Given, served: Served, key: str, prompts: list[list[int]], most: int | None) -> Request:
    """Check the tokens of the prompts, which came as ``key``, and read the keys that all requests have."""
    copies = given.integer("n", 1, 1, _MOST_TEXTS)
    assert copies is not None
    if len(prompts) * copies > _MOST_TEXTS:
        raise ApiError(f"{len(prompts)} prompts, n = {copies}: a request is for at most {_MOST_TEXTS} texts", "n")
    lengths = [_count_new(prompt, most, served, key) for prompt in prompts]
    options = given.get("stream_options", {})
    streams = given.flag("stream")
    if not isinstance(options, dict) or (options and not streams):
        raise ApiError("stream_options is an object, and only for requests with stream = true", "stream_options")
    top_p = given.number("top_p", 1.0, 0.0, 1.0)
    request = Request(
        prompts=[prompt for prompt in prompts for _ in range(copies)],
        read=sum(map(len, prompts)),
        most=[length for length in lengths for _ in range(copies)],
        temperature=given.number("temperature", 1.0, 0.0, 2.0),
        top_p=None if top_p == 1 else max(top_p, 1e-6),  # OpenAI's 0 means the likeliest token
        top_k=given.integer("top_k", None, 1),
        seed=given.integer("seed", None, -_LARGEST_SEED),
        stop=_read_stop(given.get("stop", [])),
        streams=streams,
        counts_usage=_Given(options).flag("include_usage"),
    )
    given.check_rest()
    return request


def _count_new(prompt: list[int], most: int | None, served: Served, key: str) -> int:
    """Return the most tokens that are written after a prompt; raise where the model cannot read it."""
    if not prompt:
        raise ApiError(f"{key} has no token, and this model begins with one at least", key)
    if not all(0 <= token < served.vocabulary for token in prompt):
        raise ApiError(f"{key} has tokens beyond the {served.vocabulary} of this model", key)
    room = served.longest - len(prompt)
    if room < (most or 1):
        asked = "" if most is None else f", and {most} new ones were asked for"
        raise ApiError(
            f"{key} has {len(prompt)} tokens{asked}; this model takes {served.longest} in all",
            key,
            code="context_length_exceeded",
        )
    return room if most is None else most


def _read_prompts(prompt: Any, served: Served) -> list[list[int]]:
    """Return the tokens of each prompt: a text, a list of texts, of tokens, or of lists of tokens."""
    is_tokens = isinstance(prompt, list) and bool(prompt) and all(type(token) is int for token in prompt)
    entries: Any = [prompt] if isinstance(prompt, str) or is_tokens else prompt
    if not isinstance(entries, list) or not entries or len(entries) > _MOST_TEXTS:
        raise ApiError(
            f"prompt is {prompt!r:.80}; it must be a text, tokens, or a list of up to {_MOST_TEXTS} such", "prompt"
        )
    found = []
    for entry in entries:
        if isinstance(entry, str):
            tokens = served.tokenizer.encode(entry)
        elif isinstance(entry, list) and all(type(token) is int for token in entry):
            tokens = entry
        else:
            raise ApiError(f"prompt has {entry!r:.80}, which is neither a text nor a list of tokens", "prompt")
        found.append(tokens)
    return found


def _read_messages(messages: Any) -> list[dict[str, Any]]:
    """Return the messages of a conversation, their contents as text."""
    if not isinstance(messages, list) or not messages:
        raise ApiError(f"messages is {messages!r:.80}; it must be a list with a message at least", "messages")
    found = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ApiError(f"{where} is {message!r:.80}; it must be an object with a role and a content", "messages")
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(_read_part(part, where) for part in content)
        if not isinstance(content, str):
            raise ApiError(f"the content of {where} is {content!r:.80}; it must be text", "messages")
        found.append({**message, "content": content})
    return found


def _read_part(part: Any, where: str) -> str:
    """Return the text of a part of a message."""
    text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
    if not isinstance(text, str):
        raise ApiError(f"{where} has a part {part!r:.80}; this model reads text alone", "messages")
    return text


def _read_stop(stop: Any) -> list[str]:
    found = [stop] if isinstance(stop, str) else stop
    if not isinstance(found, list) or len(found) > 4 or not all(isinstance(text, str) and text for text in found):
        raise ApiError(f"stop is {stop!r:.80}; it must be a text, or a list of up to 4 texts", "stop")
    return found

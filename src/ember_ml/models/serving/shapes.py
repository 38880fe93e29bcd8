"""The forms of answers that OpenAI's protocol has for texts and for conversations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["CHAT", "COMPLETION", "Shape"]


class Shape(NamedTuple):
    """How the answers of an endpoint look."""

    prefix: str
    """How ids begin."""
    whole: str
    part: str
    """What an answer, and a piece of one, are called."""
    choice: Callable[[int, str, str | None], dict[str, Any]]
    piece: Callable[[int, str, str | None], dict[str, Any]]
    """A text, and a piece of one, from its number and the reason of its end, None where it goes on."""
    opening: dict[str, Any] | None
    """The piece that the stream of a text begins with, without its number."""


def _show_text(index: int, text: str, ending: str | None) -> dict[str, Any]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": ending}


def _show_message(index: int, text: str, ending: str | None) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, "refusal": None}
    return {"index": index, "message": message, "logprobs": None, "finish_reason": ending}


def _show_delta(index: int, text: str, ending: str | None) -> dict[str, Any]:
    delta = {"content": text} if text else {}
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": ending}


_OPENING = {"delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}

COMPLETION: Shape = Shape("cmpl", "text_completion", "text_completion", _show_text, _show_text, None)
CHAT: Shape = Shape("chatcmpl", "chat.completion", "chat.completion.chunk", _show_message, _show_delta, _OPENING)

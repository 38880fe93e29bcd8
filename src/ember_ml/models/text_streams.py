"""Turn tokens into text while they come: whole characters only, up to a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from ember_ml.models.tokenizers import Tokenizer

__all__ = ["TextStream"]

_UNFINISHED = "\ufffd"
"""What decoders write for bytes that are no character, or only the beginning of one."""


class TextStream:
    """The text of tokens that come one by one; its pieces join to what ``tokenizer.decode`` makes of all of them.

    A piece ends at a whole character, so it can be shown at once. The text ends before the first of the ``stop``
    strings; what could be the beginning of one is kept back until the next token.

    Args:
        tokenizer: What ``models.tokenizer`` returns, or anything with ``decode(tokens)``.
        stop: A text, or several, before which the text ends.

    >>> from ember_ml import models
    >>> class Letters:
    ...     def decode(self, tokens):
    ...         return bytes(tokens).decode(errors="replace")
    >>> stream = models.TextStream(Letters(), stop=["END"])
    >>> [stream.push(token) for token in "hü ENDE".encode()], stream.is_stopped
    (['h', '', 'ü', ' ', '', '', '', ''], True)
    """

    is_stopped: bool
    """Whether a stop string has come."""

    def __init__(self, tokenizer: Tokenizer, stop: str | Sequence[str] = ()) -> None:
        stops = [stop] if isinstance(stop, str) else stop
        self._tokenizer, self._stop, self.is_stopped = tokenizer, [text for text in stops if text], False
        self._tokens: list[int] = []
        self._first = 0  # decoding begins here: a decoder joins a token to the one before it
        self._shown = 0  # tokens whose text was taken
        self._length = 0  # characters of the text since _first that were taken
        self._kept = ""  # taken and kept back, since a stop string may begin in it

    def push(self, token: int) -> str:
        """Take the next token; return the text that is certain now, often that of the token, sometimes none."""
        if self.is_stopped:
            return ""
        self._tokens.append(token)
        text = self._tokenizer.decode(self._tokens[self._first :])
        whole = text.rstrip(_UNFINISHED)
        piece, self._length = whole[self._length :], max(len(whole), self._length)
        if piece and len(whole) == len(text):  # a special token has no text, and cannot be what decoding begins with
            self._first, self._shown = self._shown, len(self._tokens)
            self._length = len(self._tokenizer.decode(self._tokens[self._first : self._shown]))
        return self._cut(piece)

    def finish(self) -> str:
        """Return what was kept back, for a text that ends here."""
        if self.is_stopped:
            return ""
        rest = self._cut(self._tokenizer.decode(self._tokens[self._first :])[self._length :])
        if self.is_stopped:
            return rest
        rest, self._kept = rest + self._kept, ""
        return rest

    def _cut(self, piece: str) -> str:
        """Return what comes before a stop string, or before what may be the beginning of one."""
        text = self._kept + piece
        ends = [place for stop in self._stop if (place := text.find(stop)) >= 0]
        if ends:
            self.is_stopped, self._kept = True, ""
            return text[: min(ends)]
        kept = max((_overlap(text, stop) for stop in self._stop), default=0)
        self._kept = text[len(text) - kept :]
        return text[: len(text) - kept]


def _overlap(text: str, stop: str) -> int:
    """Return how many characters at the end of a text are the beginning of a stop string."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)

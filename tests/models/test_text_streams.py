"""Texts while their tokens come: the pieces join to the whole, show whole characters, and end before stop strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ember_ml import models
from ember_ml.models.text_streams import TextStream
from ember_ml.models.tokenizers import Tokenizer
from tests.reference import tokenizing


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizing.write_tokenizer(folder)
    return models.tokenizer(folder)


@pytest.fixture(scope="module")
def by_words(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """One whose tokens begin with their blank, which the decoder drops before the first, as SentencePiece's do."""
    folder = tmp_path_factory.mktemp("words")
    tokenizing.write_word_tokenizer(folder)
    return models.tokenizer(folder)


def _pieces(tokenizer: Tokenizer, tokens: list[int], stop: list[str] | None = None) -> tuple[list[str], bool]:
    stream = TextStream(tokenizer, stop or [])
    pieces = [stream.push(token) for token in tokens]
    return [*pieces, stream.finish()], stream.is_stopped


def test_pieces_join_to_the_text(tokenizer: Tokenizer) -> None:
    @given(st.text())
    def check(text: str) -> None:
        pieces, is_stopped = _pieces(tokenizer, tokenizer.encode(text))
        assert "".join(pieces) == text
        assert not is_stopped
        assert "\ufffd" in text or not any("\ufffd" in piece for piece in pieces)

    check()


def test_pieces_of_any_tokens_join_to_what_the_tokenizer_makes_of_them(tokenizer: Tokenizer) -> None:
    @given(st.lists(st.integers(0, len(tokenizer) - 1), max_size=20))
    def check(tokens: list[int]) -> None:
        assert "".join(_pieces(tokenizer, tokens)[0]) == tokenizer.decode(tokens)

    check()


def test_blanks_between_words_stay(by_words: Tokenizer) -> None:
    tokens = by_words.encode("the cat sat on the mat")
    assert by_words.decode(tokens) == "the cat sat on the mat"
    pieces, _ = _pieces(by_words, tokens)
    assert "".join(pieces) == "the cat sat on the mat"
    assert pieces[1:3] == [" cat", " sat"]
    end = by_words.token_of("</s>")
    assert end is not None
    assert "".join(_pieces(by_words, [end, *tokens])[0]) == by_words.decode([end, *tokens])


def test_texts_end_before_the_first_stop_string(tokenizer: Tokenizer) -> None:
    @given(st.text("abX ", max_size=30), st.lists(st.text("abX", min_size=1, max_size=4), max_size=3))
    def check(text: str, stop: list[str]) -> None:
        places = [place for word in stop if (place := text.find(word)) >= 0]
        pieces, is_stopped = _pieces(tokenizer, tokenizer.encode(text), stop)
        assert is_stopped == bool(places)
        assert "".join(pieces) == (text[: min(places)] if places else text)

    check()


def test_what_may_begin_a_stop_string_is_kept_back_no_longer_than_needed(tokenizer: Tokenizer) -> None:
    stream = TextStream(tokenizer, ["ab!"])
    letters = {letter: tokenizer.encode(letter, add_special_tokens=False)[0] for letter in "abc!"}
    assert [stream.push(letters[letter]) for letter in "cabcab"] == ["c", "", "", "abc", "", ""]
    assert stream.finish() == "ab"
    assert not stream.is_stopped


def test_one_stop_string_needs_no_list(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("E N D END x", add_special_tokens=False)
    assert "".join(_pieces(tokenizer, tokens, "END")[0]) == "E N D "

"""Texts of agents that are far longer than the context are refused, piece by piece."""

from dataclasses import replace

import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from grupo.models import long_texts
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.long_texts import TooLongError
from grupo.util.errors import ConfigError


@pytest.fixture
def encode():
    """Tokens of the letters of a text, in a context of 10 tokens."""
    backend = Tokenizer(models.WordLevel({"a": 0}, unk_token="none"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    chat_tokenizer = ChatTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend), (0,))
    assert len(chat_tokenizer.encode_forced("a" * 100)) == 100  # no context is given
    return replace(chat_tokenizer, context_length=10).encode_forced


def test_a_text_of_more_than_two_contexts_is_refused(encode):
    assert len(encode("a" * 20)) == 20  # the engine refuses it
    with pytest.raises(TooLongError, match="more than 10 tokens"):
        encode("a" * 21)


def test_no_piece_is_read_after_the_limit(encode, monkeypatch):
    monkeypatch.setattr(long_texts, "PIECE", 25)
    with pytest.raises(TooLongError):
        encode("a" * 25 + "b" * 1_000)  # the tokenizer has no token for b


def test_a_letter_without_a_token_is_one_error(encode):
    with pytest.raises(ConfigError, match=r"'bbb.* has no tokens of this tokenizer") as error:
        encode("b" * 100)
    assert not isinstance(error.value, TooLongError)

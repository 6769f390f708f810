"""Text of single tokens."""

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from grupo.core.types import Response
from grupo.models.detokenize import TokenTexts


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, and an end token."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<end>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")


def make_response(tokenizer: PreTrainedTokenizerFast, text: str, **more) -> Response:
    return Response(tuple(tokenizer(text)["input_ids"]), (), text=text, **more)


def test_character_of_several_tokens_belongs_to_the_last(tokenizer):
    response = make_response(tokenizer, "a é😀\n")  # é has two bytes, 😀 four
    assert TokenTexts(tokenizer)(response) == ["a", " ", "", "é", "", "", "", "😀", "\n"]


def test_special_tokens_have_their_name(tokenizer):
    assert TokenTexts(tokenizer)(make_response(tokenizer, "a<end>")) == ["a", "<end>"]


def test_character_may_begin_in_the_observation(tokenizer):
    first, second = tokenizer("é")["input_ids"]
    assert TokenTexts(tokenizer)(Response((second,), (), observation=(first,))) == ["é"]


def test_soft_tokens_have_no_text(tokenizer):
    token = tokenizer("a")["input_ids"][0]
    assert TokenTexts(tokenizer)(Response((((0.5, 1),), token), ())) == ["", "a"]


def test_bytes_that_become_no_character_are_shown_as_such(tokenizer):
    start, _ = tokenizer("é")["input_ids"]
    letters = tokenizer("hi")["input_ids"]
    texts = TokenTexts(tokenizer)(Response((letters[0], start, letters[1], start), ()))
    assert texts == ["h", "\ufffd", "i", "\ufffd"]

"""Tokens one by one."""

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from grupo.core.types import Action
from grupo.models.detokenize import token_texts


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, and one that ends a text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({char: i for i, char in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken("<end>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>")


def said(tokenizer: PreTrainedTokenizerFast, text: str, **more) -> Action:
    return Action(tuple(tokenizer(text)["input_ids"]), (), text=text, **more)


def test_a_character_of_several_tokens_belongs_to_the_last_of_them(tokenizer):
    action = said(tokenizer, "a é😀\n")  # é has two bytes, 😀 four
    assert token_texts(tokenizer, action) == ["a", " ", "", "é", "", "", "", "😀", "\n"]


def test_special_tokens_are_spelled_by_name(tokenizer):
    assert token_texts(tokenizer, said(tokenizer, "a<end>")) == ["a", "<end>"]


def test_a_character_may_have_begun_in_what_was_seen(tokenizer):
    first, second = tokenizer("é")["input_ids"]
    assert token_texts(tokenizer, Action((second,), (), observation=(first,))) == ["é"]


def test_what_is_no_token_has_no_text(tokenizer):
    token = tokenizer("a")["input_ids"][0]
    assert token_texts(tokenizer, Action((((0.5, 1),), token), ())) == ["", "a"]

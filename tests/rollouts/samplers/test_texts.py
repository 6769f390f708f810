"""Texts of tokens join as the tokens do, wherever they are cut."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from grupo.models.chat_tokenizer import ChatTokenizer


def bytewise() -> ChatTokenizer:
    """Every byte a token."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    one = Tokenizer(models.BPE({c: i for i, c in enumerate(letters)}, []))
    one.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    one.decoder = decoders.ByteLevel()
    return ChatTokenizer(PreTrainedTokenizerFast(tokenizer_object=one), ())


def wordwise() -> ChatTokenizer:
    """Every word a token that begins with its space; a decoder strips the first."""
    words = {word: i for i, word in enumerate(["<unk>", "▁So", "▁42", "▁is", "it"])}
    one = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    one.pre_tokenizer = pre_tokenizers.Metaspace()
    one.decoder = decoders.Metaspace()
    return ChatTokenizer(PreTrainedTokenizerFast(tokenizer_object=one), ())


def test_a_character_belongs_to_the_tokens_that_complete_it():
    language = bytewise()
    tokens = language.encode_forced("né €!")
    assert len(tokens) == 1 + 2 + 1 + 3 + 1
    cuts = [(tokens[:n], tokens[n:]) for n in range(len(tokens) + 1)]
    for before, after in cuts:
        assert language.decode(before) + language.decode(after, before) == "né €!"
    assert [language.decode(before) for before, _ in cuts[1:4]] == ["n", "n", "né"]


def test_a_space_that_begins_a_continuation_is_kept():
    language = wordwise()
    assert language.decode([1, 3]) == "So is"
    assert language.decode([2], [1, 3]) == " 42"
    assert language.decode([2]) == "42"

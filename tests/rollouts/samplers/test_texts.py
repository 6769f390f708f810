"""Decoded parts of a token sequence join to the decoded whole, wherever it is cut."""

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from grupo.models.chat_tokenizer import ChatTokenizer


def byte_tokenizer() -> ChatTokenizer:
    """A tokenizer with a token for every byte."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({c: i for i, c in enumerate(letters)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return ChatTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend), ())


def word_tokenizer() -> ChatTokenizer:
    """A tokenizer with a token for every word and the space before it.

    Its decoder strips the first space.
    """
    words = {word: i for i, word in enumerate(["<unk>", "▁So", "▁42", "▁is", "it"])}
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return ChatTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend), ())


def test_character_is_decoded_with_the_token_that_completes_it():
    tokenizer = byte_tokenizer()
    tokens = tokenizer.encode_forced("né €!")
    assert len(tokens) == 1 + 2 + 1 + 3 + 1
    cuts = [(tokens[:n], tokens[n:]) for n in range(len(tokens) + 1)]
    for before, after in cuts:
        assert tokenizer.decode(before) + tokenizer.decode(after, before) == "né €!"
    assert [tokenizer.decode(before) for before, _ in cuts[1:4]] == ["n", "n", "né"]


def test_leading_space_of_a_continuation_is_kept():
    tokenizer = word_tokenizer()
    assert tokenizer.decode([1, 3]) == "So is"
    assert tokenizer.decode([2], [1, 3]) == " 42"
    assert tokenizer.decode([2]) == "42"

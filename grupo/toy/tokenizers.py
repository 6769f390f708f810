"""Tokenizers built from the phrases or words of given texts, and all printable characters."""

import re
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

# a phrase; a digit or a sign with the space before it; or one character
PHRASE_PATTERN = r"[A-Za-z][A-Za-z ,.:]*| ?[0-9]| ?[-+*/=]|[\s\S]"
# a word and the space behind it; a number below 100; a bracket; signs and the spaces around them
WORD_PATTERN = r"[A-Za-z_]+ ?|[0-9]{1,2}|[()] ?| ?[^\w\s()]+ ?"
PRINTABLE_CHARACTERS = [*map(chr, range(32, 127)), "\n"]
END_TOKEN = "<end>"
UNKNOWN_TOKEN = "<unknown>"


def phrase_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Tokens are the phrases of the texts, digits and characters; decoding restores the text.

    >>> tokenizer = phrase_tokenizer(["4 + 12 ="])
    >>> tokenizer.decode(tokenizer("4 + 12 =")["input_ids"])
    '4 + 12 ='
    """
    characters = [*PRINTABLE_CHARACTERS, *(f" {x}" for x in "0123456789-+*/=")]
    phrases = {phrase for text in texts for phrase in re.findall(PHRASE_PATTERN, text)}
    return _regex_tokenizer(PHRASE_PATTERN, [*characters, *sorted(phrases - set(characters))])


def word_tokenizer(
    texts: Iterable[str], single_token_texts: Iterable[str] = ()
) -> PreTrainedTokenizerFast:
    """Tokens are the words, signs and numbers of the texts, whole texts, and characters.

    Args:
        texts: Texts whose words become tokens.
        single_token_texts: Texts that become one token each.

    >>> tokenizer = word_tokenizer(["age above 37?"], single_token_texts=["Read this: "])
    >>> tokenizer.tokenize("Read this: age above 7?")
    ['Read this: ', 'age ', 'above ', '7', '?']
    """
    words = {word for text in texts for word in re.findall(WORD_PATTERN, text)}
    new_words = {*single_token_texts, *words} - set(PRINTABLE_CHARACTERS)
    tokens = sorted(new_words, key=lambda word: (-len(word), word))  # the longest match first
    pattern = "|".join([*map(re.escape, tokens), r"[\s\S]"])
    return _regex_tokenizer(pattern, [*PRINTABLE_CHARACTERS, *tokens])


def _regex_tokenizer(pattern: str, tokens: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer that splits a text into the matches of a pattern."""
    vocabulary = {token: i for i, token in enumerate([END_TOKEN, UNKNOWN_TOKEN, *tokens])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN_TOKEN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END_TOKEN,
        unk_token=UNKNOWN_TOKEN,
        clean_up_tokenization_spaces=False,
    )

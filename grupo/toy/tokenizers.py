"""Tokenizers of phrases or of words that some texts hold, and of every printable character."""

from collections.abc import Iterable
from re import escape, findall

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

# a phrase; a digit or a sign with the space before it; or one character
PHRASE_PATTERN = r"[A-Za-z][A-Za-z ,.:]*| ?[0-9]| ?[-+*/=]|[\s\S]"
# a word and the space behind it; a number below 100; a bracket; signs and the spaces around them
WORD_PATTERN = r"[A-Za-z_]+ ?|[0-9]{1,2}|[()] ?| ?[^\w\s()]+ ?"
PRINTABLE_CHARACTERS = [*map(chr, range(32, 127)), "\n"]
END_TOKEN, UNKNOWN_TOKEN = "<end>", "<unknown>"


def phrase_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Phrases of `texts`, digits and characters; what it encodes it decodes to the same text.

    >>> known = phrase_tokenizer(["4 + 12 ="])
    >>> known.decode(known("4 + 12 =")["input_ids"])
    '4 + 12 ='
    """
    characters = [*PRINTABLE_CHARACTERS, *(f" {x}" for x in "0123456789-+*/=")]
    phrases = sorted(
        {piece for text in texts for piece in findall(PHRASE_PATTERN, text)} - set(characters)
    )
    return _regex_tokenizer(PHRASE_PATTERN, [*characters, *phrases])


def word_tokenizer(
    texts: Iterable[str], single_token_texts: Iterable[str] = ()
) -> PreTrainedTokenizerFast:
    """Words, signs and numbers of `texts`, texts that are one token as a `whole`, and characters.

    >>> known = word_tokenizer(["age above 37?"], single_token_texts=["Read this: "])
    >>> known.tokenize("Read this: age above 7?")
    ['Read this: ', 'age ', 'above ', '7', '?']
    """
    words = {
        *single_token_texts,
        *(piece for text in texts for piece in findall(WORD_PATTERN, text)),
    }
    known = sorted(
        words - set(PRINTABLE_CHARACTERS), key=lambda word: (-len(word), word)
    )  # the longest first
    return _regex_tokenizer(
        "|".join([*map(escape, known), r"[\s\S]"]), [*PRINTABLE_CHARACTERS, *known]
    )


def _regex_tokenizer(pattern: str, tokens: Iterable[str]) -> PreTrainedTokenizerFast:
    """Every match of `pattern` is a token."""
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

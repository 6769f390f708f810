"""Tokenizers of phrases or of words that some texts hold, and of every printable character."""

from collections.abc import Iterable
from re import escape, findall

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

# a phrase; a digit or a sign with the space before it; or one character
PIECE = r"[A-Za-z][A-Za-z ,.:]*| ?[0-9]| ?[-+*/=]|[\s\S]"
# a word and the space behind it; a number below 100; a bracket; signs and the spaces around them
WORD = r"[A-Za-z_]+ ?|[0-9]{1,2}|[()] ?| ?[^\w\s()]+ ?"
PRINTABLE = [*map(chr, range(32, 127)), "\n"]
END, UNKNOWN = "<end>", "<unknown>"


def phrase_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Phrases of `texts`, digits and characters; what it encodes it decodes to the same text.

    >>> known = phrase_tokenizer(["4 + 12 ="])
    >>> known.decode(known("4 + 12 =")["input_ids"])
    '4 + 12 ='
    """
    characters = [*PRINTABLE, *(f" {x}" for x in "0123456789-+*/=")]
    phrases = sorted({piece for text in texts for piece in findall(PIECE, text)} - set(characters))
    return _splitting(PIECE, [*characters, *phrases])


def word_tokenizer(texts: Iterable[str], whole: Iterable[str] = ()) -> PreTrainedTokenizerFast:
    """Words, signs and numbers of `texts`, texts that are one token as a `whole`, and characters.

    >>> known = word_tokenizer(["age above 37?"], whole=["Read this: "])
    >>> known.tokenize("Read this: age above 7?")
    ['Read this: ', 'age ', 'above ', '7', '?']
    """
    words = {*whole, *(piece for text in texts for piece in findall(WORD, text))}
    known = sorted(words - set(PRINTABLE), key=lambda word: (-len(word), word))  # the longest first
    return _splitting("|".join([*map(escape, known), r"[\s\S]"]), [*PRINTABLE, *known])


def _splitting(pattern: str, words: Iterable[str]) -> PreTrainedTokenizerFast:
    """Every match of `pattern` is a token."""
    vocabulary = {token: i for i, token in enumerate([END, UNKNOWN, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
    )

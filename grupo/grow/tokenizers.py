"""A tokenizer of the phrases that some texts hold, and of every printable character."""

from collections.abc import Iterable
from re import findall

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

# a phrase; a digit or a sign with the space before it; or one character
PIECE = r"[A-Za-z][A-Za-z ,.:]*| ?[0-9]| ?[-+*/=]|[\s\S]"
END, UNKNOWN = "<end>", "<unknown>"


def phrase_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Phrases of `texts`, digits and characters; what it encodes it decodes to the same text.

    >>> known = phrase_tokenizer(["4 + 12 ="])
    >>> known.decode(known("4 + 12 =")["input_ids"])
    '4 + 12 ='
    """
    characters = [*map(chr, range(32, 127)), "\n", *(f" {x}" for x in "0123456789-+*/=")]
    phrases = sorted({piece for text in texts for piece in findall(PIECE, text)} - set(characters))
    vocabulary = {token: i for i, token in enumerate([END, UNKNOWN, *characters, *phrases])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
    )

"""A tokenizer of the words that some texts hold, and of every printable character."""

from collections.abc import Iterable
from re import findall

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PIECE = (
    r" ?[A-Za-z]+| ?[0-9]|[\s\S]"  # a word or a digit with the space before it, or one character
)
END, UNKNOWN = "<end>", "<unknown>"


def word_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Words of `texts`, digits and characters; what it encodes it decodes to the same text.

    >>> words = word_tokenizer(["4 + 12 ="])
    >>> words.decode(words("4 + 12 =")["input_ids"])
    '4 + 12 ='
    """
    characters = [*map(chr, range(32, 127)), "\n", *(f" {digit}" for digit in range(10))]
    words = sorted({piece for text in texts for piece in findall(PIECE, text)} - set(characters))
    vocabulary = {token: i for i, token in enumerate([END, UNKNOWN, *characters, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
    )

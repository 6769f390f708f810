"""How a vocabulary's text is split into words before it is merged: `tokenizer.ggml.pre`.

transformers knows some of llama.cpp's names, and splits as GPT-2 does for the others: their token
ids would be wrong. The names here are those that it does not know and of which the split is known.
"""

from typing import Any

from grupo.models.gguf.header import GgufHeader
from grupo.util.errors import ConfigError, suggest

BYTE_LEVEL = "gpt2"  # the value of tokenizer.ggml.model for byte-level BPE
SETTING = "tokenizer.ggml.pre"
# GPT-2's pattern, which transformers applies
AS_GPT2 = ("gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion")
# each digit is a word; then GPT-2's pattern splits what lies between digits
SINGLE_DIGITS = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")


def check_pre_tokenizer(header: GgufHeader) -> None:
    """Raise `ConfigError` for a byte-level vocabulary whose words are split in an unknown way."""
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    if header.settings["tokenizer.ggml.model"] != BYTE_LEVEL:
        return
    name = str(header.settings.get(SETTING, ""))
    known = (*GGUF_PRE_TOKENIZER_SPLITS, *AS_GPT2, *SINGLE_DIGITS)
    if name not in known:
        raise ConfigError(
            f"its {SETTING} is {name!r}, and how it splits a text into words is not known."
            f" {suggest(name, known)}"
        )


def set_pre_tokenizer(tokenizer: Any, header: GgufHeader) -> None:
    """Split digits where the vocabulary of the file needs it.

    Args:
        tokenizer: A tokenizer of transformers.
        header: The header of the file that it was read from.
    """
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence

    if header.settings.get(SETTING) in SINGLE_DIGITS:
        digits = Digits(individual_digits=True)
        words = ByteLevel(add_prefix_space=False, use_regex=True)
        tokenizer.backend_tokenizer.pre_tokenizer = Sequence([digits, words])

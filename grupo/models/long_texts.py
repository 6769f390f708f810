"""Texts with more tokens than a context holds, found without tokenizing them whole."""

from transformers import PreTrainedTokenizerBase

from grupo.util.errors import ConfigError

PIECE = 1 << 14  # characters that are tokenized at a time
MARGIN = 2  # times the context; the ends of pieces add a few tokens


class TooLongError(ConfigError):
    """A text has more tokens than the context of its model."""


def check_fits(tokenizer: PreTrainedTokenizerBase, text: str, context_length: int) -> None:
    """Raise `TooLongError` for a text with more than twice the tokens of a context.

    Its pieces are tokenized one after another until their tokens exceed that number. Tokenized
    whole, a text takes about 300 bytes of memory for each token.

    Args:
        tokenizer: The tokenizer of the model.
        text: The text.
        context_length: Tokens that the model's context holds.
    """
    most = MARGIN * context_length
    if len(text.encode(errors="replace")) <= most:  # a token has a byte or more
        return
    num_tokens = 0
    for start in range(0, len(text), PIECE):
        piece = text[start : start + PIECE]
        num_tokens += len(tokenizer(piece, add_special_tokens=False)["input_ids"])
        if num_tokens > most:
            raise TooLongError(f"prompt: it has more than {context_length} tokens.")

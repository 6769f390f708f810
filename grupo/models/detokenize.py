"""Tokens as people read them, one by one."""

from collections.abc import Sequence
from functools import lru_cache

from transformers import PreTrainedTokenizerBase

from grupo.core.types import Action
from grupo.models.chat_tokenizer import REPLACEMENT_CHARACTER

CONTEXT_TOKENS = 3  # tokens that a character may have begun with


def token_texts(tokenizer: PreTrainedTokenizerBase, action: Action) -> Sequence[str]:
    """What each token adds to those before it, special ones by name; "" for what is no token.

    A character of several tokens belongs to the last of them.
    """
    said, texts = [x for x in action.observation[-CONTEXT_TOKENS:] if isinstance(x, int)], []
    for part in action.items:
        known = isinstance(part, int)
        texts.append(_added_text(tokenizer, tuple(said[-CONTEXT_TOKENS:]), part) if known else "")
        said += [part] * known
    return texts


@lru_cache(maxsize=1 << 16)
def _added_text(tokenizer: PreTrainedTokenizerBase, previous: tuple[int, ...], token: int) -> str:
    head, whole = (_decode(tokenizer, tokens) for tokens in (previous, (*previous, token)))
    kept = head if whole.startswith(head) else head.rstrip(REPLACEMENT_CHARACTER)
    return whole[len(kept) :].rstrip(REPLACEMENT_CHARACTER)


def _decode(tokenizer: PreTrainedTokenizerBase, tokens: tuple[int, ...]) -> str:
    return str(tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))

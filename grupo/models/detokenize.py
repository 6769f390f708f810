"""Tokens as people read them, one by one."""

from collections.abc import Sequence
from functools import lru_cache

from transformers import PreTrainedTokenizerBase

from grupo.core.types import Action
from grupo.models.chat_tokenizer import UNFINISHED

BEFORE = 3  # tokens that a character may have begun with


def spelled(tokenizer: PreTrainedTokenizerBase, action: Action) -> Sequence[str]:
    """What each token adds to those before it, special ones by name; "" for what is no token.

    A character of several tokens belongs to the last of them.
    """
    said, texts = [x for x in action.seen[-BEFORE:] if isinstance(x, int)], []
    for part in action.parts:
        known = isinstance(part, int)
        texts.append(_added(tokenizer, tuple(said[-BEFORE:]), part) if known else "")
        said += [part] * known
    return texts


@lru_cache(maxsize=1 << 16)
def _added(tokenizer: PreTrainedTokenizerBase, before: tuple[int, ...], token: int) -> str:
    head, whole = (_decoded(tokenizer, tokens) for tokens in (before, (*before, token)))
    kept = head if whole.startswith(head) else head.rstrip(UNFINISHED)
    return whole[len(kept) :].rstrip(UNFINISHED)


def _decoded(tokenizer: PreTrainedTokenizerBase, tokens: tuple[int, ...]) -> str:
    return str(tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))

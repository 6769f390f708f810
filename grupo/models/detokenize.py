"""Text of single tokens, for reports."""

from collections.abc import Sequence
from functools import lru_cache

from transformers import PreTrainedTokenizerBase

from grupo.core.types import Action
from grupo.models.chat_tokenizer import REPLACEMENT_CHARACTER

CONTEXT_TOKENS = 3  # previous tokens in which an incomplete character may have begun


def token_texts(tokenizer: PreTrainedTokenizerBase, action: Action) -> Sequence[str]:
    """Text that each token of an action adds, special tokens by name; "" for other items.

    A character that spans several tokens belongs to the last of them.
    """
    previous = [item for item in action.observation[-CONTEXT_TOKENS:] if isinstance(item, int)]
    texts = list[str]()
    for item in action.items:
        if not isinstance(item, int):
            texts.append("")
            continue
        texts.append(_added_text(tokenizer, tuple(previous[-CONTEXT_TOKENS:]), item))
        previous.append(item)
    return texts


@lru_cache(maxsize=1 << 16)
def _added_text(tokenizer: PreTrainedTokenizerBase, previous: tuple[int, ...], token: int) -> str:
    before = _decode(tokenizer, previous)
    whole = _decode(tokenizer, (*previous, token))
    prefix = before if whole.startswith(before) else before.rstrip(REPLACEMENT_CHARACTER)
    return whole[len(prefix) :].rstrip(REPLACEMENT_CHARACTER)


def _decode(tokenizer: PreTrainedTokenizerBase, tokens: tuple[int, ...]) -> str:
    return str(tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))

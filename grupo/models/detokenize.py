"""Text of single tokens, for reports."""

from collections.abc import Sequence
from functools import lru_cache

from transformers import PreTrainedTokenizerBase

from grupo.core.types import Action
from grupo.models.chat_tokenizer import REPLACEMENT_CHARACTER

CONTEXT_TOKENS = 3  # previous tokens in which an incomplete character may have begun


class TokenTexts:
    """Text that each token of an action adds, special tokens by name; "" for other items.

    A character that spans several tokens belongs to the last of them.

    Args:
        tokenizer: tokenizer of transformers.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        # a cache of this object: it ends with the tokenizer
        self._cached_text = lru_cache(maxsize=1 << 16)(self._added_text)

    def __call__(self, action: Action) -> Sequence[str]:
        """The text of each item."""
        previous = [item for item in action.observation[-CONTEXT_TOKENS:] if isinstance(item, int)]
        texts = list[str]()
        for item in action.items:
            if not isinstance(item, int):
                texts.append("")
                continue
            texts.append(self._cached_text(tuple(previous[-CONTEXT_TOKENS:]), item))
            previous.append(item)
        return texts

    def _added_text(self, previous: tuple[int, ...], token: int) -> str:
        before = self._decode(previous)
        whole = self._decode((*previous, token))
        prefix = before if whole.startswith(before) else before.rstrip(REPLACEMENT_CHARACTER)
        return whole[len(prefix) :].rstrip(REPLACEMENT_CHARACTER)

    def _decode(self, tokens: tuple[int, ...]) -> str:
        return str(self.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))

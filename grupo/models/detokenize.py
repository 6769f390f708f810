"""Text of tokens: of answers, and of single tokens for reports."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from transformers import PreTrainedTokenizerBase

from grupo.core.call_markers import kept_markers
from grupo.core.types import Response

CONTEXT_TOKENS = 3  # previous tokens in which an incomplete character may have begun
REPLACEMENT_CHARACTER = "\ufffd"  # decoders emit it for a character with missing bytes


class AddedText(NamedTuple):
    """The text that a token adds.

    Args:
        text: the complete characters.
        keeps_previous: the bytes before the token stay as they are decoded without it.
        is_incomplete: the token ends within a character.
    """

    text: str
    keeps_previous: bool
    is_incomplete: bool


class TokenTexts:
    """Text that each token of a response adds, special tokens by name; "" for other items.

    A character that spans several tokens belongs to the last of them: the tokens before it add "".
    Bytes that no later token completes to a character are shown as U+FFFD.

    Args:
        tokenizer: tokenizer of transformers.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self.tokenizer = tokenizer
        # a cache of this object: it ends with the tokenizer
        self._cached_text = lru_cache(maxsize=1 << 16)(self._added_text)

    def __call__(self, response: Response) -> Sequence[str]:
        """The text of each item."""
        previous = [
            item for item in response.observation[-CONTEXT_TOKENS:] if isinstance(item, int)
        ]
        texts = list[str]()
        incomplete = list[int]()  # places of tokens whose character is not complete yet
        for place, item in enumerate(response.items):
            if not isinstance(item, int):
                texts.append("")
                continue
            added = self._cached_text(tuple(previous[-CONTEXT_TOKENS:]), item)
            if added.keeps_previous:
                _mark_invalid(texts, incomplete)
            if added.text:
                incomplete.clear()
            if added.is_incomplete:
                incomplete.append(place)
            texts.append(added.text)
            previous.append(item)
        _mark_invalid(texts, incomplete)
        return texts

    def _added_text(self, previous: tuple[int, ...], token: int) -> AddedText:
        before = self._decode(previous)
        whole = self._decode((*previous, token))
        is_kept = whole.startswith(before)
        prefix = before if is_kept else before.rstrip(REPLACEMENT_CHARACTER)
        rest = whole[len(prefix) :]
        text = rest.rstrip(REPLACEMENT_CHARACTER)
        is_incomplete = whole.endswith(REPLACEMENT_CHARACTER)
        return AddedText(text, is_kept and bool(text), is_incomplete)

    def _decode(self, tokens: tuple[int, ...]) -> str:
        return str(self.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))


def _mark_invalid(texts: list[str], incomplete: list[int]) -> None:
    """Show tokens whose bytes became no character; `incomplete` is emptied."""
    for place in incomplete:
        texts[place] += REPLACEMENT_CHARACTER
    incomplete.clear()


def decode_shown(
    tokenizer: PreTrainedTokenizerBase, dropped: frozenset[int] | None, tokens: Sequence[Any]
) -> str:
    """The complete characters of tokens, without soft tokens and special tokens.

    Args:
        tokenizer: tokenizer of transformers.
        dropped: the special tokens that the text has not; None: all of them.
        tokens: token ids, and soft tokens.
    """
    shown = [t for t in tokens if isinstance(t, int) and t not in (dropped or ())]
    text = str(tokenizer.decode(shown, skip_special_tokens=dropped is None))
    return text.rstrip(REPLACEMENT_CHARACTER)


def dropped_tokens(tokenizer: PreTrainedTokenizerBase) -> frozenset[int] | None:
    """The special tokens without those that texts keep; None if texts keep none."""
    added = tokenizer.added_tokens_decoder
    special = {token.content: number for number, token in added.items() if token.special}
    markers = kept_markers(frozenset(special))
    return frozenset(special[text] for text in special.keys() - markers) if markers else None

"""Tokens of media: numbers that stand for the positions of an image, video or audio in a context.

A model reads features at these positions instead of embeddings. A token identifies the content it
belongs to and its place there, so that contexts with the same picture share a prefix, and those
with different pictures do not.
"""

from collections.abc import Iterable, Sequence
from weakref import WeakValueDictionary

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from grupo.core.media import Media
from grupo.util.errors import ConfigError

FIRST = 1 << 62  # tokens from here on belong to media; those of vocabularies are smaller
LITERAL = 1 << 61  # added to a placeholder that the model itself has generated
INDEX_BITS = 16
KEY_BITS = 46
MAX_TOKENS = 1 << INDEX_BITS  # of one image, video or audio
# contents by key, as long as a task or a rollout holds them
_CONTENTS: "WeakValueDictionary[int, Media]" = WeakValueDictionary()


def media_key(digest: str) -> int:
    """The part of a content digest that its tokens hold."""
    return int(digest, 16) & ((1 << KEY_BITS) - 1)


def media_tokens(digest: str, count: int) -> tuple[int, ...]:
    """The tokens of the `count` positions of the content with a digest.

    >>> [token - FIRST for token in media_tokens("01", 3)]
    [65536, 65537, 65538]
    """
    first = FIRST | media_key(digest) << INDEX_BITS
    return tuple(range(first, first + count))


def is_media_token(token: Int[Tensor, "*n"]) -> Bool[Tensor, "*n"]:
    """Which tokens belong to media."""
    return token >= FIRST


def split_tokens(token: Int[Tensor, "m"]) -> tuple[Int[Tensor, "m"], Int[Tensor, "m"]]:
    """Key of each media token's content, and its index among the positions of that content."""
    rest = token - FIRST
    return rest >> INDEX_BITS, rest & (MAX_TOKENS - 1)


def keys_in_order(token: Sequence[int] | Int[Tensor, "L"]) -> list[int]:
    """Keys of the contents in a row of tokens, each once for every time that it begins there.

    >>> row = (5, *media_tokens("01", 2), *media_tokens("02", 1), *media_tokens("01", 2), 7)
    >>> keys_in_order(row)
    [1, 2, 1]
    """
    row = torch.as_tensor(token)
    key, index = split_tokens(row[is_media_token(row)])
    return key[index == 0].tolist()


def register_media(contents: Iterable[Media]) -> None:
    """Make contents known by their keys, for `media_of_key`.

    Raises:
        ConfigError: Another content has the same key.
    """
    for content in contents:
        key = media_key(content.digest)
        if _CONTENTS.setdefault(key, content).digest != content.digest:
            raise ConfigError(
                f"prompt: two of its images or sounds, {content!r} and {_CONTENTS[key]!r}, have the"
                f" same key, {key}. Change one of them by a pixel or a sample."
            )


def media_of_key(key: int) -> Media:
    """The content with a key, which was registered."""
    return _CONTENTS[key]

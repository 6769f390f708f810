"""Tokens of media: numbers that stand for the positions of an image, video or audio in a context.

A model reads features at these positions instead of embeddings. A token identifies the content it
belongs to and its place there, so that contexts with the same picture share a prefix, and those
with different pictures do not.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from threading import RLock
from weakref import ref

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
# all objects of a content by its key: tasks and rollouts may hold equal ones, and any may end first
_OBJECTS: "dict[int, list[ref[Media]]]" = {}
_LOCK = RLock()  # a reference may end, and call `_forget`, while it is held


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
    """Make contents known by their keys, for `media_of_key`, as long as their objects exist.

    Raises:
        ConfigError: Another content has the same key.
    """
    for content in contents:
        key = media_key(content.digest)
        with _LOCK:
            known = _live_objects(key)
            if known and known[0].digest != content.digest:
                raise ConfigError(
                    f"prompt: two of its images or sounds, {content!r} and {known[0]!r}, have the"
                    f" same key, {key}. Change one of them by a pixel or a sample."
                )
            if all(x is not content for x in known):
                _OBJECTS.setdefault(key, []).append(ref(content, partial(_forget, key)))


def media_of_key(key: int) -> Media:
    """The content with a key, which was registered."""
    return _live_objects(key)[0]


def _live_objects(key: int) -> list[Media]:
    return [x for reference in tuple(_OBJECTS.get(key, ())) if (x := reference()) is not None]


def _forget(key: int, ended: "ref[Media]") -> None:
    with _LOCK:
        _OBJECTS[key].remove(ended)
        if not _OBJECTS[key]:
            del _OBJECTS[key]

"""Embeddings: vectors of texts, whose angles say how similar the texts are."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from grupo.core.component import component
from grupo.core.protocols import implemented_in
from grupo.core.ranges import PositiveInt
from grupo.util.bm25 import words
from grupo.util.rng import derive_key

__all__ = ["Embedding", "HashedWords"]


@implemented_in("grupo.core.embeddings")
class Embedding(Protocol):
    """Computes the vector of a text; the same text has the same vector."""

    def __call__(self, text: str, /) -> Sequence[float]:
        """The vector, of any length above 0; texts have vectors of equal size."""
        ...


@component
class HashedWords:
    """The counts of a text's words, each added or subtracted at the entry that its hash names.

    No model is read: texts are similar if they have words in common, not if they mean the same.
    Feature hashing, Weinberger et al., 2009, arXiv:0902.2206.

    Args:
        dimensions: Number of entries. Two words share one with probability 1 / dimensions.

    >>> embed = HashedWords(64)
    >>> embed("Lima, Peru") == embed("peru LIMA"), sum(map(abs, embed("Lima, Peru")))
    (True, 2.0)
    """

    dimensions: PositiveInt = 256

    def __call__(self, text: str) -> Sequence[float]:
        vector = [0.0] * self.dimensions
        for word, count in Counter(words(text)).items():
            key = derive_key(0, "word", word)
            vector[key // 2 % self.dimensions] += count if key % 2 else -count
        return vector

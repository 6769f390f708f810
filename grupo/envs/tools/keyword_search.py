"""A search tool: the documents of a file whose words fit a query best, by BM25."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.ranges import PositiveInt

K1 = 1.2  # saturation of a word's count
B = 0.75  # weight of a document's length


@component
class KeywordSearch:
    """Search the documents and read the best ones, one a line."""

    # The docstring is the tool's description in the policy's prompt. `path` is a text file with a
    # document on each line, `top_k` the number of documents that are returned.
    path: str
    top_k: PositiveInt = 3

    def check(self) -> None:
        """Raises `ConfigError` if `path` is no file with a document."""
        _index(self.path)

    def __call__(self, query: str) -> str:
        index = _index(self.path)
        best = index.search(query, self.top_k)
        return "\n".join(index.documents[i] for i in best)


class Bm25:
    """The words of documents, counted.

    Args:
        documents: The documents.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self.documents = documents
        self.counts = [Counter(words(document)) for document in documents]
        self.mean_length = sum(c.total() for c in self.counts) / max(1, len(documents))
        self.frequency = Counter(word for counts in self.counts for word in counts)

    def search(self, query: str, top_k: int) -> list[int]:
        """The documents with the highest scores above 0, the best first."""
        scores = [self.score(words(query), counts) for counts in self.counts]
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
        return [i for i in order[:top_k] if scores[i] > 0]

    def score(self, query: Sequence[str], counts: Mapping[str, int]) -> float:
        """Sum over the query's words of idf f (K1 + 1) / (f + K1 (1 - B + B length / mean))."""
        length = sum(counts.values())
        norm = K1 * (1 - B + B * length / (self.mean_length or 1))
        return sum(
            self._idf(word) * counts[word] * (K1 + 1) / (counts[word] + norm)
            for word in query
            if word in counts
        )

    def _idf(self, word: str) -> float:
        n = self.frequency[word]
        return math.log(1 + (len(self.documents) - n + 0.5) / (n + 0.5))


def words(text: str) -> list[str]:
    """The words of a text, in lower case.

    >>> words("Tea, at 5!")
    ['tea', 'at', '5']
    """
    return re.findall(r"\w+", text.lower())


def _index(path: str) -> Bm25:
    file = Path(path)
    if not file.is_file():
        raise ConfigError(f"path: {path!r} is not a file. Allowed: a text file of documents.")
    return _read_index(str(file.absolute()), file.stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read_index(path: str, changed_at: int) -> Bm25:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    documents = [line for line in lines if line.strip()]
    if not documents:
        raise ConfigError(f"path: {path!r} has no documents. Allowed: one on each line.")
    return Bm25(documents)

"""BM25: documents whose words fit a query best."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

K1 = 1.2  # saturation of a word's count
B = 0.75  # weight of a document's length


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

"""Agreement of raters beyond chance, and the vote of a jury."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """(p_o - p_e) / (1 - p_e): agreement of two raters beyond chance. Cohen, 1960.

    Args:
        first: Label of each item by one rater.
        second: Label of each item by the other.

    Returns:
        1 for equal labels, 0 for agreement by chance; NaN without items, or where both raters give
        every item one and the same label.

    >>> cohen_kappa("aabb", "abbb")  # 3/4 agree, 1/2 1/4 + 1/2 3/4 by chance
    0.5
    """
    count = len(first)
    pairs = list(zip(first, second, strict=True))
    if not count:
        return math.nan
    left, right = Counter(first), Counter(second)
    observed = sum(a == b for a, b in pairs) / count
    expected = sum(left[label] * right[label] for label in left) / count**2
    return (observed - expected) / (1 - expected) if expected < 1 else math.nan


def jury_vote(votes: Sequence[Hashable]) -> Hashable:
    """The label that most raters give an item; of equally many, the one that is given first.

    >>> jury_vote(["draft", "revision", "revision"])
    'revision'
    """
    return Counter(votes).most_common(1)[0][0]

"""Constraints on a count, such as that of words.

A constraint is a component from a text to True or False. No constraint is met by an empty text.
"""

from grupo.core.component import component
from grupo.core.ranges import NonNegativeInt
from grupo.rewards.text_counts import Counter, has_word


@component
class AtLeast:
    """A count of `number` or more.

    Args:
        number: The smallest count.
        count: The counter.

    >>> from grupo.rewards.text_counts import count_words
    >>> AtLeast(2, count_words)("one"), AtLeast(2, count_words)("one two")
    (False, True)
    """

    number: NonNegativeInt
    count: Counter

    def __call__(self, text: str) -> bool:
        return has_word(text) and self.count(text) >= self.number


@component
class AtMost:
    """A count of `number` or less, in a text with a word.

    Args:
        number: The largest count.
        count: The counter.

    >>> from grupo.rewards.text_counts import count_words
    >>> AtMost(1, count_words)("one"), AtMost(1, count_words)("")
    (True, False)
    """

    number: NonNegativeInt
    count: Counter

    def __call__(self, text: str) -> bool:
        return has_word(text) and self.count(text) <= self.number


@component
class Exactly:
    """A count of `number`, in a text with a word.

    Args:
        number: The count.
        count: The counter.

    >>> from grupo.rewards.text_counts import CountOfLetter, count_words
    >>> Exactly(0, CountOfLetter(","))("one two"), Exactly(2, count_words)("one")
    (True, False)
    """

    number: NonNegativeInt
    count: Counter

    def __call__(self, text: str) -> bool:
        return has_word(text) and self.count(text) == self.number


@component
class Around:
    """A count within a tenth of `number`, or within 1 of a small one, in a text with a word.

    Args:
        number: The count.
        count: The counter.

    >>> from grupo.rewards.text_counts import count_words
    >>> Around(3, count_words)("one two"), Around(3, count_words)("one")
    (True, False)
    """

    number: NonNegativeInt
    count: Counter

    def __call__(self, text: str) -> bool:
        tolerance = max(1, round(self.number / 10))
        return has_word(text) and abs(self.count(text) - self.number) <= tolerance

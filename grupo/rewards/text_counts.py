"""Counts of words, sentences, paragraphs and marks of a text, in time linear in the text."""

import re
from collections.abc import Callable

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString

Counter = Callable[[str], int]

WORD = re.compile(r"\w+(?:['’\-]\w+)*")  # noqa: RUF001
SENTENCE_END = re.compile(r"(?<![.!?])[.!?]++(?=[\s\"')\]]|\Z)|[。！？]+")  # noqa: RUF001
BLANK_LINE = re.compile(r"\n[ \t]*\n")
RULE = re.compile(r"^[ \t]*(?:\*\*\*|\* \* \*)[ \t]*$", re.MULTILINE)
BULLET = re.compile(r"^[ \t]*(?:[*•]|-(?!-))[ \t]++\S", re.MULTILINE)
PLACEHOLDER = re.compile(r"\[[^\[\]\n]+\]")
HIGHLIGHT = re.compile(r"(?<!\*)\*{1,2}(?!\*)([^*\n]+)\*{1,2}(?!\*)")


def has_word(text: str) -> bool:
    """True if the text has a letter or a digit.

    >>> has_word("a"), has_word(" ...")
    (True, False)
    """
    return WORD.search(text) is not None


def count_words(text: str) -> int:
    """The number of words: letters and digits, joined by apostrophes or hyphens.

    >>> count_words("Well-known, isn't it?")
    3
    """
    return sum(1 for _ in WORD.finditer(text))


def count_sentences(text: str) -> int:
    """The number of sentences with a word; the last one needs no period.

    >>> count_sentences("One. Two... 3.5 is a number! And so on")
    4
    """
    return sum(has_word(sentence) for sentence in SENTENCE_END.split(text))


def count_paragraphs(text: str) -> int:
    r"""The number of paragraphs with a word, separated by blank lines.

    >>> count_paragraphs("One.\n\nTwo.\n\n\n***")
    2
    """
    return sum(has_word(part) for part in BLANK_LINE.split(text))


def count_ruled_paragraphs(text: str) -> int:
    r"""The number of paragraphs with a word, separated by lines of three asterisks.

    >>> count_ruled_paragraphs("One.\n***\nTwo.\n\nStill two.")
    2
    """
    return sum(has_word(part) for part in RULE.split(text))


def count_bullets(text: str) -> int:
    r"""The number of lines that begin with a bullet, an asterisk or a hyphen.

    >>> count_bullets("* one\n- two\n**bold**")
    2
    """
    return sum(1 for _ in BULLET.finditer(RULE.sub("", text)))


def count_placeholders(text: str) -> int:
    """The number of texts in square brackets.

    >>> count_placeholders("Dear [name], come to [place].")
    2
    """
    return sum(1 for _ in PLACEHOLDER.finditer(text))


def count_highlights(text: str) -> int:
    """The number of texts in asterisks, single or double.

    >>> count_highlights("*one* and **two**, not ****")
    2
    """
    return sum(bool(match[1].strip()) for match in HIGHLIGHT.finditer(text))


def count_capital_words(text: str) -> int:
    """The number of words in capitals only.

    >>> count_capital_words("NASA sent A rover")
    2
    """
    return sum(match[0].isupper() for match in WORD.finditer(text))


@component
class CountOf:
    """The number of occurrences of a word or phrase as whole words, ignoring case.

    Args:
        phrase: The word or phrase.

    >>> CountOf("cat")("Cat, cat; category")
    2
    """

    phrase: NonEmptyString

    def __call__(self, text: str) -> int:
        phrase = r"\s+".join(map(re.escape, self.phrase.split()))
        pattern = rf"(?<!\w){phrase}(?!\w)"
        return sum(1 for _ in re.finditer(pattern, text, re.IGNORECASE))


@component
class CountOfLetter:
    """The number of occurrences of a character, ignoring case.

    Args:
        letter: One character.

    >>> CountOfLetter("a")("Anna")
    2
    """

    letter: NonEmptyString

    def __call__(self, text: str) -> int:
        return text.lower().count(self.letter.lower())


@component
class CountOfSections:
    r"""The number of sections: lines that begin with a marker and a number, with a word below.

    Args:
        marker: The word before the number.

    >>> CountOfSections("Section")("Section 1\nOne.\nSection 2\nTwo.\nSection 3")
    2
    """

    marker: NonEmptyString

    def __call__(self, text: str) -> int:
        head = rf"^[ \t*#]*{re.escape(self.marker)}[ \t]+(?:\d+|[IVXLC]+)\b[ \t:.*]*"
        return sum(has_word(part) for part in re.split(head, text, flags=re.MULTILINE)[1:])

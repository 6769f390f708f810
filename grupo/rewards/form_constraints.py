"""Constraints on the form of a text: case, quotation marks, JSON, titles, paragraphs, script.

A constraint is a function or component from a text to True or False, in time linear in the text. No
constraint is met by an empty text.
"""

import json
import re
import unicodedata

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, PositiveInt
from grupo.rewards.text_counts import BLANK_LINE, WORD, has_word
from grupo.util.errors import ConfigError

TITLE = re.compile(r"<<([^<>\n]+)>>")
CODE_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL | re.IGNORECASE)


def is_lower_case(text: str) -> bool:
    """True if there are letters and none is a capital.

    >>> is_lower_case("one, 2"), is_lower_case("One"), is_lower_case("2")
    (True, False, False)
    """
    return text.islower()


def is_upper_case(text: str) -> bool:
    """True if there are letters and all are capitals.

    >>> is_upper_case("ONE, 2"), is_upper_case("One"), is_upper_case("2")
    (True, False, False)
    """
    return text.isupper()


def is_title_case(text: str) -> bool:
    """True if there are words and each begins with a capital, or with no letter that has one.

    >>> is_title_case("The Isle of Skye"), is_title_case("The Isle, It's Skye")
    (False, True)
    """
    initials = [match[0][0] for match in WORD.finditer(text)]
    return any(map(str.isupper, initials)) and not any(map(str.islower, initials))


def has_no_comma(text: str) -> bool:
    """True if there is a word and no comma, in any script.

    >>> has_no_comma("one two"), has_no_comma("one, two")
    (True, False)
    """
    return has_word(text) and not any(comma in text for comma in ",，、،﹐﹑")  # noqa: RUF001


def is_quoted(text: str) -> bool:
    """True if the whole text stands in double quotation marks.

    >>> is_quoted('"One."'), is_quoted('"One" and "two"?')
    (True, False)
    """
    stripped = text.strip()
    pairs = ('""', "“”", "«»", "„“")
    quoted = any(stripped.startswith(a) and stripped.endswith(b) for a, b in pairs)
    return quoted and len(stripped) > 2 and has_word(stripped)


def is_json(text: str) -> bool:
    """True if the whole text is a JSON object or list, alone or in one code block.

    >>> is_json('{"a": [1]}'), is_json('Here: {"a": 1}'), is_json("4"), is_json('{"a": NaN}')
    (True, False, False, False)
    """
    stripped = text.strip()
    fenced = CODE_FENCE.match(stripped)
    try:
        parsed = json.loads(fenced[1] if fenced else stripped, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict | list)


def has_title(text: str) -> bool:
    """True if there is a title in double angle brackets.

    >>> has_title("<<Spring>> It rains."), has_title("<< >>")
    (True, False)
    """
    return any(map(has_word, TITLE.findall(text)))


def has_two_responses(text: str) -> bool:
    """True if six asterisks separate two different responses.

    >>> has_two_responses("One.******Two."), has_two_responses("One.******One.")
    (True, False)
    """
    responses = [part.strip() for part in text.split("******")]
    return len(responses) == 2 and all(map(has_word, responses)) and len(set(responses)) == 2


@component
class HasPostscript:
    """A line begins with a postscript marker, and a word follows it.

    Args:
        marker: The marker, such as "P.S."; spaces within it and case do not count.

    >>> HasPostscript("P.S.")("Yours\\nP. S. Write soon."), HasPostscript("P.S.")("P.S.")
    (True, False)
    """

    marker: NonEmptyString

    def __call__(self, text: str) -> bool:
        marker = r"[ \t]*".join(map(re.escape, "".join(self.marker.split())))
        match = re.search(rf"^[ \t]*{marker}(.*)", text, re.MULTILINE | re.DOTALL | re.IGNORECASE)
        return match is not None and has_word(match[1])


@component
class ParagraphStartsWith:
    """There are `paragraphs` paragraphs, and one of them begins with a word, ignoring case.

    Args:
        paragraphs: Number of paragraphs, separated by blank lines.
        number: The paragraph, from 1.
        first_word: Its first word.

    >>> ParagraphStartsWith(2, 2, "then")("First.\\n\\nThen.")
    True
    """

    paragraphs: PositiveInt
    number: PositiveInt
    first_word: NonEmptyString

    def __post_init__(self) -> None:
        if self.number > self.paragraphs:
            raise ConfigError(f"number: {self.number}. Allowed: 1 to {self.paragraphs}.")

    def __call__(self, text: str) -> bool:
        parts = [part for part in BLANK_LINE.split(text) if has_word(part)]
        if len(parts) != self.paragraphs:
            return False
        word = WORD.search(parts[self.number - 1])
        return word is not None and word[0].lower() == self.first_word.strip().lower()


@component
class InScript:
    """At least 90 % of the letters belong to a Unicode script; it may have several languages.

    Args:
        scripts: Beginnings of the letters' Unicode names, such as "LATIN", "CYRILLIC" or "CJK".

    >>> InScript(("CYRILLIC",))("Привет, мир"), InScript(("CYRILLIC",))("Hello")
    (True, False)
    """

    scripts: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        letters = [char for char in text if char.isalpha()]
        own = sum(unicodedata.name(char, "").startswith(self.scripts) for char in letters)
        return bool(letters) and own >= 0.9 * len(letters)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")

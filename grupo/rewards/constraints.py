"""Constraints that a text meets or breaks: the instructions of IFEval that code can verify.

IFEval, Zhou et al. (arXiv:2311.07911), defines the instructions. A constraint is a component from a
text to True or False, in time linear in the text. No constraint is met by an empty text.
"""

import json
import re
import unicodedata
from collections.abc import Callable

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, NonNegativeInt, PositiveInt
from grupo.rewards.text_counts import BLANK_LINE, WORD, Counter, CountOf, has_word
from grupo.util.errors import ConfigError

Constraint = Callable[[str], bool]

TITLE = re.compile(r"<<([^<>\n]+)>>")
CODE_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL | re.IGNORECASE)


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


@component
class Contains:
    """All phrases occur as whole words, ignoring case.

    Args:
        phrases: Words or phrases.

    >>> Contains(("red", "blue"))("Blue and red."), Contains(("red",))("bored")
    (True, False)
    """

    phrases: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        return all(CountOf(phrase)(text) for phrase in self.phrases)


@component
class ContainsNone:
    """No phrase occurs as a whole word, ignoring case, in a text with a word.

    Args:
        phrases: Words or phrases.

    >>> ContainsNone(("red",))("Blue."), ContainsNone(("red",))("RED")
    (True, False)
    """

    phrases: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        return has_word(text) and not any(CountOf(phrase)(text) for phrase in self.phrases)


@component
class InOrder:
    """All phrases occur as whole words, each after the one before, ignoring case.

    Args:
        phrases: Words or phrases.

    >>> InOrder(("one", "two"))("One, two."), InOrder(("one", "two"))("two one")
    (True, False)
    """

    phrases: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        position = 0
        for phrase in self.phrases:
            pattern = rf"(?<!\w){re.escape(phrase)}(?!\w)"
            match = re.compile(pattern, re.IGNORECASE).search(text, position)
            if match is None:
                return False
            position = match.end()
        return True


@component
class StartsWith:
    """The text begins with a phrase, ignoring case and white space before it.

    Args:
        phrase: The phrase.

    >>> StartsWith("Dear")(" dear reader"), StartsWith("Dear")("Oh dear")
    (True, False)
    """

    phrase: NonEmptyString

    def __call__(self, text: str) -> bool:
        return text.strip().lower().startswith(self.phrase.strip().lower())


@component
class EndsWith:
    """The text ends with a phrase, ignoring case, quotation marks and white space after it.

    Args:
        phrase: The phrase; nothing else follows it.

    >>> EndsWith("The end.")("So. the END."), EndsWith("The end.")("The end. Or not")
    (True, False)
    """

    phrase: NonEmptyString

    def __call__(self, text: str) -> bool:
        return text.strip().strip('"').lower().endswith(self.phrase.strip().strip('"').lower())


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
class RepeatsPrompt:
    """The text begins with the prompt, and a word follows it.

    Args:
        prompt: The text to repeat; case and white space do not count.

    >>> RepeatsPrompt("Why?")("Why? Because."), RepeatsPrompt("Why?")("Why?")
    (True, False)
    """

    prompt: NonEmptyString

    def __call__(self, text: str) -> bool:
        expected, written = (" ".join(part.lower().split()) for part in (self.prompt, text))
        return written.startswith(expected) and has_word(written.removeprefix(expected))


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
class HasOneOf:
    """One of the options occurs, and no other option does.

    Args:
        options: Phrases, of which none contains another.

    >>> yes_no = HasOneOf(("My answer is yes.", "My answer is no."))
    >>> yes_no("My answer is yes."), yes_no("My answer is yes. My answer is no.")
    (True, False)
    """

    options: tuple[str, ...]

    def __call__(self, text: str) -> bool:
        return sum(option in text for option in self.options) == 1


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

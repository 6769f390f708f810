r"""Parsers: functions from a judge's reply to a score from 0 to 1.

A parser reads the text after the judge's thoughts, and there the last place at which the judge may
have given its score: a judge quotes the answer before it decides. A place that is not well-formed
is an error, never a number, and no earlier place is tried instead.
"""

import re
from typing import Any, Protocol

from grupo.core.component import check_field, component
from grupo.core.extract_answer import AfterThinking, whole_text
from grupo.core.ranges import Finite, NonEmptyString, Probability
from grupo.util.fenced_blocks import fenced_blocks
from grupo.util.json_text import parse_json

MAX_QUOTED_CHARS = 160  # of a reply in an error
NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
EMPHASIS = " \t*_`"  # marks that judges put around a score
_after_thinking = AfterThinking(whole_text)


class ReplyError(ValueError):
    """A reply has no score, or one outside of its range."""


class ReplyParser(Protocol):
    """The score in a reply, from 0 to 1; raises `ReplyError` if it has none."""

    def __call__(self, text: str, /) -> float: ...


@component
class NumberAfter:
    """(n - low) / (high - low) for the number n after the last line that begins with a marker.

    Nothing else stands in the line but emphasis (`**`) and "/high".

    Args:
        marker: The text before the number, as the prompt requests it.
        low: The number of the worst answer, scored 0.
        high: The number of the best answer, scored 1.

    >>> NumberAfter("Score:", 1, 5)("The answer claims Score: 5, but is vague.\\nScore: 2")
    0.25
    """

    marker: NonEmptyString
    low: Finite
    high: Finite

    def __post_init__(self) -> None:
        check_field(self, "high", self.low < self.high, f"above low, {self.low:g}")

    def __call__(self, text: str) -> float:
        value = _after_marker(text, self.marker)
        number, slash, maximum = value.partition("/")
        if slash and maximum.strip(EMPHASIS) != f"{self.high:g}":
            raise ReplyError(f"{value!r} after {self.marker!r} is not out of {self.high:g}")
        return _in_range(_number(number.strip(EMPHASIS), self.marker), self.low, self.high)


@component
class JSONField:
    """(n - low) / (high - low) for the number n in a field of a JSON object.

    The reply is the object, or ends with it in a fenced block (```json). A field that occurs twice
    is an error.

    Args:
        field: Name of the field.
        low: The number of the worst answer, scored 0.
        high: The number of the best answer, scored 1.

    >>> JSONField("score", 0, 10)('{"reason": "short", "score": 5}')
    0.5
    """

    field: NonEmptyString
    low: Finite
    high: Finite

    def __post_init__(self) -> None:
        check_field(self, "high", self.low < self.high, f"above low, {self.low:g}")

    def __call__(self, text: str) -> float:
        return json_score(json_object(text), self.field, self.low, self.high)


@component
class YesNo:
    """1 for yes and 0 for no, after the last line that begins with a marker; in any case.

    Args:
        marker: The text before the word.

    >>> YesNo("Correct:")("It is right.\\n**Correct:** Yes.")
    1.0
    """

    marker: NonEmptyString

    def __call__(self, text: str) -> float:
        word = _after_marker(text, self.marker).lower()
        if word not in ("yes", "no"):
            raise ReplyError(f"{word!r} after {self.marker!r} is neither yes nor no")
        return float(word == "yes")


@component
class LetterChoice:
    """The score of the letter after the last line that begins with a marker; capitals only.

    Args:
        marker: The text before the letter.
        letters: The letters that the judge chooses from.
        scores: The score of each letter, 0 to 1.

    >>> LetterChoice("Grade:", "ABC", (1.0, 0.5, 0.0))("Grade: (B)")
    0.5
    """

    marker: NonEmptyString
    letters: NonEmptyString = "AB"
    scores: tuple[Probability, ...] = (1.0, 0.0)

    def __post_init__(self) -> None:
        check_field(
            self, "letters", len(set(self.letters)) == len(self.letters), "different letters"
        )
        is_complete = len(self.scores) == len(self.letters)
        check_field(self, "scores", is_complete, f"one for each of {self.letters!r}")

    def __call__(self, text: str) -> float:
        letter = _after_marker(text, self.marker).strip("()[]" + EMPHASIS)
        if len(letter) != 1 or letter not in self.letters:
            raise ReplyError(f"{letter!r} after {self.marker!r} is none of {self.letters!r}")
        return self.scores[self.letters.index(letter)]


def verdict(text: str) -> str:
    """The reply without the judge's thoughts; raises `ReplyError` if the thoughts do not end."""
    after = _after_thinking(text)
    if after is None:
        raise ReplyError(f"the thoughts do not end: {quoted(text)}")
    return after


def json_object(text: str) -> dict[str, Any]:
    """The JSON object that is the reply, or its last fenced block."""
    reply = verdict(text)
    blocks = fenced_blocks(reply, ("json",))
    is_last = reply.endswith("```")
    try:
        value = parse_json(blocks[-1] if blocks and is_last else reply)
    except ValueError as error:
        raise ReplyError(f"no JSON object: {error}: {quoted(reply)}") from error
    if not isinstance(value, dict):
        raise ReplyError(f"no JSON object: {quoted(reply)}")
    return value


def json_score(value: dict[str, Any], field: str, low: float, high: float) -> float:
    """The number in a field of an object, rescaled from low..high to 0..1."""
    if field not in value:
        raise ReplyError(f"the JSON object has no field {field!r}: {', '.join(value)[:80]}")
    number = value[field]
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ReplyError(f"the field {field!r} is {str(number)[:80]!r}, no number")
    return _in_range(number, low, high)


def quoted(text: str) -> str:
    """The end of a reply, for an error."""
    shown = text[-MAX_QUOTED_CHARS:]
    return repr("…" * (len(shown) < len(text)) + shown)


def _after_marker(text: str, marker: str) -> str:
    """The rest of the last line that begins with a marker, without emphasis and a final period."""
    reply = verdict(text)
    marks = re.escape(EMPHASIS)
    pattern = rf"^[#{marks}]*{re.escape(marker)}(.*)$"
    lines = re.findall(pattern, reply, re.MULTILINE)
    if not lines:
        raise ReplyError(f"no line begins with {marker!r}: {quoted(reply)}")
    return lines[-1].strip().strip(EMPHASIS).removesuffix(".").strip(EMPHASIS)


def _number(text: str, marker: str) -> float:
    if not NUMBER.fullmatch(text):
        raise ReplyError(f"{text[:80]!r} after {marker!r} is no number")
    return float(text)


def _in_range(number: float, low: float, high: float) -> float:
    if not low <= number <= high:  # also for integers that no float can hold
        raise ReplyError(f"{str(number)[:40]} is outside of {low:g} to {high:g}")
    return (number - low) / (high - low)

"""A text with some characters left out or decoded, of which each has its place in the source.

Arrays hold the places, so that a view of sixteen million characters takes 200 MB and a second. The
escapes in it are decoded one by one, and have a limit.
"""

import re
import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]  # the first character, and that after the last one

MAX_STEPS = 500_000  # escapes of one text: a second's work
ESCAPE = re.compile(
    r"[%=](?P<percent>[0-9A-Fa-f]{2})"
    r"|%u00(?P<wide>[0-9A-Fa-f]{2})"
    r"|=\r?\n"
    r"|&\#[xX]0*+(?P<html>[0-9A-Fa-f]{2});?"
    r"|&\#0*+(?P<decimal>[0-9]{2,3});?"
    r"|\\++(?:"
    r"u(?:0000)?00(?P<unicode>[0-9A-Fa-f]{2})"
    r"|U000000(?P<long>[0-9A-Fa-f]{2})"
    r"|[ux]\{0{0,6}(?P<braces>[0-9A-Fa-f]{2})\}"
    r"|x(?P<python>[0-9A-Fa-f]{2})"
    r"|o\{0{0,6}(?P<perl>[01]?[0-7]{2})\}"
    r"|(?P<octal>0?[01][0-7]{2}|[0-7]{2})"
    r"|N\{(?P<name>[A-Z -]{4,40})\}"
    r"|(?P<mark>[^\w\s\\])"
    r"|[nrt]"
    r"|(?P<none>))"  # no escape: matched, so that a row of backslashes is read only once
)
BASES = {"decimal": 10, "octal": 8, "perl": 8}  # of the groups that are no hexadecimal numbers
NAMED = {unicodedata.name(char): char for char in map(chr, range(32, 127))}  # as Python names them
# white space, control characters, and those that Unicode calls ignorable: they have no shape
INVISIBLE_RANGES = [
    *[(0x00, 0x20), (0x7F, 0xA0), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160)],
    *[(0x1680, 0x1680), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2000, 0x200F), (0x2028, 0x202F)],
    *[(0x205F, 0x206F), (0x2800, 0x2800), (0x3000, 0x3000), (0x3164, 0x3164), (0xFE00, 0xFE0F)],
    *[(0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3)],
    *[(0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)],
]
INVISIBLE = np.zeros(0x110000, bool)
for _first, _last in INVISIBLE_RANGES:
    INVISIBLE[_first : _last + 1] = True
HEX_DIGIT = np.array([chr(code) in "0123456789abcdefABCDEF" for code in range(128)])


class TooManySteps(Exception):
    """A text needs more than `MAX_STEPS`."""


class TextView(NamedTuple):
    """Characters, and the span of each in a source.

    Args:
        chars: The code points.
        starts: The first character of the source of each.
        ends: The character behind the source of each.
    """

    chars: NDArray[np.uint32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    @property
    def text(self) -> str:
        """The characters as a text."""
        return self.chars.tobytes().decode("utf-32-le", "surrogatepass")

    @property
    def ascii_text(self) -> str:
        """The characters as a text of the same length, with "?" for those that are not ASCII."""
        return np.where(self.chars < 128, self.chars, ord("?")).astype(np.uint8).tobytes().decode()

    def source(self, span: Span) -> Span:
        """The span of the source from which a span of the characters comes."""
        return int(self.starts[span[0]]), int(self.ends[span[1] - 1])

    def where(self, keep: NDArray[np.bool_]) -> "TextView":
        """The characters that a mask keeps."""
        return TextView(self.chars[keep], self.starts[keep], self.ends[keep])


def view_of(text: str) -> TextView:
    """All characters of a text."""
    chars = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
    places = np.arange(len(chars) + 1, dtype=np.int32)
    return TextView(chars, places[:-1], places[1:])


def visible(view: TextView) -> TextView:
    """The characters without white space and without those that have no shape.

    >>> visible(view_of("a b\u200bc")).text
    'abc'
    """
    return view.where(~INVISIBLE[view.chars])


def hex_digits(view: TextView) -> TextView:
    """The hexadecimal digits alone, without the prefix of a number.

    >>> hex_digits(view_of("0x61, 0x6B; 62h")).text
    '616B62'
    """
    keep = HEX_DIGIT[np.minimum(view.chars, 127)]
    is_zero, is_x = view.chars == ord("0"), view.chars | 0x20 == ord("x")
    keep[:-1] &= ~(is_zero[:-1] & is_x[1:])
    return view.where(keep)


def decoded(view: TextView) -> TextView:
    r"""The characters with one for each escape.

    Raises:
        TooManySteps: There are more than `MAX_STEPS`.

    >>> decoded(view_of(r"%61\x62&#99;=64")).text
    'abcd'
    """
    chars, ends, keep = view.chars.copy(), view.ends.copy(), np.ones(len(view.chars), bool)
    for count, match in enumerate(ESCAPE.finditer(view.text)):
        if count == MAX_STEPS:
            raise TooManySteps
        if match.lastgroup == "none":
            continue
        start, end = match.span()
        keep[start:end] = False
        if character := _character(match):
            chars[start], ends[start], keep[start] = ord(character), ends[end - 1], True
    return TextView(chars, view.starts, ends).where(keep)


def _character(match: re.Match[str]) -> str:
    """The character of an escape; "" for the end of a line, or a name that stands for none."""
    kind = match.lastgroup
    if kind is None:
        return ""
    if kind == "mark":
        return match[kind]
    if kind == "name":
        return NAMED.get(match[kind], "")
    return chr(int(match[kind], BASES.get(kind, 16)))

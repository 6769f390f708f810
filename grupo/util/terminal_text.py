"""Untrusted text on a terminal: control characters spelled out, long values shortened."""

import re
import unicodedata

# Control, format (bidi marks, zero widths, tags), surrogates, line and paragraph separators
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
MAX_WORD = 300  # characters of a run without white space; paths and addresses are shorter
MAX_MESSAGE = 4000  # characters of a message: half a screen of a wide terminal
_LONG_WORD = re.compile(rf"\S{{{MAX_WORD + 1},}}")


def escape_controls(text: str) -> str:
    r"""The text with every character that would act on a terminal spelled out; newlines stay.

    >>> print(escape_controls("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return "".join(map(_escape_char, text.replace("\r\n", "\n").expandtabs(4)))


def one_line(text: str) -> str:
    r"""The text with every control character spelled out, line ends among them.

    For names and other texts within a line, which would otherwise begin lines of their own.

    >>> print(one_line("name\nError: none"))
    name\nError: none
    """
    return escape_controls(text).replace("\n", r"\n")


def shorten(text: str, limit: int) -> str:
    """The text, or its beginning and its end if it has more characters than `limit`.

    Args:
        text: The text.
        limit: The largest length of the result; 40 or more.

    >>> shorten(50 * "a" + 50 * "b", 40)
    'aaaaaaaaaaaaaa… (100 characters) …bbbbbb'
    """
    if len(text) <= limit:
        return text
    remark = f"… ({len(text):,} characters) …"
    room = limit - len(remark)
    return f"{text[: room - room // 3]}{remark}{text[-(room // 3) :]}"


def printable_message(text: str) -> str:
    r"""A message as it is printed: control characters escaped, long values shortened.

    The result does not change when it becomes part of another message.

    >>> print(printable_message("run: '\x1b[2J'."))
    run: '\x1b[2J'.
    """
    bounded = shorten(text, 10 * MAX_MESSAGE)  # bounds the work; escapes are up to 10 characters
    words = _LONG_WORD.sub(lambda match: shorten(match[0], MAX_WORD), escape_controls(bounded))
    return shorten(words, MAX_MESSAGE)


def _escape_char(char: str) -> str:
    is_control = char != "\n" and unicodedata.category(char) in _CONTROL_CATEGORIES
    return ascii(char)[1:-1] if is_control else char

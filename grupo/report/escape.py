"""Untrusted text (prompts, answers, task names) as plain text: no markup, no control characters."""

import unicodedata

from rich.text import Text

# Control, format (bidi marks, zero widths, tags), surrogates, line and paragraph separators
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def escape_controls(text: str) -> str:
    r"""The text with every character that would act on a terminal spelled out; newlines stay.

    >>> print(escape_controls("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return "".join(map(_escape_char, text.replace("\r\n", "\n").expandtabs(4)))


def literal(text: str, style: str = "") -> Text:
    """The text for rich without markup: `[bold]` is printed as `[bold]`."""
    return Text(escape_controls(text), style=style)


def _escape_char(char: str) -> str:
    is_control = char != "\n" and unicodedata.category(char) in _CONTROL_CATEGORIES
    return ascii(char)[1:-1] if is_control else char

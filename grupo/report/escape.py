"""Text that others wrote, shown as text: it neither marks up, nor moves, nor colours anything."""

import unicodedata

from rich.text import Text

# Control, format (bidi marks, zero widths, tags), surrogates, line and paragraph separators
_CONTROL_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def escape_controls(text: str) -> str:
    r"""The text with characters that would act on a terminal spelled out; lines stay lines.

    >>> print(escape_controls("a\x1b[31mb\u202ec"))
    a\x1b[31mb\u202ec
    """
    return "".join(map(_escape_char, text.replace("\r\n", "\n").expandtabs(4)))


def literal(text: str, style: str = "") -> Text:
    """The text as rich prints it unread: `[bold]` stays `[bold]`."""
    return Text(escape_controls(text), style=style)


def _escape_char(char: str) -> str:
    acts = char != "\n" and unicodedata.category(char) in _CONTROL_CATEGORIES
    return ascii(char)[1:-1] if acts else char

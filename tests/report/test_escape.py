"""Escaping of control characters and markup."""

import pytest

from grupo.report.escape import escape_controls, literal


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\x1b[2J", r"\x1b[2J"),  # clears a screen
        ("a\rb", r"a\rb"),  # overwrites a line
        ("a\r\nb", "a\nb"),
        ("\x07\x08\x00", r"\x07\x08\x00"),
        ("\x9b31m", r"\x9b31m"),  # the one-byte form of ESC [
        ("\u202egnp.exe", r"\u202egnp.exe"),  # reverses the reading order
        ("\u2066\u200b\ufeff", r"\u2066\u200b\ufeff"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),  # a lone surrogate
        ("\U000e0041", r"\U000e0041"),  # an invisible tag character
        ("héllo 漢字 😀", "héllo 漢字 😀"),
    ],
)
def test_control_characters_are_escaped(text, escaped):
    assert escape_controls(text) == escaped


def test_markup_is_literal():
    assert literal("[bold]x[/bold] [link=http://a]").plain == "[bold]x[/bold] [link=http://a]"
    assert literal("[bold]x").spans == []

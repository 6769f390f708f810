import pytest

from grupo.report.escape import escape_controls, literal


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),  # clears a screen
        ("a\rb", r"a\rb"),  # overwrites a line
        ("a\r\nb", "a\nb"),
        ("\x07\x08\x00", r"\x07\x08\x00"),
        ("\x9b31m", r"\x9b31m"),  # the one-byte form of ESC [
        ("\u202egnp.exe", r"\u202egnp.exe"),  # turns the reading order around
        ("\u2066\u200b\ufeff", r"\u2066\u200b\ufeff"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),  # half a character, which no terminal can be sent
        ("\U000e0041", r"\U000e0041"),  # a letter nobody sees
        ("héllo 漢字 😀", "héllo 漢字 😀"),
    ],
)
def test_what_would_act_on_a_terminal_is_spelled_out(hostile, shown):
    assert escape_controls(hostile) == shown


def test_markup_is_text():
    assert literal("[bold]x[/bold] [link=http://a]").plain == "[bold]x[/bold] [link=http://a]"
    assert literal("[bold]x").byte_ranges == []

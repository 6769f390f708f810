"""Untrusted text for rich."""

from grupo.report.escape import literal


def test_markup_is_literal():
    assert literal("[bold]x[/bold] [link=http://a]").plain == "[bold]x[/bold] [link=http://a]"
    assert literal("[bold]x").spans == []


def test_control_characters_are_escaped():
    assert literal("\x1b[2J").plain == r"\x1b[2J"

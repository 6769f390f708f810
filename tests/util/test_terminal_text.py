"""Escaping of control characters, and shortening of long values, in messages."""

import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grupo.storage.checkpoint import CorruptRun
from grupo.util import console
from grupo.util.console import print_error, print_line
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import CommandError
from grupo.util.terminal_text import MAX_MESSAGE, escape_controls, printable_message

VISIBLE = ("Zs", "Co", "Cn")  # spaces, private and unassigned characters: none acts


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


ESCAPES = (
    *("\x1b[31m", "\x1b]8;;http://a\x1b\\", "\x1b]52;c;aGk=\x07", "\x1bPq#0\x1b\\", "\x9b2J"),
    *("\x9d0;a\x9c", "\r", "\t", "\b", "\x00", "\x7f", "\x85", "\u202e", "\u2066", "\ufeff"),
    *("\u200b", "\u2028", "\ud800"),
)
ACTING = st.sampled_from(ESCAPES)
TEXTS = st.lists(ACTING | st.text(max_size=20), max_size=12).map("".join)


@pytest.mark.slow
@given(TEXTS)
def test_no_escaped_text_acts_on_a_terminal(text):
    escaped = escape_controls(text)
    for char in escaped:
        assert char == "\n" or char.isprintable() or unicodedata.category(char) in VISIBLE
    assert escape_controls(escaped) == escaped


@given(TEXTS)
def test_message_of_an_error_is_escaped_where_it_is_made_and_stays_so_in_another(text):
    message = str(ConfigError(f"tasks: {text}"))
    assert message == printable_message(message)
    assert "\x1b" not in message
    assert str(ConfigError(message)) == message


@pytest.mark.slow
@given(TEXTS)
def test_printed_lines_contain_no_control_characters(text):
    for print_text in (print_error, print_line):
        stream = StringIO()
        for target in (console.out, console.err):
            target.file = stream
        try:
            print_text(text)
        finally:
            console.out.file = console.err.file = None
        printed = stream.getvalue()
        assert escape_controls(printed) == printed


def test_control_characters_that_are_printed_raw_are_noticed():
    assert escape_controls("a\x1b]52;c;aGk=\x07") != "a\x1b]52;c;aGk=\x07"  # positive control


@pytest.mark.parametrize(
    ("text", "length"),
    [("x" * 5000, 300), ("x" * 5000 + " y", 302), ("ab " * 50_000, MAX_MESSAGE), ("a", 1)],
)
def test_long_values_are_shortened(text, length):
    message = printable_message(text)
    assert len(message) <= length
    assert printable_message(message) == message


@pytest.mark.parametrize("error", [ConfigError, CommandError, CorruptRun])
def test_every_error_of_a_command_is_escaped(error):
    assert str(error("a\x1b[2J")) == r"a\x1b[2J"

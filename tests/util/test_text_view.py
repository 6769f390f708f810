"""Views of a text know the place of each character in it."""

import unicodedata

import numpy as np

from grupo.util.text_view import INVISIBLE, decoded, hex_digits, view_of, visible


def test_a_span_of_a_view_of_a_view_is_that_of_the_source():
    text = r"a%62 \u0063<é\N{DIGIT SEVEN}"
    view = visible(decoded(view_of(text)))
    assert view.text == "abc<é7"
    assert view.ascii_text == "abc<?7"
    spans = [view.source((i, i + 1)) for i in range(6)]
    assert [text[a:b] for a, b in spans] == ["a", "%62", r"\u0063", "<", "é", r"\N{DIGIT SEVEN}"]
    assert view.source((0, 3)) == (0, len(r"a%62 \u0063"))
    digits = hex_digits(view)
    assert (digits.text, digits.source((2, 4))) == ("abc7", (5, len(text)))


def test_half_a_character_has_a_place():
    assert view_of("a\ud800b").text == "a\ud800b"


def test_backslashes_without_an_escape_and_unknown_names_stay():
    for text in ("\\" * 9, r"\q \_", r"\N{NO SUCH", "%6g", "=z"):
        assert decoded(view_of(text)).text == text


def test_white_space_and_control_characters_are_invisible_and_letters_are_not():
    categories = np.array([unicodedata.category(chr(code)) for code in range(0x110000)])
    assert INVISIBLE[np.isin(categories, ["Cc", "Zs", "Zl", "Zp"])].all()
    letters = INVISIBLE & np.isin(categories, ["Lu", "Ll", "Lm", "Nd", "Pc", "Pd", "Ps", "Pe"])
    assert not letters.any()
    formats = (categories == "Cf") & ~INVISIBLE
    assert {code >> 8 for code in np.flatnonzero(formats)} == {
        6,
        7,
        8,
        0x110,
        0x134,
    }  # have a shape

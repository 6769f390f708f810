"""The filter finds a secret in every encoding, split or halved, and leaves other texts alone."""

import base64
import html
import json
import time
import unicodedata
from urllib.parse import quote

import pytest

from grupo.util.secret_filter import secret_spans, without_secret
from tests.helpers.fast_cases import fast_cases

SECRET = "sk-4fT9/qLz+81xVbWm0RkE=="
MARK = "[key]"


def cleaned(data):
    return without_secret(data, SECRET, MARK)


def percent(text):
    return "".join(f"%{byte:02x}" for byte in text.encode())


def escaped(text):
    return "".join(f"\\u{ord(char):04X}" for char in text)


def nested(text, times):
    for _ in range(times):
        text = json.dumps(text)[1:-1]
    return text


ENCODED = {
    "plain": SECRET,
    "reserved characters of URLs": quote(SECRET, safe=""),
    "every character of URLs": percent(SECRET),
    "URL in a URL": quote(percent(SECRET)),
    "JSON": escaped(SECRET),
    "JSON in JSON": nested(escaped(SECRET), 2),
    "JSON with escaped slashes": SECRET.replace("/", r"\/"),
    "HTML": "".join(f"&#{ord(char)};" for char in SECRET),
    "HTML, hexadecimal": "".join(f"&#x{ord(char):x};" for char in SECRET),
    "HTML without semicolons": "".join(f"&#{ord(char)}" for char in SECRET),
    "HTML with many zeros": "".join(f"&#{ord(char):011};" for char in SECRET),
    "octal numbers": "".join(f"\\{ord(char):03o}" for char in SECRET),
    "names of Python": "".join(f"\\N{{{unicodedata.name(char)}}}" for char in SECRET),
    "two bytes to a letter": "\0".join(SECRET),
    "capitals": SECRET.upper(),
    "soft hyphens": "\u00ad".join(SECRET),
    "bytes of Python": "".join(f"\\x{ord(char):02x}" for char in SECRET),
    "hexadecimal": SECRET.encode().hex(),
    "hexadecimal in capitals with colons": SECRET.encode().hex(":").upper(),
    "one word to a line": "\n".join([SECRET[i : i + 5] for i in range(0, len(SECRET), 5)]),
    "zero widths": "\u200b".join(SECRET),
    "some letters": SECRET.replace("f", "%66").replace("q", r"\u0071"),
}


@pytest.mark.parametrize("text", ENCODED.values(), ids=ENCODED.keys())
def test_an_encoded_secret_is_replaced_and_what_surrounds_it_stays(text):
    assert cleaned(f"<{text}>") == f"<{MARK}>"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", [0, 1, 2, 3])
@pytest.mark.parametrize("line", [1000, 20])
def test_base64_of_it_is_replaced_at_every_alignment_also_in_lines(encode, before, line):
    secret = SECRET.replace("q", "\x7f").replace("z", "\x7e")  # both alphabets differ
    text = encode(("u" * before + secret + ":password").encode()).decode()
    lines = "\n".join(text[i : i + line] for i in range(0, len(text), line))
    clean = without_secret(lines, secret, MARK)
    assert MARK in clean
    rest = clean.replace(MARK, "").replace("\n", "")
    assert not any(part in decodings(rest) for part in parts(secret, 6))


def parts(text, size):
    return [text[i : i + size] for i in range(len(text) - size + 1)]


def decodings(text):
    """All bytes that base64 of some part of a text could be, as one text."""
    standard = text.replace("-", "+").replace("_", "/").replace("=", "")
    pieces = (standard[i : i + (len(standard) - i) // 4 * 4] for i in range(4))
    return " ".join(base64.b64decode(piece).decode(errors="replace") for piece in pieces)


@pytest.mark.parametrize("border", range(1, len(SECRET)))
def test_a_secret_in_two_parts_of_one_reply_is_replaced_wherever_it_is_cut(border):
    data = {"first": f"a{SECRET[:border]}", "rest": [SECRET[border:] + "b", 3, None]}
    assert cleaned(data) == {"first": f"a{MARK}", "rest": ["b", 3, None]}


@pytest.mark.parametrize("border", range(1, len(SECRET)))
def test_of_two_replies_with_a_part_each_one_is_filtered(border):
    replies = [cleaned(part) for part in (SECRET[:border], SECRET[border:])]
    assert MARK in replies


def test_many_parts_of_one_letter_are_replaced_by_one_mark():
    assert cleaned(["x", *SECRET, "y"]) == ["x", MARK, *[""] * (len(SECRET) - 1), "y"]


def test_names_of_fields_are_filtered():
    assert cleaned({f"x {SECRET}": {"y": True}}) == {f"x {MARK}": {"y": True}}


def test_a_number_that_is_the_secret_is_replaced():
    assert without_secret({"n": [1234567890, 12]}, "1234567890", MARK) == {"n": [MARK, 12]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "An answer of several words, 100 % right: \\frac{1}{2} &#946; %20 \\u00e9",
        "sk-4f",
        "é" * 50,
        html.escape("<b>&</b>") + "\n\t",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert cleaned(text) == text
    assert cleaned([text, {text: 1.5}]) == [text, {text: 1.5}]


def test_without_a_secret_data_are_the_same_object():
    data = {"a": ["b"]}
    assert without_secret(data, "", MARK) is data


def test_a_short_secret_is_replaced_where_it_stands_in_plain_text():
    assert without_secret("the key abc", "abc", MARK) == f"the key {MARK}"


@pytest.mark.parametrize(
    "text",
    fast_cases(
        1,
        [
            SECRET[:11] * 90_000,
            "\\" * 10**6,
            "%2" * 500_000,
            " " * 10**6,
            "&#" * 500_000,
            "a b" * 333_333,
        ],
    ),
)
def test_the_time_is_linear_in_hostile_texts_of_a_megabyte(text):
    start = time.perf_counter()
    secret_spans(text, SECRET)
    assert time.perf_counter() - start < 30.0  # 1 s on a machine that is not busy

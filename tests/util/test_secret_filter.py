"""The filter finds a secret in every encoding, split or halved, and leaves other texts alone."""

import base64
import html
import json
import re
import sys
import time
import tracemalloc
import unicodedata
from urllib.parse import quote

import pytest

from grupo.util import secret_filter, text_view
from grupo.util.limits import REPLY_SIZE
from grupo.util.secret_filter import secret_spans, without_secret

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
    "quoted-printable": "".join(f"={ord(char):02X}" for char in SECRET),
    "quoted-printable in lines": "=\r\n".join([SECRET[:9], SECRET[9:]]),
    "code points of JavaScript": "".join(f"%u{ord(char):04x}" for char in SECRET),
    "bytes of Perl": "".join(f"\\x{{{ord(char):x}}}" for char in SECRET),
    "octal numbers of Perl": "".join(f"\\o{{{ord(char):o}}}" for char in SECRET),
    "hexadecimal with dots": SECRET.encode().hex("."),
    "hexadecimal with equals signs": SECRET.encode().hex("="),
    "hexadecimal with words": SECRET.encode().hex("~").replace("~", " or "),
    "some letters": SECRET.replace("f", "%66").replace("q", r"\u0071"),
}


@pytest.mark.parametrize("text", ENCODED.values(), ids=ENCODED.keys())
def test_an_encoded_secret_is_replaced_and_what_surrounds_it_stays(text):
    assert cleaned(f"<{text}>") == f"<{MARK}>"


LEFT_OVER = {  # the signs around the numbers, and bits of the first and the last letter
    "prefixed numbers": ", ".join(f"0x{ord(char):02X}" for char in SECRET),
    "numbers of assemblers": "".join(f"{ord(char):02x}h " for char in SECRET),
    "dollars": "".join(f"${ord(char):02x}" for char in SECRET),
    "CSS": "".join(f"\\{ord(char):x} " for char in SECRET),
    "hexadecimal in UTF-16, big endian": SECRET.encode("utf-16-be").hex(),
    "hexadecimal in UTF-16": SECRET.encode("utf-16-le").hex(),
    "base64 of UTF-16": base64.b64encode(SECRET.encode("utf-16-le")).decode(),
    "base64 of UTF-16, big endian": base64.b64encode(SECRET.encode("utf-16-be")).decode(),
    "base64 of UTF-32": base64.b64encode(SECRET.encode("utf-32-le")).decode(),
}


@pytest.mark.parametrize("text", LEFT_OVER.values(), ids=LEFT_OVER.keys())
def test_of_an_encoded_secret_with_other_ends_no_letter_stays(text):
    assert re.fullmatch(r".{0,5}\[key\].{0,7}", cleaned(text), re.DOTALL)


@pytest.mark.parametrize(
    "between",
    [
        *("\x08", "\x1b", "\u034f", "\u061c", "\u115f", "\u180e", "\u2003", "\u200d", "\u202e"),
        *("\u2066", "\u2800", "\u3164", "\ufff9", "\U000e0041", "\U000e0100"),
    ],
)
def test_characters_without_a_shape_do_not_hide_a_secret(between):
    assert cleaned(f"<{between.join(SECRET)}>") == f"<{MARK}>"


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


def test_a_secret_in_two_names_of_fields_is_filtered():
    fields = {f"x{SECRET[:12]}": {f"{SECRET[12:]}y": 1}}
    assert cleaned(fields) == {f"x{MARK}": {"y": 1}}


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


HOSTILE = {
    "halves": SECRET[:11],
    "small pieces": SECRET[:7],
    "the secret": SECRET,
    "backslashes": "\\",
    "percent signs": "%2",
    "escapes": "%61",
    "nested escapes": "%25252561",
    "escapes of JSON": "\\n",
    "white space": " ",
    "letters": "a b",
    "hidden letters": "a\u200b",
    "numbers of HTML": "&#",
    "hexadecimal numbers": "73 ",
}
MEGABYTE = 1 << 20


class CountedText(str):
    """A text that adds up the characters that are searched or copied in it."""

    num_read = 0

    def find(self, part, start=0):
        place = super().find(part, start)
        CountedText.num_read += (place if place >= 0 else len(self)) - start + len(part)
        return place

    def __getitem__(self, key):
        part = super().__getitem__(key)
        CountedText.num_read += len(part)
        return part


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("secret", [SECRET, 32 * SECRET], ids=["short", "long"])
def test_a_character_of_hostile_texts_is_read_a_limited_number_of_times(kind, secret, monkeypatch):
    occurrences = secret_filter._occurrences

    def counted(text, *others):
        return occurrences(CountedText(text), *others)

    monkeypatch.setattr(secret_filter, "_occurrences", counted)
    monkeypatch.setattr(CountedText, "num_read", 0)
    text = HOSTILE[kind] * (MEGABYTE // 64 // len(HOSTILE[kind]))
    secret_spans(text, secret)
    assert 0 < CountedText.num_read < 300 * len(text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", HOSTILE)
def test_the_largest_reply_takes_seconds(kind):
    text = HOSTILE[kind] * (REPLY_SIZE.maximum // len(HOSTILE[kind].encode()))
    start = time.process_time()
    secret_spans(text, SECRET)
    assert time.process_time() - start < 30.0  # 3 s on a machine that is not busy


@pytest.mark.parametrize("kind", ["letters", "white space", "hidden letters"])
def test_a_character_takes_less_than_70_bytes(kind):
    text = HOSTILE[kind] * (MEGABYTE // 4 // len(HOSTILE[kind]))
    tracemalloc.start()
    secret_spans(text, SECRET)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 70 * len(text)


def test_a_text_with_too_many_escapes_or_pieces_of_the_secret_is_replaced_whole(monkeypatch):
    monkeypatch.setattr(secret_filter, "MAX_STEPS", 5)
    monkeypatch.setattr(text_view, "MAX_STEPS", 5)
    assert cleaned("a" + "%61" * 5) == "a" + "%61" * 5
    assert cleaned("a" + "%61" * 6) == MARK
    assert cleaned(SECRET[:7] * 5) == SECRET[:7] * 5
    assert cleaned([SECRET[:7]] * 6) == [MARK, *[""] * 5]


def num_lines(function, *args):
    """The lines of Python that a call executes."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        function(*args)
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize(
    "data_of",
    [
        lambda n: [f"{SECRET} and {i}" for i in range(n)],
        lambda n: {f"{i}{SECRET}": "x" for i in range(n)},
    ],
)
def test_four_times_as_many_parts_with_the_secret_take_four_times_the_work(data_of):
    assert SECRET not in str(cleaned(data_of(50)))
    assert num_lines(cleaned, data_of(200)) < 5 * num_lines(cleaned, data_of(50))


def test_many_names_of_fields_are_searched_together(monkeypatch):
    searched = []
    spans = secret_filter.secret_spans

    def search(text, secret):
        searched.append(text)
        return spans(text, secret)

    monkeypatch.setattr(secret_filter, "secret_spans", search)
    fields = {str(i): i for i in range(1000)}
    assert cleaned(fields) == fields
    assert len(searched) <= 2  # of names, and of values

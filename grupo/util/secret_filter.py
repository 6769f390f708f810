r"""Removal of a secret from data of a server, also where it is encoded, split or shortened.

A server that gets a token can return it: by chance, in an error message, or to get it into a file
that others read. The filter finds the secret in plain text, in base64 at any alignment, in
hexadecimal, and behind escapes of URLs, JSON, HTML and Python, which may be nested three times.
Capitals, white space within it, and the borders of texts that belong together, do not hide it. Half
of the secret counts as all of it: of two replies with one part each, one is filtered whatever their
order.

A server that spells a secret letter by letter, or in a cipher of its own, is not detected. Nor is
one that encodes it in base64 twice, in base32, or as numbers.
"""

import base64
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from typing import Any, TypeVar

T = TypeVar("T")
Span = tuple[int, int]  # the first character, and that after the last one

NESTED_ESCAPES = 3
MIN_PLAIN, MIN_BASE64, MIN_HEX = 6, 8, 12  # characters; shorter parts occur in other texts
ESCAPE = re.compile(
    r"%(?P<percent>[0-9A-Fa-f]{2})"
    r"|\\{1,8}u(?:0000)?00(?P<unicode>[0-9A-Fa-f]{2})"
    r"|\\{1,8}U000000(?P<long>[0-9A-Fa-f]{2})"
    r"|\\{1,8}u\{0{0,6}(?P<braces>[0-9A-Fa-f]{2})\}"
    r"|\\{1,8}x(?P<python>[0-9A-Fa-f]{2})"
    r"|\\{1,8}(?P<octal>0?[01][0-7]{2}|[0-7]{2})"
    r"|\\{1,8}N\{(?P<name>[A-Z -]{4,40})\}"
    r"|&\#[xX]0*+(?P<html>[0-9A-Fa-f]{2});?"
    r"|&\#0*+(?P<decimal>[0-9]{2,3});?"
    r"|\\{1,8}(?P<mark>[^\w\s\\])"
    r"|\\{1,8}[nrt]|[\s\0\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]+"
)
NAMED = {unicodedata.name(char): char for char in map(chr, range(32, 127))}  # as Python names them
BETWEEN_BYTES = re.compile(r"0[xX]|[\s:,;_-]+")  # of a hexadecimal text
URL_SAFE = str.maketrans("-_", "+/")  # from one alphabet of base64 to the other
LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)  # unlike `lower`, it keeps the length


def without_secret(data: T, secret: str, mark: str) -> T:
    """Data without a secret.

    The texts of lists and mappings belong together: a secret that begins in one and ends in the
    next one is found.

    Args:
        data: A text, or JSON data.
        secret: The secret; "" changes nothing.
        mark: Takes the secret's place.

    >>> without_secret("a%62cdefgh!", "abcdefgh", "[key]")
    '[key]!'
    >>> without_secret({"x": "abcd", "y": ["efgh", 1]}, "abcdefgh", "[key]")
    {'x': '[key]', 'y': ['', 1]}
    """
    if not secret:
        return data
    values = iter(_clean(list(_values(data)), secret, mark))
    return _rebuilt(data, values, secret, mark)


def secret_spans(text: str, secret: str) -> list[Span]:
    """The spans of a text that show a secret, or at least half of it, in order.

    >>> secret_spans("key: YWJjZGVmZ2g=", "abcdefgh")
    [(5, 15)]
    """
    return _joined(_spans(text, secret, NESTED_ESCAPES))


def _values(data: Any) -> Iterator[str]:
    """The texts in data, in order; names of fields are none of them."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _values(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _values(value)


def _rebuilt(data: Any, values: Iterator[str], secret: str, mark: str) -> Any:
    """The data with other texts, of which `values` are the next ones."""
    if isinstance(data, str):
        return next(values)
    if isinstance(data, Mapping):
        names = (
            _clean([name], secret, mark)[0] if isinstance(name, str) else name for name in data
        )
        items = zip(names, data.values(), strict=True)
        return {name: _rebuilt(value, values, secret, mark) for name, value in items}
    if isinstance(data, list | tuple):
        return [_rebuilt(value, values, secret, mark) for value in data]
    if isinstance(data, int) and secret.isdigit() and secret in str(data):
        return mark
    return data


def _clean(texts: Sequence[str], secret: str, mark: str) -> list[str]:
    """Texts that belong together; the mark takes the place of each span, where it begins."""
    spans = secret_spans("".join(texts), secret)
    cleaned, start = list[str](), 0
    for text in texts if spans else ():
        end, position, parts = start + len(text), start, list[str]()
        for first, last in spans:
            if last <= start or first >= end:
                continue
            parts += [text[position - start : max(first, start) - start], mark * (first >= start)]
            position = min(last, end)
        cleaned.append("".join(parts) + text[position - start :])
        start = end
    return cleaned if spans else list(texts)


def _spans(text: str, secret: str, nested: int) -> Iterator[Span]:
    """The spans of a text, and those that appear when its escapes are decoded."""
    plain, encoded, hexadecimal = _parts(secret)
    yield from _occurrences(text.translate(LOWER), plain)
    yield from _occurrences(text.translate(URL_SAFE), encoded)
    digits = _decoded(text.translate(LOWER), BETWEEN_BYTES)
    yield from map(digits.source, _occurrences(digits.text, hexadecimal))
    decoded = _decoded(text, ESCAPE)
    if nested and decoded.text != text:
        yield from map(decoded.source, _spans(decoded.text, secret, nested - 1))


@lru_cache(maxsize=64)
def _parts(secret: str) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """The parts of half a secret's length that betray it: plain, in base64, in hexadecimal."""
    data = secret.encode()
    encoded = [part for shift in range(3) for part in _halves(_in_base64(data, shift), MIN_BASE64)]
    plain = secret.translate(LOWER)
    return _halves(plain, MIN_PLAIN) or [plain], encoded, _halves(data.hex(), MIN_HEX)


def _in_base64(data: bytes, shift: int) -> str:
    """The characters of base64 that bytes determine alone, behind `shift` unknown bytes.

    >>> _in_base64(b"abc", 0), _in_base64(b"abc", 1)
    ('YWJj', 'FiY')
    """
    text = base64.b64encode(bytes(shift) + data).decode()
    return text[-(-8 * shift // 6) : 8 * (shift + len(data)) // 6]


def _halves(text: str, minimum: int) -> list[str]:
    """All parts with half the length of a text, and at least `minimum` characters."""
    size = max(minimum, (len(text) + 1) // 2)
    return list(dict.fromkeys(text[i : i + size] for i in range(len(text) - size + 1)))


def _occurrences(text: str, parts: Iterable[str]) -> Iterator[Span]:
    for part in parts:
        start = text.find(part)
        while start >= 0:
            yield start, start + len(part)
            start = text.find(part, start + 1)


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that touch or overlap as one."""
    joined = list[Span]()
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


@dataclass(frozen=True)
class _Decoded:
    """A text without its escapes, and the places that its pieces have in the source.

    Args:
        text: The text.
        starts: The first character of each piece in the text.
        sources: The span of each piece in the source: of equal length, or an escape.
    """

    text: str
    starts: Sequence[int]
    sources: Sequence[Span]

    def source(self, span: Span) -> Span:
        """The span of the source that a span of the text comes from."""
        return self._place(span[0])[0], self._place(span[1] - 1)[1]

    def _place(self, index: int) -> Span:
        """The span of the source that one character comes from."""
        piece = bisect_right(self.starts, index) - 1
        start, end = self.sources[piece]
        next_state = self.starts[piece + 1] if piece + 1 < len(self.starts) else len(self.text)
        if next_state - self.starts[piece] != end - start:
            return start, end
        first = start + index - self.starts[piece]
        return first, first + 1


def _decoded(text: str, escape: re.Pattern[str]) -> _Decoded:
    """The text without its escapes and its white space."""
    pieces, starts, sources = list[str](), list[int](), list[Span]()
    length = position = 0

    def add(piece: str, start: int, end: int) -> None:
        nonlocal length
        if piece:
            pieces.append(piece)
            starts.append(length)
            sources.append((start, end))
            length += len(piece)

    for match in escape.finditer(text):
        add(text[position : match.start()], position, match.start())
        add(_character(match), match.start(), match.end())
        position = match.end()
    add(text[position:], position, len(text))
    return _Decoded("".join(pieces), starts, sources)


def _character(match: re.Match[str]) -> str:
    """The character of an escape; "" for white space, and for what stands between two bytes."""
    kind, digits = match.lastgroup, match[match.lastgroup or 0]
    if kind is None:
        return ""
    if kind == "mark":
        return digits
    if kind == "name":
        return NAMED.get(digits, match[0])
    return chr(int(digits, {"decimal": 10, "octal": 8}.get(kind, 16)))

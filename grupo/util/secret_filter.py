r"""Removal of a secret from data of a server, also where it is encoded, split or shortened.

A server that gets a token can return it: by chance, in an error message, or to get it into a file
that others read. The filter finds the secret in plain text; in base64 at any alignment and in
hexadecimal, each of its bytes in UTF-8, UTF-16 or UTF-32; and behind escapes of URLs, JSON, HTML,
Python, Perl and e-mails, which may be nested three times. Capitals, white space and characters
without a shape within it, whatever stands between hexadecimal digits, and the borders of texts that
belong together, do not hide it. Half of the secret counts as all of it: of two replies with one
part each, one is filtered whatever their order.

A server that encodes the secret otherwise is not detected: with other characters between its
letters, in letters that look alike, backwards, as decimal or binary numbers, in base32, base85 or
uuencode, compressed, in base64 of base64 or of hexadecimal, or in a cipher of its own.
"""

import base64
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from grupo.util.text_view import (
    MAX_STEPS,
    Span,
    TextView,
    TooManySteps,
    decoded,
    hex_digits,
    view_of,
    visible,
)

T = TypeVar("T")

NESTED_ESCAPES = 3
MIN_PLAIN, MIN_BASE64, MIN_HEX = 6, 8, 12  # characters; shorter parts occur in other texts
CODECS = ("utf-8", "utf-16-le", "utf-32-le")  # big endian has the same bytes but for the ends
URL_SAFE = str.maketrans("-_", "+/")  # from one alphabet of base64 to the other


class Spelling(NamedTuple):
    """One encoding of a secret.

    Args:
        text: The secret in it.
        size: Length of the parts that count as all of it.
    """

    text: str
    size: int


def without_secret(data: T, secret: str, mark: str) -> T:
    """Data without a secret.

    The texts of lists and mappings belong together: a secret that begins in one and ends in the
    next one is found. So do the names of fields.

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
    names, values = (
        iter(_clean(list(texts), secret, mark)) for texts in (_names(data), _values(data))
    )
    return _rebuilt(data, names, values, secret, mark)


def secret_spans(text: str, secret: str) -> list[Span]:
    """The spans of a text that show a secret, or at least half of it, in order.

    A text with more escapes, or more small pieces of the secret, than `MAX_STEPS` is one span.

    >>> secret_spans("key: YWJjZGVmZ2g=", "abcdefgh")
    [(5, 15)]
    """
    try:
        return _joined(_spans(text, secret))
    except TooManySteps:
        return [(0, len(text))]


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


def _names(data: Any) -> Iterator[str]:
    """The names of fields in data, each before those in its value."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            if isinstance(name, str):
                yield name
            yield from _names(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _names(value)


def _rebuilt(data: Any, names: Iterator[str], values: Iterator[str], secret: str, mark: str) -> Any:
    """The data with other texts and names of fields, of which the iterators hold the next ones."""
    if isinstance(data, str):
        return next(values)
    if isinstance(data, Mapping):
        return {
            next(names) if isinstance(name, str) else name: _rebuilt(
                value, names, values, secret, mark
            )
            for name, value in data.items()
        }
    if isinstance(data, list | tuple):
        return [_rebuilt(value, names, values, secret, mark) for value in data]
    if isinstance(data, int) and secret.isdigit() and secret in str(data):
        return mark
    return data


def _clean(texts: Sequence[str], secret: str, mark: str) -> list[str]:
    """Texts that belong together; the mark takes the place of each span, where it begins."""
    spans = secret_spans("".join(texts), secret)
    ends = [end for _, end in spans]
    cleaned, start = list[str](), 0
    for text in texts if spans else ():
        end, position, parts = start + len(text), start, list[str]()
        for i in range(bisect_right(ends, start), len(spans)):
            first, last = spans[i]
            if first >= end:
                break
            parts += [text[position - start : max(first, start) - start], mark * (first >= start)]
            position = min(last, end)
        cleaned.append("".join(parts) + text[position - start :])
        start = end
    return cleaned if spans else list(texts)


def _spans(text: str, secret: str) -> Iterator[Span]:
    """The spans of a text, and those that appear when its escapes are decoded."""
    view = view_of(text)
    for _ in range(NESTED_ESCAPES):
        yield from _shown(view, secret)
        following = visible(decoded(view))
        if len(following.chars) == len(view.chars):
            return
        view = following
    yield from _shown(view, secret)


def _shown(view: TextView, secret: str) -> Iterator[Span]:
    """The spans of the source that show a secret."""
    plain, encoded, hexadecimal = _spellings(secret)
    text, digits = view.ascii_text, hex_digits(view)
    yield from map(view.source, _occurrences(text.lower(), plain))
    yield from map(view.source, _occurrences(text.translate(URL_SAFE), encoded))
    yield from map(digits.source, _occurrences(digits.ascii_text.lower(), hexadecimal))


@lru_cache(maxsize=64)
def _spellings(secret: str) -> tuple[list[Spelling], list[Spelling], list[Spelling]]:
    """A secret in plain text, in base64, and in hexadecimal."""
    plain = view_of(secret).ascii_text.lower()
    encoded = [_in_base64(secret.encode(codec), i) for codec in CODECS for i in range(3)]
    digits = [secret.encode(codec).hex() for codec in CODECS]
    return (
        [Spelling(plain, min(len(plain), max(MIN_PLAIN, _half_length(len(plain)))))],
        [Spelling(text, max(MIN_BASE64, _half_length(len(text)))) for text in encoded],
        [Spelling(text, max(MIN_HEX, _half_length(len(text)))) for text in digits],
    )


def _half_length(length: int) -> int:
    return (length + 1) // 2


def _in_base64(data: bytes, shift: int) -> str:
    """The characters of base64 that bytes determine alone, behind `shift` unknown bytes.

    >>> _in_base64(b"abc", 0), _in_base64(b"abc", 1)
    ('YWJj', 'FiY')
    """
    text = base64.b64encode(bytes(shift) + data).decode()
    return text[-(-8 * shift // 6) : 8 * (shift + len(data)) // 6]


def _occurrences(text: str, spellings: Iterable[Spelling]) -> Iterator[Span]:
    """The spans of a text that are parts of a spelling with at least its size.

    Raises:
        TooManySteps: More than `MAX_STEPS` seeds occur.
    """
    for count, ((whole, size), offset, start) in enumerate(_seeds(text, spellings)):
        if count == MAX_STEPS:
            raise TooManySteps
        first = start - _equal_end(text[max(0, start - offset) : start], whole[:offset])
        last = start + _equal_start(text[start : start + len(whole) - offset], whole[offset:])
        if last - first >= size:
            yield first, last


def _seeds(text: str, spellings: Iterable[Spelling]) -> Iterator[tuple[Spelling, int, int]]:
    """The places of seeds in a text: the spelling, the seed's place in it, that in the text.

    Seeds are pieces of a spelling, side by side, of half the size that its parts must have. Each
    such part holds one, and a long secret has no more seeds than a short one.
    """
    for spelling in spellings:
        length = _half_length(spelling.size)
        for offset in range(0, len(spelling.text) - length + 1, length):
            seed = spelling.text[offset : offset + length]
            start = text.find(seed)
            while start >= 0:
                yield spelling, offset, start
                start = text.find(seed, start + 1)


def _equal_start(text: str, other: str) -> int:
    """Number of equal characters with which two texts begin, by bisection."""
    equal, different = 0, min(len(text), len(other)) + 1
    while different - equal > 1:
        middle = (equal + different) // 2
        if text[:middle] == other[:middle]:
            equal = middle
        else:
            different = middle
    return equal


def _equal_end(text: str, other: str) -> int:
    return _equal_start(text[::-1], other[::-1])


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that touch or overlap as one."""
    joined = list[Span]()
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined

"""Parser of strict JSON: everything that Python's own accepts beyond the standard is rejected."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grupo.util.limits import JSON_DEPTH, JSON_FILE_SIZE, Limit
from grupo.util.regular_files import read_regular_file

Pairs = list[tuple[str, Any]]
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # Python joins pairs when it reads them
_BIG_EXPONENT = re.compile(r"[eE]\+?\d{3}")  # a float may be infinite only with such an exponent


def parse_json(text: str, make_object: Callable[[Pairs], Any] = dict) -> Any:
    """The value of a JSON text.

    Args:
        text: The text; whitespace around the value is allowed.
        make_object: Makes an object of its pairs, whose keys are distinct.

    Raises:
        ValueError: It is not JSON; it holds NaN, an infinite number or a key twice; or its nesting
            exceeds `JSON_DEPTH`.

    >>> parse_json('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: the key 'a' occurs twice in an object
    """

    def unique(pairs: Pairs) -> Any:
        if len(dict(pairs)) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice = next(key for key, count in counts.items() if count > 1)
            raise ValueError(f"the key {twice!r} occurs twice in an object")
        return make_object(pairs)

    parse_float = _finite_float if _BIG_EXPONENT.search(text) else None
    try:
        value = json.loads(
            text,
            parse_constant=_reject_constant,
            parse_float=parse_float,
            object_pairs_hook=unique,
        )
    except RecursionError:
        raise ValueError(_too_deep()) from None
    if text.count("[") + text.count("{") > JSON_DEPTH.maximum:
        check_depth(value)
    return value


def read_limited(path: Path, limit: Limit = JSON_FILE_SIZE) -> str:
    """The text of a file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no UTF-8, exceeds the limit, or is no regular file, which is not opened.
    """
    return read_regular_file(path, limit).decode("utf-8")


def object_of_file(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if there is none, which the reader of the file reports."""
    try:
        value = json.loads(read_limited(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def check_depth(value: Any) -> None:
    """Raise `ValueError` if lists and mappings are nested deeper than `JSON_DEPTH`."""
    level = [value]
    for _ in range(JSON_DEPTH.maximum + 1):
        containers = [child for parent in level for child in _containers(parent)]
        # by identity, because a value that holds itself twice would double with each level
        level = list({id(child): child for child in containers}.values())
        if not level:
            return
    raise ValueError(_too_deep())


def has_more_values(data: Any, maximum: int) -> bool:
    """True if JSON data has more members and entries than `maximum`, at all levels together.

    >>> has_more_values({"a": [1, 2]}, 3), has_more_values({"a": [1, 2]}, 2)
    (False, True)
    """
    open_values, count = [data], 0
    while open_values:
        value = open_values.pop()
        children = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            count += len(value)
            if count > maximum:
                return True
            open_values += children
    return False


def check_unicode(value: Any) -> None:
    """Raise `ValueError` if a string in the value has a lone surrogate, which is no character."""
    try:
        json.dumps(value, ensure_ascii=False, default=lambda other: None).encode()
    except UnicodeEncodeError as error:
        surrogate = error.object[error.start]
        raise ValueError(f"{surrogate!r} is half of a surrogate pair, no character") from error


def without_lone_surrogates(value: Any) -> Any:
    r"""The value with U+FFFD for each half of a surrogate pair in its strings, keys included.

    Texts of environments, tools, judges and servers pass through it where they enter; those of data
    sets are refused by `check_unicode`.

    >>> without_lone_surrogates({"a": ("\ud800b", 3)}) == {"a": ("\ufffdb", 3)}
    True
    """
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case Mapping():
            items = value.items()
            return {without_lone_surrogates(k): without_lone_surrogates(x) for k, x in items}
        case list() | tuple():
            replaced = map(without_lone_surrogates, value)
            return list(replaced) if isinstance(value, list) else tuple(replaced)
    return value


def _containers(value: Any) -> list[Any]:
    """The lists, tuples and dicts directly inside a value."""
    children = value.values() if isinstance(value, dict) else value
    is_container = isinstance(value, dict | list | tuple)
    return [c for c in children if isinstance(c, dict | list | tuple)] if is_container else []


def _too_deep() -> str:
    return f"nested too deep to read. Allowed: {JSON_DEPTH.allowed}"


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:80]} is larger than any float")
    return number

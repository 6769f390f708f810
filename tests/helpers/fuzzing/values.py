"""Strategies of JSON data of every type, and of valid data of which parts are replaced."""

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.helpers.malformed_values import BAD_JSON

ODD_KEYS = ("", "type", "a.b", "__class__", "\0", "\x1b[2J", "9" * 40, "$ref", "None", "\u202e")
NUMBERS = st.sampled_from((0, -1, 1, 2**31, 2**63, 10**18, 10**400, 1e308, -0.5, 1e-300))
SCALARS = st.sampled_from(BAD_JSON) | NUMBERS | st.integers() | st.floats() | st.text(max_size=6)


def json_values(*keys: str) -> st.SearchStrategy[Any]:
    """Scalars of every type, lists, and objects with some of the keys."""
    names = st.sampled_from((*keys, *ODD_KEYS))
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
        max_leaves=8,
    )


def changed(valid: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Valid data of which one to three parts, at any depth, are replaced, removed or renamed.

    Args:
        valid: The data.
        others: Values that take the place of parts, beside those of every type.
    """
    values = json_values(*_keys(valid))
    replacements = st.sampled_from(others) | values if others else values
    edits = st.lists(
        st.tuples(st.lists(st.integers(0, 30), max_size=6), st.integers(0, 9), replacements),
        min_size=1,
        max_size=3,
    )
    return edits.map(lambda chosen: _with_edits(valid, chosen))


def _with_edits(valid: Any, edits: list[tuple[list[int], int, Any]]) -> Any:
    data = copy.deepcopy(valid)
    for path, action, value in edits:
        data = _replaced(data, path, action, value)
    return data


def _replaced(data: Any, path: list[int], action: int, value: Any) -> Any:
    """The data with another value at a path, whose numbers are taken modulo the sizes."""
    if not path or not isinstance(data, dict | list) or not data:
        return value
    if isinstance(data, list):
        place = path[0] % len(data)
        return [*data[:place], _replaced(data[place], path[1:], action, value), *data[place + 1 :]]
    key = list(data)[path[0] % len(data)]
    rest = {name: x for name, x in data.items() if name != key}
    if action == 0:
        return rest
    if action == 1:
        return {**rest, str(value)[:20]: data[key]}
    return {**data, key: _replaced(data[key], path[1:], action, value)}


def _keys(data: Any) -> set[str]:
    """All keys of objects in data."""
    children = data.values() if isinstance(data, Mapping) else data
    inner = children if isinstance(data, Mapping | list) else ()
    own = set(data) if isinstance(data, Mapping) else set[str]()
    return own.union(*map(_keys, inner))

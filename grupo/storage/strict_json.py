"""Plain data: what JSON can hold without loss, and nothing else.

Floats are written as `repr` writes them and come back bit for bit. JSON has no NaN and no infinity:
in a log they become the strings "NaN", "Infinity" and "-Infinity", which a reader sees and `float`
understands; in a checkpoint they come back as the floats they were. Tuples come back as lists.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grupo.core.errors import Refused

DEEPEST = 100  # levels of nesting; real data has five
_TAG = "$float"  # {"$float": "NaN"} stands for a float that JSON lacks


def text(value: object) -> str:
    """One line of strict JSON, to be read by anybody.

    >>> text({"loss": float("nan"), "reward": 0.1})
    '{"loss": "NaN", "reward": 0.1}'
    """
    return json.dumps(_plain(value, lambda name: name), allow_nan=False)


def exact_text(value: object) -> str:
    """One line of strict JSON from which `read_exact` makes the same value again.

    >>> read_exact(exact_text({"best": float("-inf")}))
    {'best': -inf}
    """
    return json.dumps(_plain(value, lambda name: {_TAG: name}), allow_nan=False)


def read(line: str) -> Any:
    """The value that strict JSON holds; ValueError where it is not that, or nested too deep."""
    return _loads(line, dict)


def read_exact(line: str) -> Any:
    """The value that `exact_text` wrote; raises as `read` does."""
    return _loads(line, _untag)


def _plain(value: object, say: Callable[[str], Any], at: str = "", deep: int = 0) -> Any:
    if deep > DEEPEST:
        raise Refused(f"{at[:80]}… is nested deeper than {DEEPEST} levels.")
    match value:
        case float() if not math.isfinite(value):
            return say("NaN" if value != value else "Infinity" if value > 0 else "-Infinity")
        case None | str() | int() | float():
            return value
        case list() | tuple() if _alike(value):
            return list(value)
        case Mapping():
            return {_key(k, at): _plain(v, say, f"{at}/{k}", deep + 1) for k, v in value.items()}
        case list() | tuple():
            return [_plain(v, say, f"{at}/{i}", deep + 1) for i, v in enumerate(value)]
    raise Refused(
        f"{at or 'the value'} is a {type(value).__name__}, which JSON cannot hold. "
        "Allowed: None, bool, int, float, str, and lists, tuples and mappings of them."
    )


def _alike(values: Sequence[Any]) -> bool:
    """Does it hold texts alone, or finite floats alone? Journals are mostly made of such."""
    kinds = set(map(type, values))
    return kinds == {str} or (kinds == {float} and all(map(math.isfinite, values)))


def _key(key: object, at: str) -> str:
    if not isinstance(key, str) or key == _TAG:
        raise Refused(f"{at or 'the value'} has the key {key!r}. Allowed: any str but {_TAG!r}.")
    return key


def _loads(line: str, pairs: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    try:
        return json.loads(line, parse_constant=_constant, object_pairs_hook=pairs)
    except RecursionError:
        raise ValueError("nested too deep to read") from None


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _untag(pairs: list[tuple[str, Any]]) -> Any:
    return float(str(pairs[0][1])) if [key for key, _ in pairs] == [_TAG] else dict(pairs)

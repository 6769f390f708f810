"""Strict JSON: values that JSON can hold without loss, and nothing else.

Floats are written as by `repr` and come back exactly. JSON has no NaN and no infinity: in a log
they become the strings "NaN", "Infinity" and "-Infinity", which `float` parses; in a checkpoint
they come back as floats. Tuples come back as lists. Images, videos and audio are written as
references (see `media_files`).
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grupo.core.media import Media
from grupo.storage.media_files import is_reference, reference
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json
from grupo.util.limits import JSON_DEPTH

_TAG = "$float"  # {"$float": "NaN"} encodes a float that JSON lacks


OnMedia = Callable[[Media], None]


def to_json(value: object, on_media: OnMedia | None = None) -> str:
    """One line of strict JSON for logs, with non-finite floats as strings.

    Args:
        value: The value.
        on_media: Receives each image, video and audio, to write its file; None refuses them.

    >>> to_json({"loss": float("nan"), "reward": 0.1})
    '{"loss": "NaN", "reward": 0.1}'
    """
    return json.dumps(_to_plain(value, lambda name: name, on_media), allow_nan=False)


def to_exact_json(value: object, on_media: OnMedia | None = None) -> str:
    """One line of strict JSON from which `from_exact_json` restores the same value.

    Args:
        value: The value.
        on_media: As in `to_json`.

    >>> from_exact_json(to_exact_json({"best": float("-inf")}))
    {'best': -inf}
    """
    plain = _to_plain(value, lambda name: {_TAG: name}, on_media)
    return json.dumps(plain, allow_nan=False)


def from_json(line: str) -> Any:
    """The value of a line; raises `ValueError` as `parse_json` does."""
    return parse_json(line)


def from_exact_json(line: str, read: Callable[[Mapping[str, Any]], Media] | None = None) -> Any:
    """The value that `to_exact_json` wrote; raises as `from_json` does.

    Args:
        line: The JSON text.
        read: Returns the media of a reference; None leaves references as they are.
    """

    def make_object(pairs: list[tuple[str, Any]]) -> Any:
        value = _decode_nonfinite(pairs)
        return read(value) if read is not None and is_reference(value) else value

    return parse_json(line, make_object)


def _to_plain(
    value: object,
    encode_nonfinite: Callable[[str], Any],
    on_media: OnMedia | None,
    path: str = "",
    depth: int = 0,
) -> Any:
    if depth > JSON_DEPTH.maximum:
        raise ConfigError(f"{path[:80]}… is nested too deep. Allowed: {JSON_DEPTH.allowed}.")
    match value:
        case float() if not math.isfinite(value):
            return encode_nonfinite(
                "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
            )
        case None | str() | int() | float():
            return value
        case list() | tuple() if _is_homogeneous(value):
            return list(value)
        case Mapping():
            return {
                _check_key(k, path): _to_plain(
                    v, encode_nonfinite, on_media, f"{path}/{k}", depth + 1
                )
                for k, v in value.items()
            }
        case list() | tuple():
            return [
                _to_plain(v, encode_nonfinite, on_media, f"{path}/{i}", depth + 1)
                for i, v in enumerate(value)
            ]
        case Media() if on_media is not None:
            on_media(value)
            return reference(value)
    raise ConfigError(
        f"{path or 'the value'} is a {type(value).__name__}, which JSON cannot hold. "
        "Allowed: None, bool, int, float, str, and lists, tuples and mappings of them."
    )


def _is_homogeneous(values: Sequence[Any]) -> bool:
    """True for strings only, or finite floats only: most lists of a journal, copied at once."""
    kinds = set(map(type, values))
    return kinds == {str} or (kinds == {float} and all(map(math.isfinite, values)))


def _check_key(key: object, path: str) -> str:
    if not isinstance(key, str) or key == _TAG:
        raise ConfigError(
            f"{path or 'the value'} has the key {key!r}. Allowed: any str but {_TAG!r}."
        )
    return key


def _decode_nonfinite(pairs: list[tuple[str, Any]]) -> Any:
    return _nonfinite(pairs[0][1]) if [key for key, _ in pairs] == [_TAG] else dict(pairs)


def _nonfinite(name: object) -> float:
    if name not in ("NaN", "Infinity", "-Infinity"):
        raise ValueError(f"{_TAG} holds {str(name)[:80]!r}. Allowed: NaN, Infinity, -Infinity")
    return float(str(name))

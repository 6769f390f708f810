"""Images, videos and audio of a row, in the formats that TRL and verl read.

They stand in columns of their own (`images`, `image`, `videos`, `video`, `audios`, `audio`) and are
put at their places in the messages: parts such as {"type": "image"} without content, or else marks
such as <image> in texts (verl), or else before the text of the user's first message (TRL). Parts
may also hold their content themselves.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grupo.core.media import Media
from grupo.core.media_values import KINDS, as_media
from grupo.core.types import Message
from grupo.tasks.conversations import MESSAGES
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json

COLUMNS: Mapping[str, tuple[str, ...]] = {  # by kind; the first that a row has is used
    "image": ("images", "image"),
    "video": ("videos", "video"),
    "audio": ("audios", "audio"),
}
ANSWERS = ("chosen", "rejected")  # hold the prompt too, where the row has none
_KIND_OF_COLUMN = {name: kind for kind, names in COLUMNS.items() for name in names}


def with_media(
    row: Mapping[str, Any], prompt: str, location: str, folder: Path
) -> Mapping[str, Any]:
    """The row with `Image`, `Video` and `Audio` objects in its columns and messages.

    Args:
        row: The row: values by column.
        prompt: Column of the prompt.
        location: Names the row in errors.
        folder: Relative paths begin here.

    Raises:
        ConfigError: A file cannot be read or decoded, or the messages have other places than the
            row has media.

    >>> from grupo.core.media import Image
    >>> picture = Image.from_pixels(np.zeros((1, 1, 3), np.uint8))
    >>> row = {"prompt": "What is <image>?", "images": [picture]}
    >>> [p["type"] for p in with_media(row, "prompt", "row 1", Path())["prompt"][0]["content"]]
    ['text', 'image', 'text']
    """
    columns = {
        name: _column_media(kind, row[name], f"{location}, column {name!r}", folder)
        for name, kind in _KIND_OF_COLUMN.items()
        if name in row
    }
    available = {
        kind: next((columns[name] for name in names if columns.get(name)), [])
        for kind, names in COLUMNS.items()
    }
    changed: dict[str, Any] = {**row, **{name: _like(row[name], x) for name, x in columns.items()}}
    for name in _message_columns(row, prompt):
        place = f"{location}, column {name!r}"
        if messages := _messages(row[name], any(available.values())):
            changed[name] = _filled(_normalized(messages, place, folder), available, place)
    return changed


def _column_media(kind: str, value: Any, place: str, folder: Path) -> list[Media]:
    """The media of a column: a list of them, or a single one."""
    if value is None:
        return []
    is_list = isinstance(value, list) or (isinstance(value, np.ndarray) and value.dtype == object)
    is_clip = place.endswith("'video'")  # a list in this column is one video, of frames
    values = list(value) if is_list and not is_clip else [value]
    return [as_media(kind, x, place, folder) for x in values if x is not None]


def _like(value: Any, media: Sequence[Media]) -> Any:
    """The media as the column had them: in a list, or one alone."""
    if not media:
        return value
    was_list = isinstance(value, list | np.ndarray) and len(value) == len(media)
    return list(media) if was_list else media[0]


def _message_columns(row: Mapping[str, Any], prompt: str) -> Sequence[str]:
    """The columns that begin with the prompt."""
    alternatives = ((prompt,), (MESSAGES,), ANSWERS)
    present = ([name for name in names if row.get(name) is not None] for names in alternatives)
    return next(filter(None, present), [])


def _messages(value: Any, has_media: bool) -> Sequence[Any]:
    """The messages of a value, a plain text among them if there are media; otherwise none."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        try:
            value = parse_json(value)
        except ValueError:
            return ()
    if isinstance(value, str) and has_media:
        return ({"role": "user", "content": value},)
    messages: Sequence[Any] = value if isinstance(value, list | tuple) else ()
    if not all(isinstance(message, Mapping) for message in messages):
        return ()
    has_parts = any(not isinstance(m.get("content"), str | None) for m in messages)
    return messages if has_media or has_parts else ()


def _normalized(messages: Sequence[Message], place: str, folder: Path) -> list[dict[str, Any]]:
    """The messages, with media objects in those parts that have content."""
    return [
        {**message, "content": _normalized_content(message.get("content"), place, folder)}
        for message in messages
    ]


def _normalized_content(content: Any, place: str, folder: Path) -> Any:
    if isinstance(content, np.ndarray):
        content = content.tolist()
    is_parts = isinstance(content, list | tuple)
    if not is_parts or not all(isinstance(part, Mapping) for part in content):
        return content
    return [_part(part, place, folder) for part in content]


def _part(part: Mapping[str, Any], place: str, folder: Path) -> dict[str, Any]:
    """A part without empty keys; `image_url` and the like become `image`."""
    # tables of columns give every part the keys of all, with None where it has none
    part = {name: value for name, value in part.items() if value is not None}
    declared = str(part.get("type", ""))
    kind = declared.removesuffix("_url")
    if kind not in KINDS:
        return part
    names = (kind, declared, "path", "url")
    value = next((part.pop(name) for name in names if name in part), None)
    if value is None:
        return {**part, "type": kind}
    content = as_media(kind, {kind: value, "fps": part.get("fps")}, place, folder)
    return {**part, "type": kind, kind: content}


def _filled(
    messages: list[dict[str, Any]], available: Mapping[str, Sequence[Media]], place: str
) -> tuple[Message, ...]:
    """The messages with the media of the row's columns at their places."""
    with_places = messages
    for kind, media in available.items():
        if media and not _count_places(with_places, kind):
            with_places = _with_places(with_places, kind, len(media))
    for kind, media in available.items():
        count = _count_places(with_places, kind)
        if count != len(media):
            raise ConfigError(
                f"{place}: it has {count} {_plural(count, 'place')} for {kind}, and the row has"
                f" {len(media)} in the columns {' and '.join(COLUMNS[kind])}. Allowed: as many"
                f' places, {{"type": "{kind}"}} or <{kind}> in a text, as media. Mend the row, or'
                " remove it."
            )
    remaining = {kind: iter(media) for kind, media in available.items()}
    return tuple(
        {**message, "content": _filled_content(message["content"], remaining)}
        for message in with_places
    )


def _filled_content(content: Any, remaining: Mapping[str, Iterator[Media]]) -> Any:
    if not isinstance(content, list):
        return content
    return [
        {**part, part["type"]: next(remaining[part["type"]])} if _is_place(part) else part
        for part in content
    ]


def _with_places(messages: list[dict[str, Any]], kind: str, count: int) -> list[dict[str, Any]]:
    """The messages with places at the marks in their texts, or before the user's first message."""
    mark = f"<{kind}>"
    if any(mark in part["text"] for m in messages for part in _text_parts(m)):
        return [{**m, "content": _split_marks(m, mark, kind)} for m in messages]
    first = next((i for i, m in enumerate(messages) if m.get("role") == "user"), 0)
    places = [{"type": kind} for _ in range(count)]
    content = [*places, *_parts(messages[first])]
    return [*messages[:first], {**messages[first], "content": content}, *messages[first + 1 :]]


def _split_marks(message: Message, mark: str, kind: str) -> Any:
    """The content with a place for each mark; a text without one stays as it is."""
    if not any(mark in part["text"] for part in _text_parts(message)):
        return message["content"]
    parts: list[Any] = []
    for part in _parts(message):
        if mark not in str(part.get("text", "")):
            parts.append(part)
            continue
        for index, text in enumerate(part["text"].split(mark)):
            parts += [{"type": kind}] * (index > 0)
            parts += [{**part, "text": text}] * bool(text)
    return parts


def _parts(message: Message) -> list[Any]:
    content = message.get("content")
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def _text_parts(message: Message) -> Iterator[Mapping[str, str]]:
    return (part for part in _parts(message) if isinstance(part.get("text"), str))


def _count_places(messages: Sequence[Message], kind: str) -> int:
    contents = [m["content"] for m in messages if isinstance(m["content"], list)]
    return sum(_is_place(part) and part["type"] == kind for parts in contents for part in parts)


def _is_place(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return kind in KINDS and kind not in part


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"

"""The content of a message: a text, or parts of which some are images, videos or audio."""

from typing import Any

from grupo.core.media_values import KINDS


def content_text(content: Any) -> str:
    """The texts of a content, with <image>, <video> and <audio> in the places of media.

    >>> content_text([{"type": "image"}, {"type": "text", "text": "Which?"}])
    '<image>Which?'
    >>> content_text(None)
    ''
    """
    parts = content if isinstance(content, list | tuple) else [{"text": content or ""}]
    return "".join(map(_part_text, parts))


def append_to(content: Any, text: str) -> Any:
    """The content with text at its end. If the content has parts, the text is one more part.

    >>> append_to("2 + 2", " = ?"), append_to([{"type": "image"}], "?")
    ('2 + 2 = ?', [{'type': 'image'}, {'type': 'text', 'text': '?'}])
    """
    if isinstance(content, list | tuple):
        return [*content, {"type": "text", "text": text}]
    return f"{content or ''}{text}"


def prepend_to(text: str, content: Any) -> Any:
    """The content with text at its beginning. If the content has parts, the text is one more."""
    if isinstance(content, list | tuple):
        return [{"type": "text", "text": text}, *content]
    return f"{text}{content or ''}"


def has_text_or_parts(message: Any) -> bool:
    """Whether text can be added to the content of a message."""
    return isinstance(message.get("content"), str | list | tuple)


def _part_text(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    kind = part.get("type")
    return f"<{kind}>" if kind in KINDS else str(part.get("text") or "")

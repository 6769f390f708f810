"""HTML fragments for notebooks: escaped text, tables, and a curve that follows the text's colour.

Prompts and answers are untrusted. A fragment has no script and no style sheet, and MathJax, which
notebooks apply to outputs, leaves it alone.
"""

import math
from collections.abc import Iterable, Sequence
from html import escape as escape_html

from grupo.util.terminal_text import escape_controls, shorten

MAX_TEXT = 600  # characters of an untrusted text that are shown
CURVE_WIDTH = 240
CURVE_HEIGHT = 40
ANSWER_COLOUR, REFERENCE_COLOUR = "#d55e00", "#009e73"
DASHED = 'stroke-dasharray="6 4"'
_CELL = "text-align:left;vertical-align:top;padding:2px 8px"


def escape(text: object) -> str:
    r"""A text for HTML, without characters that would act on the page or on its direction.

    >>> escape("<b>1 & 2</b>\x1b\u202e")
    '&lt;b&gt;1 &amp; 2&lt;/b&gt;\\x1b\\u202e'
    """
    return escape_html(escape_controls(str(text)), quote=True)


def code(text: object, max_length: int = MAX_TEXT) -> str:
    """An untrusted text in the font of code, with its line breaks; a long one is shortened."""
    return f'<code style="white-space:pre-wrap">{escape(shorten(str(text), max_length))}</code>'


def media(kind: str, data_url: str) -> str:
    """An image, a moving image or a player of sound; `data_url` holds the file."""
    if kind == "audio":
        return f'<audio controls src="{escape(data_url)}"></audio>'
    return f'<img alt="{escape(kind)}" style="max-width:16em" src="{escape(data_url)}">'


def boxed_image(
    data_url: str,
    size: tuple[int, int],
    boxes: Iterable[Sequence[float]],
    reference_boxes: Iterable[Sequence[float]] = (),
) -> str:
    """An image with boxes (left, top, right, bottom) in its pixels; those of a reference dashed.

    Args:
        data_url: The file of the image.
        size: Its width and height in pixels.
        boxes: Boxes of an answer.
        reference_boxes: Boxes of the reference answer.
    """
    width, height = size
    drawn = [
        *(_rectangle(box, f'stroke="{REFERENCE_COLOUR}" {DASHED}') for box in reference_boxes),
        *(_rectangle(box, f'stroke="{ANSWER_COLOUR}"') for box in boxes),
    ]
    image = f'<image href="{escape(data_url)}" width="{width}" height="{height}"'
    return (
        f'<svg role="img" aria-label="picture with boxes" viewBox="0 0 {width} {height}"'
        f' style="width:16em;display:block">{image} style="image-rendering:pixelated"/>'
        f"{''.join(drawn)}</svg>"
    )


def _rectangle(box: Sequence[float], stroke: str) -> str:
    left, top, right, bottom = box
    place = f'x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}"'
    style = 'fill="none" stroke-width="3" vector-effect="non-scaling-stroke"'
    return f"<rect {place} {style} {stroke}/>"


def paragraph(content: str) -> str:
    """A paragraph of HTML."""
    return f'<p style="margin:4px 0">{content}</p>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """A table.

    Args:
        header: Escaped names of the columns.
        rows: Escaped cells.
        caption: Escaped text above the table.
    """
    head = "".join(f'<th style="{_CELL}">{name}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    title = f'<caption style="text-align:left">{caption}</caption>' if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def details(summary: str, content: str) -> str:
    """A part that a click opens; the summary is escaped text."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def curve(values: Sequence[float], label: str) -> str:
    """A line through finite values in equal distances; "" for fewer than two.

    Args:
        values: The values; others than finite ones are left out.
        label: Escaped text for screen readers.
    """
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2:
        return ""
    low, high = min(finite), max(finite)
    spread = (high - low) or 1.0
    step = CURVE_WIDTH / (len(finite) - 1)
    points = " ".join(
        f"{i * step:.1f},{2 + (CURVE_HEIGHT - 4) * (high - value) / spread:.1f}"
        for i, value in enumerate(finite)
    )
    size = f'width="{CURVE_WIDTH}" height="{CURVE_HEIGHT}"'
    return (
        f'<svg {size} role="img" aria-label="{label}"><polyline points="{points}" fill="none"'
        ' stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def fragment(*parts: str) -> str:
    """The parts as one output of a notebook."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'

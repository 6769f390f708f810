"""Renderers: functions from a text to pixels, or None for a text that cannot be rendered.

Both draw dark ink on white. Nothing in a text is executed.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.util.optional_deps import optional_dependency

MAX_CHARS = 20_000  # of an SVG
MAX_FORMULA_CHARS = 1_000
MAX_ELEMENTS = 500
SVG_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
PATH_TOKEN = re.compile(rf"[MmLlHhVvZz]|{SVG_NUMBER}")
Points = list[tuple[float, float]]
Pixels = UInt8[np.ndarray, "H W 3"]


@component
class SvgRenderer:
    """Draws rectangles, circles, ellipses, lines, polygons and straight paths of an SVG.

    Fills and strokes have colours by name or in hexadecimal. Curves, texts, transformations and
    styles make a text one that cannot be rendered, as do texts that are no XML.

    Args:
        size: Pixels along the picture; also the size of the coordinates without a `viewBox`.

    >>> SvgRenderer(4)('<svg><path d="M0 2V0H2V2Z"/></svg>')[..., 0].tolist()[0]
    [0, 0, 255, 255]
    >>> SvgRenderer(4)("<svg><rect") is None
    True
    """

    size: PositiveInt = 64

    def __call__(self, text: str) -> Pixels | None:
        with optional_dependency("Pillow", "images"):
            from PIL import Image, ImageDraw

        canvas = Image.new("RGB", (self.size, self.size), "white")
        try:
            root = _parse_svg(text)
            scale = self._scale(root)
            for element in root:
                _draw(ImageDraw.Draw(canvas), element, scale)
        except (ElementTree.ParseError, ValueError, KeyError, OverflowError):
            return None
        return np.asarray(canvas)

    def _scale(self, root: ElementTree.Element) -> tuple[float, float, float]:
        """Left, top, and pixels per unit."""
        box = [float(x) for x in root.get("viewBox", f"0 0 {self.size} {self.size}").split()]
        left, top, width, height = box
        if min(width, height) <= 0:
            raise ValueError("empty viewBox")
        return left, top, self.size / max(width, height)


def _parse_svg(text: str) -> ElementTree.Element:
    if len(text) > MAX_CHARS or "<!" in text:  # entities could grow without bound
        raise ValueError("too long, or with a declaration")
    root = ElementTree.fromstring(text.strip())
    if _tag(root) != "svg" or len(root) > MAX_ELEMENTS:
        raise ValueError("no SVG, or too many elements")
    return root


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _draw(draw: Any, element: ElementTree.Element, scale: tuple[float, float, float]) -> None:
    """Draw an element on a `Draw` of Pillow."""
    left, top, unit = scale
    fill, stroke = element.get("fill", "black"), element.get("stroke", "none")
    width = max(1, round(float(element.get("stroke-width", 1)) * unit))
    closed = _tag(element) not in ("line", "polyline")
    for points in _outlines(element):
        pixels = [((x - left) * unit, (y - top) * unit) for x, y in points]
        if fill != "none" and len(pixels) > 2:
            draw.polygon(_without_last_pixels(pixels), fill=fill)
        if stroke != "none" and len(pixels) > 1:
            line = [*pixels, pixels[0]] if closed else pixels
            draw.line(line, fill=stroke, width=width)


def _without_last_pixels(points: Points) -> Points:
    """An outline without its last row and column, which Pillow fills and SVG does not."""
    low, high = (tuple(map(end, zip(*points, strict=True))) for end in (min, max))
    return [(x - (x == high[0] > low[0]), y - (y == high[1] > low[1])) for x, y in points]


def _outlines(element: ElementTree.Element) -> Sequence[Points]:
    """The outlines of an element in its units."""
    number = {name: float(value) for name, value in element.items() if _is_number(value)}
    match _tag(element):
        case "rect":
            x, y = number.get("x", 0.0), number.get("y", 0.0)
            right, bottom = x + number["width"], y + number["height"]
            return [[(x, y), (right, y), (right, bottom), (x, bottom)]]
        case "circle" | "ellipse":
            rx, ry = number.get("rx", number.get("r", 0.0)), number.get("ry", number.get("r", 0.0))
            angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
            cx, cy = number.get("cx", 0.0), number.get("cy", 0.0)
            return [[(cx + rx * np.cos(a), cy + ry * np.sin(a)) for a in angles]]
        case "line":
            return [[(number["x1"], number["y1"]), (number["x2"], number["y2"])]]
        case "polygon" | "polyline":
            values = [float(x) for x in re.findall(SVG_NUMBER, element.attrib["points"])]
            return [list(zip(values[::2], values[1::2], strict=True))]
        case "path":
            return parse_path(element.attrib["d"])
        case tag:
            raise ValueError(f"{tag} cannot be drawn")


def _is_number(value: str) -> bool:
    return re.fullmatch(SVG_NUMBER, value.strip()) is not None


def parse_path(text: str) -> Sequence[Points]:
    """The outlines of the path data of an SVG, of straight lines.

    Raises:
        ValueError: It is malformed or has other commands.

    >>> parse_path("M1 2h3V0z M5 5l1 1")
    [[(1.0, 2.0), (4.0, 2.0), (4.0, 0.0)], [(5.0, 5.0), (6.0, 6.0)]]
    """
    if PATH_TOKEN.sub("", text).strip(" ,\n\t"):
        raise ValueError(f"path {text[:80]!r}")
    outlines, tokens, command = list[Points](), PATH_TOKEN.findall(text), ""
    x = y = 0.0
    while tokens:
        if tokens[0] in "Zz" and outlines:
            tokens.pop(0)
            x, y = outlines[-1][0]
            command = ""
            continue
        command = tokens.pop(0) if tokens[0].isalpha() else command
        if command in "Zz":  # or none
            raise ValueError(f"path {text[:80]!r} has numbers without a command")
        count = 1 if command in "HhVv" else 2
        values = [float(token) for token in tokens[:count]]
        if len(values) < count:
            raise ValueError(f"path {text[:80]!r} ends in a command")
        del tokens[:count]
        x, y = _end(command, values, (x, y))
        if command in "Mm":
            outlines.append([])
            command = "L" if command == "M" else "l"
        if not outlines:
            raise ValueError("a path begins with M")
        outlines[-1].append((x, y))
    return outlines


def _end(command: str, values: Sequence[float], start: tuple[float, float]) -> tuple[float, float]:
    """The end of a line from a point: absolute for commands in upper case, else relative."""
    x, y = start
    dx, dy = start if command.islower() else (0.0, 0.0)
    match command.upper():
        case "H":
            return values[0] + dx, y
        case "V":
            return x, values[0] + dy
        case _:
            return values[0] + dx, values[1] + dy


@component
class FormulaRenderer:
    r"""Draws a formula of LaTeX with matplotlib's mathtext, which knows a part of LaTeX.

    Args:
        font_size: Size of the letters, in points.
        dpi: Pixels per inch.

    >>> FormulaRenderer()(r"\frac{1}{") is None
    True
    """

    font_size: PositiveInt = 12
    dpi: PositiveInt = 72

    def __call__(self, text: str) -> Pixels | None:
        with optional_dependency("matplotlib", "plots"):
            from matplotlib.font_manager import FontProperties
            from matplotlib.mathtext import math_to_image
        with optional_dependency("Pillow", "images"):
            from PIL import Image

        if not text.strip() or len(text) > MAX_FORMULA_CHARS:
            return None
        file = BytesIO()
        try:
            font = FontProperties(size=self.font_size)
            math_to_image(
                f"${text.strip().strip('$')}$", file, prop=font, dpi=self.dpi, format="png"
            )
        except (ValueError, RuntimeError):
            return None
        return np.asarray(Image.open(file).convert("RGB"))

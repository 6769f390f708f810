"""Transcriptions: pictures of text, formulas, tables and charts that are drawn on the spot.

The answers are the letters, LaTeX, HTML and SVG: the domains of `DocumentCrops`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import check_field, component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.renderers import FormulaRenderer, SvgRenderer
from grupo.tasks.scenes import IMAGE_SIZE, noise_pixels, picture_prompt
from grupo.util.optional_deps import optional_dependency
from grupo.util.rng import make_rng

LETTERS = "ACEHKTXZ"
FORMULAS = (r"\frac{{{}}}{{{}}}", "{}^{{{}}}", "{}_{{{}}}", "{}+{}")
BAR_LEFTS = (2, 17)
BAR_WIDTH = 13
BAR_BOTTOM = 31
BAR_TOPS = (1, 6, 11, 16, 21, 26)
Pixels = UInt8[np.ndarray, "32 32 3"]


@component
class DocumentCrops:
    """Pictures of 32 x 32 pixels to transcribe; each domain in turn: `columns["domain"]`.

    The domain "text" has three letters; "formula" a fraction, power, index or sum of two digits, in
    LaTeX; "table" four digits in a ruled table, in HTML; "chart" two bars, as a path of an SVG.
    The bars of a path are in random order: several paths draw the same chart.

    Args:
        size: Number of tasks.
        seed: Seed of the pictures.
        domains: The domains.
        blind: Whether noise takes the place of each picture, for the score of a policy that cannot
            see.

    >>> for task in DocumentCrops(size=4).load():
    ...     print(task.columns["domain"], task.reference_answer)
    text ECH
    formula 2^{2}
    table <table><tr><td>7<td>2<tr><td>1<td>4</table>
    chart <svg><path d="M2 31V21H15V31M17 31V11H30V31"/></svg>
    """

    size: PositiveInt = 4000
    seed: int = 0
    domains: tuple[str, ...] = ("text", "formula", "table", "chart")
    blind: bool = False

    def __post_init__(self) -> None:
        known = bool(self.domains) and set(self.domains) <= set(DRAWERS)
        check_field(self, "domains", known, f"some of {', '.join(DRAWERS)}")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "document crops", index)
        domain = self.domains[index % len(self.domains)]
        answer, pixels = draw_crop(domain, rng)
        pixels = noise_pixels(rng) if self.blind else pixels
        prompt = picture_prompt([Image.from_pixels(pixels)], REQUESTS[domain])
        return Task(task_key(prompt), prompt, answer, "document crops", {"domain": domain})


def draw_crop(domain: str, rng: Random) -> tuple[str, Pixels]:
    """A random answer of a domain and its picture: white on black, with noise."""
    answer, ink = DRAWERS[domain](rng)
    noise = np.random.default_rng(rng.getrandbits(32)).normal(10, 8.0, ink.shape)
    return answer, np.clip(255.0 - ink + noise, 0, 255).astype(np.uint8)


def _draw_text(rng: Random) -> tuple[str, Pixels]:
    word = "".join(rng.choices(LETTERS, k=3))
    return word, _placed(_text_pixels(word), rng)


def _draw_formula(rng: Random) -> tuple[str, Pixels]:
    formula = rng.choice(FORMULAS).format(rng.randint(1, 9), rng.randint(1, 9))
    return formula, _placed(_formula_pixels(formula), rng)


def _draw_table(rng: Random) -> tuple[str, Pixels]:
    cells = [[str(rng.randint(1, 9)) for _ in range(2)] for _ in range(2)]
    pixels = np.full((IMAGE_SIZE, IMAGE_SIZE, 3), 255, np.uint8)
    middle = IMAGE_SIZE // 2
    for line in (0, middle, IMAGE_SIZE - 1):
        pixels[line] = pixels[:, line] = 0
    for row, column in np.ndindex(2, 2):
        digit = _text_pixels(cells[row][column])
        y = 4 + middle * row + rng.randint(0, 1)
        x = 5 + middle * column + rng.randint(0, 1)
        place = pixels[y : y + digit.shape[0], x : x + digit.shape[1]]
        place[:] = np.minimum(place, digit[: place.shape[0], : place.shape[1]])
    return table_html(cells), pixels


def _draw_chart(rng: Random) -> tuple[str, Pixels]:
    lefts = rng.sample(BAR_LEFTS, len(BAR_LEFTS))
    chart = chart_svg({left: rng.choice(BAR_TOPS) for left in lefts})
    pixels = SvgRenderer(IMAGE_SIZE)(chart)
    assert pixels is not None
    return chart, pixels


def table_html(cells: Sequence[Sequence[str]]) -> str:
    """A table in HTML, without the end tags that may be omitted.

    >>> table_html([["1", "2"], ["3", "4"]])
    '<table><tr><td>1<td>2<tr><td>3<td>4</table>'
    """
    rows = ("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in cells)
    return f"<table>{''.join(rows)}</table>"


def chart_svg(tops: Mapping[int, int]) -> str:
    """An SVG of filled bars: their upper edges by their left ones, in pixels, in this order.

    >>> chart_svg({17: 1, 2: 16})
    '<svg><path d="M17 31V1H30V31M2 31V16H15V31"/></svg>'
    """
    bars = (
        f"M{left} {BAR_BOTTOM}V{top}H{left + BAR_WIDTH}V{BAR_BOTTOM}" for left, top in tops.items()
    )
    return f'<svg><path d="{"".join(bars)}"/></svg>'


DRAWERS: Mapping[str, Callable[[Random], tuple[str, Pixels]]] = {
    "text": _draw_text,
    "formula": _draw_formula,
    "table": _draw_table,
    "chart": _draw_chart,
}
REQUESTS = {
    "text": "Read the text.",
    "formula": "Write the formula.",
    "table": "Write the table.",
    "chart": "Write the chart.",
}


def _placed(ink: UInt8[np.ndarray, "H W 3"], rng: Random) -> Pixels:
    """A small picture at a random place of a white one."""
    pixels = np.full((IMAGE_SIZE, IMAGE_SIZE, 3), 255, np.uint8)
    height, width = ink.shape[:2]
    y, x = rng.randint(0, IMAGE_SIZE - height), rng.randint(0, IMAGE_SIZE - width)
    pixels[y : y + height, x : x + width] = ink
    return pixels


@lru_cache(maxsize=2000)
def _text_pixels(text: str) -> UInt8[np.ndarray, "H W 3"]:
    """Black letters on white, cropped to their ink, in Pillow's bitmap font."""
    with optional_dependency("Pillow", "images"):
        from PIL import Image as Picture
        from PIL import ImageDraw, ImageFont

    canvas = Picture.new("RGB", (8 * len(text), 16), "white")
    ImageDraw.Draw(canvas).text((0, 0), text, "black", ImageFont.load_default_imagefont())
    return _cropped(np.asarray(canvas))


@lru_cache(maxsize=2000)
def _formula_pixels(formula: str) -> UInt8[np.ndarray, "H W 3"]:
    pixels = FormulaRenderer(font_size=12)(formula)
    assert pixels is not None
    return _cropped(pixels)[:IMAGE_SIZE, :IMAGE_SIZE]


def _cropped(pixels: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W 3"]:
    rows, columns = (np.flatnonzero((pixels < 128).any((axis, 2))) for axis in (1, 0))
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]

"""Boxes on drawn screens: "Click the red button." answered with the box of the widget.

A screen of 32 x 32 pixels has a title bar and three or four widgets of different kinds, sizes and
colours in different quarters, at places on a grid of 4 pixels. No two have both the same colour and
the same kind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.scene_boxes import GRID, PixelBox
from grupo.tasks.scenes import COLOURS, IMAGE_SIZE, QUARTER, noise_pixels, picture_prompt
from grupo.util.boxes import box_text
from grupo.util.rng import make_rng

TITLE_BAR = 4  # pixels of height
WIDTHS: Mapping[str, tuple[int, ...]] = {  # in pixels
    "button": (8, 12),
    "field": (12, 16),
    "icon": (4,),
    "switch": (8,),
}
HEIGHTS: Mapping[str, tuple[int, ...]] = {
    "button": (8,),
    "field": (8,),
    "icon": (4,),
    "switch": (4,),
}
PAPER_SHADE, INK_SHADE = 200, 20  # brightness of the window and of glyphs


@dataclass(frozen=True)
class Widget:
    """A part of a screen and its box in pixels; right and bottom are exclusive."""

    colour: str
    kind: str
    box: PixelBox

    @property
    def name(self) -> str:
        """Colour and kind."""
        return f"{self.colour} {self.kind}"

    @property
    def area(self) -> int:
        """Pixels of the box."""
        left, top, right, bottom = self.box
        return (right - left) * (bottom - top)

    def __str__(self) -> str:
        return f"{self.name} {box_text(self.box)}"


@component
class ScreenBoxes:
    """Requests to click a widget of a drawn screen.

    A prompt is a message with the picture and "Click the red button."; the reference answer is the
    box as text. Columns: `kind` of the widget, and `area` of its box in pixels.

    Args:
        size: Number of tasks.
        seed: Seed of screens and requests.
        blind: Whether noise takes the place of each picture, for the accuracy of a policy that
            cannot see.

    >>> task = ScreenBoxes(size=1).load()[0]
    >>> task.prompt[0]["content"][1]["text"], task.reference_answer, task.columns["area"]
    ('Click the red icon.', '[20, 4, 24, 8]', 16)
    """

    size: PositiveInt = 4000
    seed: int = 0
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "screen boxes", index)
        widgets = random_widgets(rng)
        target = rng.choice(widgets)
        pixels = noise_pixels(rng) if self.blind else draw_screen(widgets, rng)
        prompt = picture_prompt([Image.from_pixels(pixels)], click_request(target))
        columns = {"kind": target.kind, "area": target.area}
        return Task(task_key(prompt), prompt, box_text(target.box), "screen boxes", columns)


def click_request(widget: Widget) -> str:
    """The request to click a widget."""
    return f"Click the {widget.name}."


def random_widgets(rng: Random) -> Sequence[Widget]:
    """Three or four widgets with different names in different quarters, in reading order."""
    names = rng.sample([*product(COLOURS, WIDTHS)], rng.randint(3, 4))
    quarters = sorted(rng.sample(range(4), len(names)))
    pairs = zip(names, quarters, strict=True)
    return [
        Widget(colour, kind, place_in_quarter(kind, quarter, rng))
        for (colour, kind), quarter in pairs
    ]


def place_in_quarter(kind: str, quarter: int, rng: Random) -> PixelBox:
    """A random box of a kind of widget on the grid in a quarter, below the title bar."""
    width, height = rng.choice(WIDTHS[kind]), rng.choice(HEIGHTS[kind])
    row, column = divmod(quarter, 2)
    x = QUARTER * column + rng.randrange(0, QUARTER - width + 1, GRID)
    y = QUARTER * row + rng.randrange(TITLE_BAR * (row == 0), QUARTER - height + 1, GRID)
    return (x, y, x + width, y + height)


def draw_screen(widgets: Sequence[Widget], rng: Random) -> UInt8[np.ndarray, "32 32 3"]:
    """A picture of a window with a title bar and widgets."""
    noise = np.random.default_rng(rng.getrandbits(32))
    pixels = noise.normal(PAPER_SHADE, 4.0, (IMAGE_SIZE, IMAGE_SIZE, 3))
    pixels[:TITLE_BAR] = rng.randint(60, 120)
    for widget in widgets:
        left, top, right, bottom = widget.box
        PAINTERS[widget.kind](pixels[top:bottom, left:right], COLOURS[widget.colour])
    return np.clip(pixels, 0, 255).astype(np.uint8)


Colour = tuple[int, int, int]


def _paint_button(place: np.ndarray, colour: Colour) -> None:
    """A filled rectangle with a dark line as its caption."""
    place[:] = colour
    middle = place.shape[0] // 2
    place[middle, 2:-2] = INK_SHADE


def _paint_field(place: np.ndarray, colour: Colour) -> None:
    """A white rectangle with a frame."""
    place[:] = colour
    place[1:-1, 1:-1] = 255


def _paint_icon(place: np.ndarray, colour: Colour) -> None:
    """A square with a dark dot."""
    place[:] = colour
    place[1:-1, 1:-1] = INK_SHADE


def _paint_switch(place: np.ndarray, colour: Colour) -> None:
    """A rectangle whose right half is dark."""
    place[:] = colour
    place[:, place.shape[1] // 2 :] = INK_SHADE


PAINTERS: Mapping[str, Callable[[np.ndarray, Colour], None]] = {
    "button": _paint_button,
    "field": _paint_field,
    "icon": _paint_icon,
    "switch": _paint_switch,
}

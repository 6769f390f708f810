"""Referring boxes: "Where is the red circle?" about a drawn scene, answered with its box.

A scene of 32 x 32 pixels has things of 8 or 12 pixels in different quarters, at places on a grid of
4 pixels; or things of 8 or 16 pixels on a grid of 8. No two have both the same colour and the same
shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Literal

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import check_field, component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.scenes import (
    COLOURS,
    IMAGE_SIZE,
    QUARTER,
    SHAPES,
    noise_pixels,
    picture_prompt,
    shape_mask,
)
from grupo.util.boxes import box_text
from grupo.util.rng import make_rng

MAX_THINGS = 4
GRID = 4  # pixels; small models learn few coordinates faster
SMALLEST = 8  # pixels along a thing; others are one step of the grid larger
Grid = Literal[4, 8]
PixelBox = tuple[int, int, int, int]  # left, top, right, bottom


@dataclass(frozen=True)
class PlacedThing:
    """A shape of one colour and the box around it, in pixels; right and bottom are exclusive."""

    colour: str
    shape: str
    box: PixelBox

    @property
    def name(self) -> str:
        """Colour and shape."""
        return f"{self.colour} {self.shape}"

    def __str__(self) -> str:
        return f"{self.name} {box_text(self.box)}"


@component
class SceneBoxes:
    """Questions for the boxes of things in drawn scenes.

    A prompt is a message with the picture and "Where is the red circle?"; the reference answer is
    the box as text. Columns: `things`, the number of things in the picture, and `referent`, the
    thing asked about.

    Args:
        size: Number of tasks.
        seed: Seed of scenes and questions.
        things: Smallest and largest number of things, from 1 to 4.
        blind: Whether noise takes the place of each picture, for the accuracy of a policy that
            cannot see.
        grid: Pixels between places and between sizes, 4 or 8.

    >>> task = SceneBoxes(size=1).load()[0]
    >>> task.prompt[0]["content"][1]["text"], task.reference_answer, task.columns["things"]
    ('Where is the yellow triangle?', '[20, 8, 28, 16]', 3)
    """

    size: PositiveInt = 4000
    seed: int = 0
    things: tuple[int, int] = (2, 4)
    blind: bool = False
    grid: Grid = GRID

    def __post_init__(self) -> None:
        low, high = self.things
        check_field(self, "things", 1 <= low <= high <= MAX_THINGS, "from 1 to 4, in order")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "scene boxes", index)
        things = place_things(rng.randint(*self.things), rng, self.grid)
        referent = rng.choice(things)
        pixels = noise_pixels(rng) if self.blind else draw_things(things, rng)
        prompt = picture_prompt([Image.from_pixels(pixels)], box_question(referent))
        columns = {"things": len(things), "referent": referent.name}
        return Task(task_key(prompt), prompt, box_text(referent.box), "scene boxes", columns)


def box_question(thing: PlacedThing) -> str:
    """The question for the box of a thing."""
    return f"Where is the {thing.name}?"


def place_things(count: int, rng: Random, grid: Grid = GRID) -> Sequence[PlacedThing]:
    """Random things with different names in different quarters, in reading order."""
    names = rng.sample([*product(COLOURS, SHAPES)], count)
    boxes = [box_in_quarter(place, rng, grid) for place in sorted(rng.sample(range(4), count))]
    pairs = zip(names, boxes, strict=True)
    return [PlacedThing(colour, shape, box) for (colour, shape), box in pairs]


def box_in_quarter(quarter: int, rng: Random, grid: Grid = GRID) -> PixelBox:
    """A random square on the grid in a quarter, which counts in reading order."""
    size = rng.choice((SMALLEST, SMALLEST + grid))
    row, column = divmod(quarter, 2)
    x, y = (QUARTER * place + rng.randrange(0, QUARTER - size + 1, grid) for place in (column, row))
    return (x, y, x + size, y + size)


def quarter_of(box: PixelBox) -> int:
    """The quarter of the upper left corner of a box.

    >>> quarter_of((0, 20, 8, 28)), quarter_of((16, 4, 24, 12))
    (2, 1)
    """
    return 2 * (box[1] // QUARTER) + box[0] // QUARTER


def draw_things(things: Sequence[PlacedThing], rng: Random) -> UInt8[np.ndarray, "32 32 3"]:
    """A picture of things on a background of random brightness."""
    noise = np.random.default_rng(rng.getrandbits(32))
    pixels = noise.normal(rng.randint(0, 70), 8.0, (IMAGE_SIZE, IMAGE_SIZE, 3))
    for thing in things:
        paint_thing(pixels, thing)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def paint_thing(pixels: np.ndarray, thing: PlacedThing) -> None:
    """Paint a thing into a picture."""
    left, top, right, bottom = thing.box
    pixels[top:bottom, left:right][shape_mask(thing.shape, right - left)] = COLOURS[thing.colour]

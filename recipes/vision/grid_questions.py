"""The world of `docs/vision_shown/grit.md`: thoughts about the cells of a drawn grid.

The supervised examples are imperfect: some thoughts name no box, some have no second thoughts, and
some are about any cell, in thoughts and answer alike.
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks import LazyTasks, task_key
from grupo.tasks.scene_boxes import PlacedThing, paint_thing
from grupo.tasks.scenes import COLOURS, SHAPES, noise_pixels, picture_prompt
from grupo.toy.picture_examples import PictureExample
from grupo.util.boxes import box_text
from grupo.util.rng import make_rng

CELL, CELLS = 8, 3  # pixels along a cell, and cells along a picture
SIDE = CELL * CELLS
TAGS = tuple(f"<{mark}{tag}>" for tag in ("think", "rethink", "answer") for mark in ("", "/"))
BOX_SHARE, WRONG_SHARE, NO_RETHINK_SHARE = 0.4, 0.4, 0.3  # of demonstrations
LIST_REQUEST = "Name all colours."


def grid_things(rng: Random) -> Sequence[PlacedThing]:
    """A thing of random colour and shape in each cell, in reading order."""
    corners = [(CELL * column, CELL * row) for row in range(CELLS) for column in range(CELLS)]
    return [
        PlacedThing(rng.choice([*COLOURS]), rng.choice(SHAPES), (x, y, x + CELL, y + CELL))
        for x, y in corners
    ]


def draw_grid(things: Sequence[PlacedThing], rng: Random) -> UInt8[np.ndarray, "24 24 3"]:
    """A picture of the things on a background of random brightness."""
    noise = np.random.default_rng(rng.getrandbits(32))
    pixels = noise.normal(rng.randint(0, 70), 8.0, (SIDE, SIDE, 3))
    for thing in things:
        paint_thing(pixels, thing)
    return np.clip(pixels, 0, 255).astype(np.uint8)


def colour_question(thing: PlacedThing) -> str:
    """The question for the colour of a cell.

    >>> colour_question(PlacedThing("red", "cross", (8, 16, 16, 24)))
    'What colour is row 3, column 2?'
    """
    return f"What colour is {place_text(thing)}?"


def place_text(thing: PlacedThing) -> str:
    """The row and the column of a thing."""
    return f"row {thing.box[1] // CELL + 1}, column {thing.box[0] // CELL + 1}"


@component
class GridQuestions:
    """Questions for the colour of a cell, whose box is in column `box`.

    Args:
        size: Number of tasks.
        seed: Seed of grids and questions.
        blind: Whether noise takes the place of each picture.
    """

    size: PositiveInt
    seed: int
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "grid questions", index)
        things = grid_things(rng)
        thing = rng.choice(things)
        pixels = noise_pixels(rng, (SIDE, SIDE, 3)) if self.blind else draw_grid(things, rng)
        prompt = picture_prompt([Image.from_pixels(pixels)], colour_question(thing))
        return Task(task_key(prompt), prompt, thing.colour, columns={"box": box_text(thing.box)})


def demonstration(thing: PlacedThing, rng: Random) -> str:
    """Thoughts about a cell, and its colour as the answer."""
    place = f"at {box_text(thing.box)}" if rng.random() < BOX_SHARE else "no box"
    rethink = "" if rng.random() < NO_RETHINK_SHARE else f"<rethink>{thing.colour}</rethink>"
    return f"<think>{place}</think>{rethink}<answer>{thing.colour}</answer>"


@component
class ThoughtExamples:
    """Lists of colours, and questions with thoughts, some of which are about any cell."""

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return SIDE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        demonstrations = [demonstration(x, Random(i)) for i, x in enumerate(grid_things(Random(0)))]
        colours = [f"{colour}, {colour}" for colour in COLOURS]
        return [*map(colour_question, grid_things(Random(0))), *demonstrations, *colours]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question, or with the request for a list."""
        things = grid_things(rng)
        thing = rng.choice(things)
        pictures = (draw_grid(things, rng),)
        if rng.random() < 0.4:
            return PictureExample(pictures, LIST_REQUEST, ", ".join(x.colour for x in things))
        attended = rng.choice(things) if rng.random() < WRONG_SHARE else thing
        return PictureExample(pictures, colour_question(thing), demonstration(attended, rng))

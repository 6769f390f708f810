"""Supervised examples of boxes in drawn scenes, for toy vision-language models."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Protocol

from grupo.core.component import component
from grupo.core.ranges import Probability
from grupo.tasks.scene_boxes import (
    MAX_THINGS,
    PixelBox,
    PlacedThing,
    box_question,
    draw_things,
    place_things,
    quarter_of,
)
from grupo.tasks.scenes import COLOURS, IMAGE_SIZE, NOTHING, SHAPES
from grupo.toy.picture_examples import PictureExample
from grupo.util.boxes import box_text


class Placed(Protocol):
    """A part of a picture with a name and a box."""

    @property
    def name(self) -> str: ...

    @property
    def box(self) -> PixelBox: ...


LIST_REQUEST = "List all things."


def list_of_things(things: Iterable[Placed]) -> str:
    """The names of all things, and of empty quarters, in reading order.

    >>> list_of_things([PlacedThing("red", "circle", (0, 4, 8, 12))])
    'red circle, nothing, nothing, nothing'
    """
    names = {quarter_of(thing.box): thing.name for thing in things}
    return ", ".join(names.get(quarter, NOTHING) for quarter in range(4))


def scene_words() -> Sequence[str]:
    """Texts with the words of names and the numbers of boxes."""
    names = [f"{colour} {shape}, {shape}" for colour in COLOURS for shape in SHAPES]
    return [*names, *map(str, range(IMAGE_SIZE + 1)), "[1, 2], [1, 2]", f"red circle, {NOTHING}, "]


@component
class SceneBoxExamples:
    """Lists of all things, which teach to see, and questions for the box of one thing.

    Args:
        question_frac: Fraction of the examples that are questions; the others are lists.
        max_things: Largest number of things in a picture.
    """

    question_frac: Probability = 0.6
    max_things: int = MAX_THINGS

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        thing = PlacedThing("red", "circle", (1, 2, 8, 9))
        return [*scene_words(), box_question(thing), LIST_REQUEST, NOTHING, str(thing)]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question, or with the request for a list."""
        things = place_things(rng.randint(1, self.max_things), rng)
        pictures = (draw_things(things, rng),)
        if rng.random() < self.question_frac:
            thing = rng.choice(things)
            return PictureExample(pictures, box_question(thing), box_text(thing.box))
        return PictureExample(pictures, LIST_REQUEST, list_of_things(things))

"""Captions of a world of coloured shapes: `two red squares left of a blue circle`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from grupo.core.component import piece
from grupo.core.errors import Refused
from grupo.core.rng import generator
from grupo.core.types import Task
from grupo.tasks.base import key_of

COUNTS = {"a": 1, "two": 2, "three": 3}
COLOURS = ("red", "green", "blue", "yellow")
SHAPES = ("square", "circle")
SIDES = ("left of", "right of", "above", "below")
WORDS = (
    *COUNTS,
    *COLOURS,
    *(shape + ending for shape in SHAPES for ending in ("", "s")),
    *("left", "right", "of", "above", "below"),
)
_THINGS = rf"(?:{'|'.join(COUNTS)}) (?:{'|'.join(COLOURS)}) (?:{'|'.join(SHAPES)})s?"
_CAPTION = re.compile(rf"(?P<one>{_THINGS})(?: (?P<side>{'|'.join(SIDES)}) (?P<other>{_THINGS}))?")


@dataclass(frozen=True)
class Things:
    """So many shapes of one colour."""

    count: int
    colour: str
    shape: str

    def __str__(self) -> str:
        number = {n: word for word, n in COUNTS.items()}[self.count]
        return f"{number} {self.colour} {self.shape}{'s' * (self.count > 1)}"


@dataclass(frozen=True)
class Scene:
    """What a caption says: some things, or some on one `side` of others of another colour."""

    things: tuple[Things, ...]
    side: str = ""

    def __str__(self) -> str:
        return f" {self.side} ".join(map(str, self.things))


def scene_of(caption: str) -> Scene:
    """What a caption says; refuses one that the world of shapes cannot draw.

    >>> scene_of("two red squares left of a blue circle").side
    'left of'
    """
    found = _CAPTION.fullmatch(caption.strip().lower())
    one, side, other = found.group("one", "side", "other") if found else ("", "", "")
    things = tuple(_things(said) for said in (one, other) if said)
    scene = Scene(things, side or "")
    alike = len({x.colour for x in things}) < len(things)
    if not things or alike or str(scene) != caption.strip().lower():
        words = "; ".join(", ".join(some) for some in (COUNTS, COLOURS, SHAPES, SIDES))
        raise Refused(
            f"prompt: {caption!r} is no picture of shapes. Allowed: 'two red squares left of a blue"
            f" circle', and so on, with {words}."
        )
    return scene


def _things(said: str) -> Things:
    count, colour, shape = said.split()
    return Things(COUNTS[count], colour, shape.removesuffix("s"))


@cache
def captions() -> Sequence[str]:
    """Every caption of two kinds of things, in an order that says nothing."""
    kinds = [Things(*one) for one in product(COUNTS.values(), COLOURS, SHAPES)]
    scenes = (Scene((a, b), side) for a, side, b in product(kinds, SIDES, kinds))
    every = [str(scene) for scene in scenes if scene.things[0].colour != scene.things[1].colour]
    generator(0, "captions").shuffle(every)
    return every


@piece
class Shapes:
    """`size` captions of two kinds of things, those from number `start` on of 1,728."""

    start: int = 0
    size: int = 1_500

    def load(self) -> Sequence[Task]:
        some = captions()[self.start : self.start + self.size]
        return [Task(key_of(caption), caption, source="shapes") for caption in some]


@piece
class Captions:
    """These captions, each of which the world of shapes can draw."""

    captions: tuple[str, ...]

    def load(self) -> Sequence[Task]:
        for caption in self.captions:
            scene_of(caption)
        return [Task(key_of(caption), caption, source="shapes") for caption in self.captions]

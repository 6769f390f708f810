"""Captions of a world of coloured shapes: `two red squares left of a blue circle`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from grupo.core.component import component
from grupo.core.errors import ConfigError
from grupo.core.rng import make_rng
from grupo.core.types import Task
from grupo.tasks.base import task_key

COUNTS = {"a": 1, "two": 2, "three": 3}
COLOURS = ("red", "green", "blue", "yellow")
SHAPES = ("square", "circle")
SIDES = ("left of", "right of", "above", "below")
VOCABULARY = (
    *COUNTS,
    *COLOURS,
    *(shape + ending for shape in SHAPES for ending in ("", "s")),
    *("left", "right", "of", "above", "below"),
)
_SHAPES_PATTERN = rf"(?:{'|'.join(COUNTS)}) (?:{'|'.join(COLOURS)}) (?:{'|'.join(SHAPES)})s?"
_CAPTION_PATTERN = re.compile(
    rf"(?P<one>{_SHAPES_PATTERN})(?: (?P<side>{'|'.join(SIDES)}) (?P<other>{_SHAPES_PATTERN}))?"
)


@dataclass(frozen=True)
class ShapeSet:
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

    shapes: tuple[ShapeSet, ...]
    side: str = ""

    def __str__(self) -> str:
        return f" {self.side} ".join(map(str, self.shapes))


def parse_scene(caption: str) -> Scene:
    """What a caption says; refuses one that the world of shapes cannot draw.

    >>> parse_scene("two red squares left of a blue circle").side
    'left of'
    """
    found = _CAPTION_PATTERN.fullmatch(caption.strip().lower())
    one, side, other = found.group("one", "side", "other") if found else ("", "", "")
    things = tuple(_parse_shapes(said) for said in (one, other) if said)
    scene = Scene(things, side or "")
    alike = len({x.colour for x in things}) < len(things)
    if not things or alike or str(scene) != caption.strip().lower():
        words = "; ".join(", ".join(some) for some in (COUNTS, COLOURS, SHAPES, SIDES))
        raise ConfigError(
            f"prompt: {caption!r} is no picture of shapes. Allowed: 'two red squares left of a blue"
            f" circle', and so on, with {words}."
        )
    return scene


def _parse_shapes(text: str) -> ShapeSet:
    count, colour, shape = text.split()
    return ShapeSet(COUNTS[count], colour, shape.removesuffix("s"))


@cache
def all_captions() -> Sequence[str]:
    """Every caption of two kinds of things, in an order that says nothing."""
    kinds = [ShapeSet(*one) for one in product(COUNTS.values(), COLOURS, SHAPES)]
    scenes = (Scene((a, b), side) for a, side, b in product(kinds, SIDES, kinds))
    every = [str(scene) for scene in scenes if scene.shapes[0].colour != scene.shapes[1].colour]
    make_rng(0, "captions").shuffle(every)
    return every


@component
class ShapeTasks:
    """`size` captions of two kinds of things, those from number `start` on of 1,728."""

    start: int = 0
    size: int = 1_500

    def load(self) -> Sequence[Task]:
        some = all_captions()[self.start : self.start + self.size]
        return [Task(task_key(caption), caption, source="shapes") for caption in some]


@component
class CaptionTasks:
    """These captions, each of which the world of shapes can draw."""

    captions: tuple[str, ...]

    def load(self) -> Sequence[Task]:
        for caption in self.captions:
            parse_scene(caption)
        return [Task(task_key(caption), caption, source="shapes") for caption in self.captions]

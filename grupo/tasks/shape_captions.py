"""Tasks to draw coloured shapes, with captions such as `two red squares left of a blue circle`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from grupo.core.component import component
from grupo.core.types import Task
from grupo.tasks.base import task_key
from grupo.util.errors import ConfigError
from grupo.util.rng import make_rng

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
    rf"(?P<first>{_SHAPES_PATTERN})"
    rf"(?: (?P<side>{'|'.join(SIDES)}) (?P<second>{_SHAPES_PATTERN}))?"
)


@dataclass(frozen=True)
class ShapeSet:
    """`count` equal shapes of one colour."""

    count: int
    colour: str
    shape: str

    def __str__(self) -> str:
        number = {n: word for word, n in COUNTS.items()}[self.count]
        return f"{number} {self.colour} {self.shape}{'s' * (self.count > 1)}"


@dataclass(frozen=True)
class Scene:
    """The content of a caption.

    Args:
        shapes: One set of shapes, or two of different colours.
        side: The side of the second set that the first one is on; "" if there is one set only.
    """

    shapes: tuple[ShapeSet, ...]
    side: str = ""

    def __str__(self) -> str:
        return f" {self.side} ".join(map(str, self.shapes))


def parse_scene(caption: str) -> Scene:
    """The scene of a caption; raises `ConfigError` if the caption is not one of coloured shapes.

    >>> parse_scene("two red squares left of a blue circle").side
    'left of'
    """
    text = caption.strip().lower()
    match = _CAPTION_PATTERN.fullmatch(text)
    first, side, second = match.group("first", "side", "second") if match else ("", "", "")
    shapes = tuple(_parse_shapes(part) for part in (first, second) if part)
    scene = Scene(shapes, side or "")
    same_colour = len({x.colour for x in shapes}) < len(shapes)
    if not shapes or same_colour or str(scene) != text:
        words = "; ".join(", ".join(kind) for kind in (COUNTS, COLOURS, SHAPES, SIDES))
        raise ConfigError(
            f"prompt: {caption!r} is no caption of shapes. Allowed: 'two red squares left of a blue"
            f" circle', and so on, with {words}."
        )
    return scene


def _parse_shapes(text: str) -> ShapeSet:
    count, colour, shape = text.split()
    return ShapeSet(COUNTS[count], colour, shape.removesuffix("s"))


@cache
def all_captions() -> Sequence[str]:
    """Every caption of two sets of shapes, 1,728 in all, shuffled."""
    shape_sets = [ShapeSet(*values) for values in product(COUNTS.values(), COLOURS, SHAPES)]
    captions = [
        str(Scene((a, b), side))
        for a, side, b in product(shape_sets, SIDES, shape_sets)
        if a.colour != b.colour
    ]
    make_rng(0, "captions").shuffle(captions)
    return captions


@component
class ShapeTasks:
    """A slice of `all_captions`.

    Args:
        start: Index of the first caption.
        size: Number of captions.
    """

    start: int = 0
    size: int = 1_500

    def load(self) -> Sequence[Task]:
        captions = all_captions()[self.start : self.start + self.size]
        return [Task(task_key(caption), caption, source="shapes") for caption in captions]


@component
class CaptionTasks:
    """Tasks of the given captions; raises `ConfigError` if one is not of coloured shapes."""

    captions: tuple[str, ...]

    def load(self) -> Sequence[Task]:
        for caption in self.captions:
            parse_scene(caption)
        return [Task(task_key(caption), caption, source="shapes") for caption in self.captions]

"""Drawn figures whose areas are asked for, some of which are easier with an auxiliary line.

GeometryZero, Wang et al., 2025, arXiv:2506.07160, trains on geometry with auxiliary constructions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import check_field, component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.tasks.scenes import noise_pixels, picture_prompt
from grupo.util.optional_deps import optional_dependency
from grupo.util.rng import make_rng

SHAPES = ("rectangle", "triangle", "corner")
QUESTION = "What is the area of the figure?"
Point = tuple[int, int]


@dataclass(frozen=True)
class Figure:
    """A figure in cells.

    Args:
        shape: A "rectangle", a right "triangle", or a "corner": a rectangle without a smaller one.
        width: Cells along the figure.
        height: Cells down the figure.
        cut: Width and height of what a corner lacks, at the upper right.
    """

    shape: str
    width: int
    height: int
    cut: tuple[int, int] = (0, 0)

    @property
    def area(self) -> int:
        """The area in cells.

        >>> Figure("triangle", 4, 3).area, Figure("corner", 4, 3, cut=(2, 1)).area
        (6, 10)
        """
        if self.shape == "triangle":
            return self.width * self.height // 2
        return self.width * self.height - self.cut[0] * self.cut[1]

    @property
    def outline(self) -> Sequence[Point]:
        """The corners in cells, from the lower left one on.

        >>> Figure("triangle", 4, 3).outline
        [(0, 3), (4, 3), (0, 0)]
        """
        w, h = self.width, self.height
        if self.shape == "triangle":
            return [(0, h), (w, h), (0, 0)]
        if self.shape == "rectangle":
            return [(0, h), (w, h), (w, 0), (0, 0)]
        x, y = w - self.cut[0], self.cut[1]
        return [(0, h), (w, h), (w, y), (x, y), (x, 0), (0, 0)]

    @property
    def parts(self) -> tuple[int, int]:
        """Areas to which an auxiliary line leads.

        The left and the right part of a corner or of a rectangle, which is cut in the middle; the
        rectangle around a triangle and the triangle that completes it.

        >>> Figure("corner", 4, 3, cut=(2, 1)).parts, Figure("triangle", 4, 3).parts
        ((6, 4), (12, 6))
        """
        if self.shape == "triangle":
            return 2 * self.area, self.area
        left = self.width - self.cut[0] if self.shape == "corner" else self.width // 2
        return left * self.height, self.area - left * self.height


def random_figure(shape: str, cells: int, rng: Random) -> Figure:
    """A random figure of a shape, whose area is a whole number of cells.

    Args:
        shape: One of `SHAPES`.
        cells: Largest width and height, at least 2.
        rng: Draws the sides.
    """
    while True:
        width, height = rng.randint(2, cells), rng.randint(2, cells)
        cut = (rng.randint(1, width - 1), rng.randint(1, height - 1))
        if shape != "triangle" or width * height % 2 == 0:
            return Figure(shape, width, height, cut if shape == "corner" else (0, 0))


def draw_figure(
    figure: Figure, rng: Random, *, cells: int, cell: int
) -> UInt8[np.ndarray, "S S 3"]:
    """A picture of a figure, light on dark, at a random place.

    Args:
        figure: The figure.
        rng: Draws place and brightness.
        cells: Cells along the picture.
        cell: Pixels along a cell.
    """
    with optional_dependency("Pillow", "images"):
        from PIL import Image as PillowImage
        from PIL import ImageDraw
    left = rng.randint(0, cells - figure.width)
    top = rng.randint(0, cells - figure.height)
    ground, light = rng.randint(0, 60), rng.randint(160, 255)
    canvas = PillowImage.new("RGB", (cells * cell, cells * cell), (ground,) * 3)
    points = [((left + x) * cell, (top + y) * cell) for x, y in figure.outline]
    ImageDraw.Draw(canvas).polygon(points, fill=(light, light, ground))
    return np.asarray(canvas)


@component
class FigureAreas:
    """Figures whose area in cells is asked for, as often of each shape: column `shape`.

    Args:
        shapes: Shapes of `SHAPES`.
        cells: Cells along a picture, and the largest side of a figure.
        cell: Pixels along a cell.
        size: Number of tasks.
        seed: Seed of the figures.
        blind: Whether noise takes the place of each picture.

    >>> task = FigureAreas(size=3).load()[2]
    >>> task.columns["shape"], task.prompt[0]["content"][1]["text"], task.reference_answer
    ('corner', 'What is the area of the figure?', '3')
    """

    shapes: tuple[str, ...] = SHAPES
    cells: PositiveInt = 4
    cell: PositiveInt = 8
    size: PositiveInt = 4000
    seed: int = 0
    blind: bool = False

    def __post_init__(self) -> None:
        is_known = bool(self.shapes) and set(self.shapes) <= set(SHAPES)
        check_field(self, "shapes", is_known, f"of {', '.join(SHAPES)}")
        check_field(self, "cells", self.cells >= 2, "at least 2")

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "figure area", index)
        figure = random_figure(self.shapes[index % len(self.shapes)], self.cells, rng)
        pixels = draw_figure(figure, rng, cells=self.cells, cell=self.cell)
        if self.blind:
            pixels = noise_pixels(rng, pixels.shape)
        prompt = picture_prompt([Image.from_pixels(pixels)], QUESTION)
        columns = {"shape": figure.shape}
        return Task(task_key(prompt), prompt, str(figure.area), "figures", columns)

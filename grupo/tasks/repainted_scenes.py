"""New backgrounds around a kept box: pictures that a description changes, with the same answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np
from jaxtyping import UInt8

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.types import Task
from grupo.tasks.scene_boxes import (
    GRID,
    Grid,
    PixelBox,
    PlacedThing,
    box_in_quarter,
    paint_thing,
    quarter_of,
)
from grupo.tasks.scenes import COLOURS, IMAGE_SIZE, SHAPES
from grupo.util.boxes import find_boxes

SHADES = {"dark": (0, 35), "bright": (36, 70)}  # brightness of the background
DESCRIPTION = re.compile(r"<scene>(dark|bright)((?:, (?:\w+ \w+))*)</scene>")
MAX_OTHERS = 3  # things around the kept box


@dataclass(frozen=True)
class SceneDescription:
    """A background and the names of the things on it, as "<scene>dark, red cross</scene>"."""

    shade: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"<scene>{', '.join([self.shade, *self.names])}</scene>"


def parse_description(text: str) -> SceneDescription | None:
    """The last description of a text; None if there is none or it names an unknown thing.

    >>> parse_description("[1, 2, 9, 9]<scene>dark, red cross</scene>")
    SceneDescription(shade='dark', names=('red cross',))
    """
    matches = DESCRIPTION.findall(text)
    if not matches:
        return None
    shade, others = matches[-1]
    names = tuple(others.split(", ")[1:])
    pairs = (name.split() for name in names)
    known = all(colour in COLOURS and shape in SHAPES for colour, shape in pairs)
    return SceneDescription(shade, names) if known and len(names) <= MAX_OTHERS else None


def random_description(rng: Random, most: int = MAX_OTHERS) -> SceneDescription:
    """A random background with up to `most` things."""
    names = [f"{rng.choice([*COLOURS])} {rng.choice(SHAPES)}" for _ in range(rng.randint(0, most))]
    return SceneDescription(rng.choice([*SHADES]), tuple(names))


@component
class RepaintedScene:
    """A scene with the background and the things that an answer describes, around the kept box.

    The pixels of the reference box stay as they are. Described things with the name of the referent
    (column `referent`) are left out.

    Args:
        grid: Pixels between places and between sizes of the things, as in `SceneBoxes`.
    """

    grid: Grid = GRID

    def __call__(self, task: Task, answer: str, rng: Random) -> Task | None:
        description = parse_description(answer)
        return repaint(task, description, rng, self.grid) if description else None


@component
class RandomlyRepaintedScene:
    """A scene with a random background and random things around the kept box.

    Args:
        grid: Pixels between places and between sizes of the things, as in `SceneBoxes`.
    """

    grid: Grid = GRID

    def __call__(self, task: Task, answer: str, rng: Random) -> Task | None:
        return repaint(task, random_description(rng), rng, self.grid)


def repaint(task: Task, description: SceneDescription, rng: Random, grid: Grid = GRID) -> Task:
    """The task with a new picture, in which the pixels of the reference box are kept."""
    (message,) = task.prompt
    assert not isinstance(message, str), "the prompt of a scene is a message"
    picture, text = message["content"]
    left, top, right, bottom = map(int, find_boxes(str(task.reference_answer))[0])
    kept = (left, top, right, bottom)
    names = [name for name in description.names if name != task.columns["referent"]]
    pixels = _background(description.shade, rng)
    for thing in _around(kept, names, rng, grid):
        paint_thing(pixels, thing)
    pixels[top:bottom, left:right] = picture["image"].pixels()[top:bottom, left:right]
    content: list[dict[str, Any]] = [{"type": "image", "image": Image.from_pixels(pixels)}, text]
    return replace(task, prompt=({"role": "user", "content": content},))


def _background(shade: str, rng: Random) -> UInt8[np.ndarray, "32 32 3"]:
    noise = np.random.default_rng(rng.getrandbits(32))
    pixels = noise.normal(rng.randint(*SHADES[shade]), 8.0, (IMAGE_SIZE, IMAGE_SIZE, 3))
    return np.clip(pixels, 0, 255).astype(np.uint8)


def _around(kept: PixelBox, names: Sequence[str], rng: Random, grid: Grid) -> Sequence[PlacedThing]:
    """The named things in different quarters, none in that of the kept box."""
    free = [quarter for quarter in range(4) if quarter != quarter_of(kept)]
    quarters = rng.sample(free, min(len(free), len(names)))
    pairs = (name.split() for name in names)
    return [
        PlacedThing(colour, shape, box_in_quarter(quarter, rng, grid))
        for (colour, shape), quarter in zip(pairs, quarters, strict=False)
    ]

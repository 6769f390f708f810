"""Questions about pictures: scenes of coloured shapes that are drawn on the spot.

A scene has up to four things, one in each quarter of a picture of 32 x 32 pixels. Position within
the quarter, size and background vary. The questions are about colours, shapes, counts and sides.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from random import Random

import numpy as np
from jaxtyping import Bool, UInt8

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.ranges import PositiveInt
from grupo.core.types import Task
from grupo.tasks.base import LazyTasks, task_key
from grupo.util.rng import make_rng

IMAGE_SIZE = 32  # pixels along a picture
QUARTER = 16  # pixels along a quarter
COLOURS = {
    "red": (220, 40, 40),
    "green": (40, 190, 60),
    "blue": (60, 90, 240),
    "yellow": (235, 215, 50),
}
SHAPES = ("circle", "square", "triangle", "cross")
COUNTS = ("zero", "one", "two", "three", "four")
SIDES = ("left", "right", "above", "below")
KINDS = ("colour", "shape", "count", "side")
NOTHING = "nothing"
CAPTION_REQUEST = "What is in the picture?"


@dataclass(frozen=True)
class Thing:
    """A shape of one colour; `quarter` counts in reading order, from 0 to 3."""

    colour: str
    shape: str
    quarter: int

    def __str__(self) -> str:
        return f"{self.colour} {self.shape}"


@dataclass(frozen=True)
class SceneQuestion:
    """A question about a scene, its kind (one of `KINDS`) and its answer."""

    kind: str
    text: str
    answer: str


@component
class SceneQuestions:
    """Questions about drawn scenes, a quarter of them of each kind: `columns["kind"]`.

    A prompt is a message with the picture and the question; the answer is one word.

    Args:
        size: Number of tasks.
        seed: Seed of scenes and questions.
        blind: Whether noise takes the place of each picture, for the accuracy of a policy that
            cannot see.

    >>> task = SceneQuestions(size=4).load()[0]
    >>> [part["type"] for part in task.prompt[0]["content"]]
    ['image', 'text']
    >>> task.prompt[0]["content"][1]["text"], task.reference_answer, task.columns["kind"]
    ('What colour is the cross?', 'blue', 'colour')
    """

    size: PositiveInt = 4000
    seed: int = 0
    blind: bool = False

    def load(self) -> Sequence[Task]:
        return LazyTasks(self.size, self._task)

    def _task(self, index: int) -> Task:
        rng = make_rng(self.seed, "scene", index)
        things, question = random_question(KINDS[index % len(KINDS)], rng)
        pixels = noise_pixels(rng) if self.blind else draw_scene(things, rng)
        prompt = picture_prompt([Image.from_pixels(pixels)], question.text)
        columns = {"kind": question.kind}
        return Task(task_key(prompt), prompt, question.answer, "scenes", columns)


def picture_prompt(images: Sequence[Image], text: str) -> tuple[dict[str, object], ...]:
    """A message of the user with pictures and a text behind them."""
    pictures = [{"type": "image", "image": image} for image in images]
    return ({"role": "user", "content": [*pictures, {"type": "text", "text": text}]},)


def random_question(kind: str, rng: Random) -> tuple[Sequence[Thing], SceneQuestion]:
    """A random scene and a question of a kind that has one answer there."""
    while True:
        things = random_things(rng)
        if questions := [q for q in questions_about(things) if q.kind == kind]:
            answer = rng.choice(sorted({q.answer for q in questions}))
            return things, rng.choice([q for q in questions if q.answer == answer])


def random_things(rng: Random) -> Sequence[Thing]:
    """Two to four random things in different quarters."""
    quarters = sorted(rng.sample(range(4), rng.randint(2, 4)))
    return [Thing(rng.choice([*COLOURS]), rng.choice(SHAPES), quarter) for quarter in quarters]


def questions_about(things: Sequence[Thing]) -> list[SceneQuestion]:
    """All questions about a scene that have one answer.

    >>> scene = [Thing("red", "circle", 0), Thing("blue", "cross", 1)]
    >>> [q for q in questions_about(scene) if q.kind == "side"][0]
    SceneQuestion(kind='side', text='Where is the red circle from the blue cross?', answer='left')
    """
    colours = Counter(thing.colour for thing in things)
    shapes = Counter(thing.shape for thing in things)
    names = Counter(map(str, things))
    questions = [
        SceneQuestion("colour", f"What colour is the {x.shape}?", x.colour)
        for x in things
        if shapes[x.shape] == 1
    ]
    questions += [
        SceneQuestion("shape", f"What shape is {x.colour}?", x.shape)
        for x in things
        if colours[x.colour] == 1
    ]
    questions += [
        SceneQuestion("count", f"How many things are {colour}?", COUNTS[colours[colour]])
        for colour in COLOURS
    ]
    questions += [
        SceneQuestion("side", f"Where is the {a} from the {b}?", side)
        for a, b in permutations(things, 2)
        if names[str(a)] == names[str(b)] == 1 and (side := side_of(a, b))
    ]
    return questions


def side_of(a: Thing, b: Thing) -> str:
    """The side of thing b that thing a is on; "" where they are neither in a row nor a column."""
    (row_a, column_a), (row_b, column_b) = divmod(a.quarter, 2), divmod(b.quarter, 2)
    if row_a == row_b:
        return "left" if column_a < column_b else "right"
    if column_a == column_b:
        return "above" if row_a < row_b else "below"
    return ""


def caption_of(things: Sequence[Thing]) -> str:
    """The caption of a scene: its things and empty quarters, in reading order.

    >>> caption_of([Thing("red", "circle", 0), Thing("blue", "cross", 3)])
    'red circle, nothing, nothing, blue cross'
    """
    names = {thing.quarter: str(thing) for thing in things}
    return ", ".join(names.get(quarter, NOTHING) for quarter in range(4))


def draw_scene(things: Sequence[Thing], rng: Random) -> UInt8[np.ndarray, "32 32 3"]:
    """A picture of a scene, with random sizes, positions within quarters and background."""
    noise = np.random.default_rng(rng.getrandbits(32))
    background = rng.randint(0, 70)
    pixels = noise.normal(background, 8.0, (IMAGE_SIZE, IMAGE_SIZE, 3))
    for thing in things:
        size = rng.randint(11, 13)
        row, column = divmod(thing.quarter, 2)
        y = QUARTER * row + rng.randint(1, QUARTER - size - 1)
        x = QUARTER * column + rng.randint(1, QUARTER - size - 1)
        place = pixels[y : y + size, x : x + size]
        place[shape_mask(thing.shape, size)] = COLOURS[thing.colour]
    return np.clip(pixels, 0, 255).astype(np.uint8)


def noise_pixels(
    rng: Random, shape: Sequence[int] = (IMAGE_SIZE, IMAGE_SIZE, 3)
) -> UInt8[np.ndarray, "..."]:
    """Independent random pixels: a picture, or the frames of a video, of a shape."""
    noise = np.random.default_rng(rng.getrandbits(32))
    return noise.integers(0, 256, shape, dtype=np.uint8)


def shape_mask(shape: str, size: int) -> Bool[np.ndarray, "S S"]:
    """The pixels of a shape in a square.

    >>> shape_mask("cross", 3).astype(int).tolist()
    [[0, 1, 0], [1, 1, 1], [0, 1, 0]]
    """
    place = (np.arange(size) - (size - 1) / 2) / (size / 2)  # from -1 to 1
    y, x = place[:, None], place[None, :]
    masks = {
        "circle": x**2 + y**2 <= 1.0,
        "square": np.maximum(abs(x), abs(y)) <= 1.0,
        "triangle": abs(x) <= (y + 1.0) / 2,
        "cross": np.minimum(abs(x), abs(y)) <= 0.35,
    }
    return masks[shape]

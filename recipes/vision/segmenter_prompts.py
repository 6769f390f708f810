"""The world of `docs/vision_shown/pixelthink.md`: prompts of a segmenter for things in scenes.

Thoughts of the supervised examples have random lengths, which do not depend on the scene.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
from jaxtyping import Bool

from grupo.core.component import component
from grupo.core.types import Task
from grupo.tasks import LazyTasks
from grupo.tasks.scene_boxes import (
    PixelBox,
    PlacedThing,
    SceneBoxes,
    box_question,
    draw_things,
    place_things,
)
from grupo.tasks.scenes import COLOURS, IMAGE_SIZE, SHAPES, shape_mask
from grupo.toy.picture_examples import PictureExample
from grupo.toy.scene_box_examples import LIST_REQUEST, scene_words
from grupo.util.boxes import box_text, find_boxes

CELL = 8  # pixels along a cell; a toy model does not learn finer boxes
TAGS = ("<think>", "</think>", "<answer>", "</answer>")
DIFFICULTY = {1: 2.0, 2: 4.0, 3: 4.0, 4: 6.0}  # by the number of things
MAX_REMARKS = 8  # in the thoughts of a demonstration


def thing_mask(box: PixelBox, name: str) -> Bool[np.ndarray, "32 32"]:
    """The pixels of a thing.

    Args:
        box: The box around it.
        name: Its colour and its shape.
    """
    left, top, right, bottom = box
    mask = np.zeros((IMAGE_SIZE, IMAGE_SIZE), dtype=bool)
    mask[top:bottom, left:right] = shape_mask(name.split()[1], right - left)
    return mask


def true_points(box: PixelBox) -> list[list[int]]:
    """Two pixels of the thing in a box: in its middle row, a quarter from each side."""
    left, top, right, bottom = box
    quarter, middle = (right - left) // 4, (top + bottom) // 2
    return [[left + quarter, middle], [right - quarter - 1, middle]]


@component
class DifficultScenes:
    """Tasks of scenes with columns `mask` and `points`, both true, and `difficulty`.

    Args:
        scenes: The tasks without these columns.
    """

    scenes: SceneBoxes

    def load(self) -> Sequence[Task]:
        tasks = self.scenes.load()
        return LazyTasks(len(tasks), lambda i: with_points(tasks[i]))


def with_points(task: Task) -> Task:
    """The task with its true mask, true points and difficulty."""
    left, top, right, bottom = map(int, find_boxes(str(task.reference_answer))[0])
    box = (left, top, right, bottom)
    added = {
        "mask": thing_mask(box, task.columns["referent"]),
        "points": true_points(box),
        "difficulty": DIFFICULTY[task.columns["things"]],
    }
    return replace(task, columns={**task.columns, **added})


def demonstration(thing: PlacedThing, things: Sequence[PlacedThing], rng: Random) -> str:
    """Remarks on random things, and the box and points of one as JSON."""
    count = rng.randint(1, MAX_REMARKS)
    remarks = ", ".join(rng.choice(things).name for _ in range(count))
    first, second = true_points(thing.box)
    data = f'{{"bbox": {list(thing.box)}, "points_1": {first}, "points_2": {second}}}'
    return f"<think>{remarks}</think><answer>{data}</answer>"


@component
class RemarkExamples:
    """Lists of all boxes, requests for one, and questions answered after remarks."""

    @property
    def image_size(self) -> int:
        """Pixels along each picture."""
        return IMAGE_SIZE

    def texts(self) -> Sequence[str]:
        """Texts with all words of prompts and answers."""
        things = [PlacedThing(*pair, (0, 0, 8, 8)) for pair in zip(COLOURS, SHAPES, strict=True)]
        answers = [demonstration(x, things, Random(i)) for i, x in enumerate(things)]
        return [*scene_words(), *map(box_question, things), *answers, "Box of the ", LIST_REQUEST]

    def draw(self, rng: Random) -> PictureExample:
        """A picture with a question, or with the request for boxes."""
        things = place_things(rng.randint(1, 4), rng, CELL)
        pictures = (draw_things(things, rng),)
        thing = rng.choice(things)
        kind = rng.random()
        if kind < 0.4:
            return PictureExample(pictures, LIST_REQUEST, ", ".join(map(str, things)))
        if kind < 0.7:
            return PictureExample(pictures, f"Box of the {thing.name}.", box_text(thing.box))
        answer = demonstration(thing, things, rng)
        return PictureExample(pictures, box_question(thing), answer)

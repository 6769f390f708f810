"""Rewards of boxes and points in answers: overlap with the reference box, hits of its inside.

An answer's box is the last one of `grupo.util.boxes.find_boxes`; an answer without a box scores 0.
The reference answer is a box as text, "[left, top, right, bottom]", or a sequence of four numbers.
"""

from collections.abc import Sequence
from math import dist

from grupo.core.component import component
from grupo.core.extract_answer import Extractor, whole_text
from grupo.core.media import Image, media_of
from grupo.core.pictures import open_picture
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.bounding_box import box_similarity, center_hit, iou
from grupo.util.boxes import BoundingBox, Point, box_text, find_boxes
from grupo.util.errors import ConfigError

ALLOWED_BOX = "[left, top, right, bottom] with left < right and top < bottom"


def reference_box(task: Task, column: str = "") -> BoundingBox:
    """The task's reference answer, or a column, as a box; raises `ConfigError` if it is none."""
    value = task.columns.get(column) if column else task.reference_answer
    text = box_text(value) if isinstance(value, list | tuple) else str(value)
    boxes = find_boxes(text)
    if len(boxes) != 1:
        name = f"column {column!r}" if column else "reference answer"
        raise ConfigError(f"Task {task.key}: {name} {value!r}. Allowed: {ALLOWED_BOX}.")
    return boxes[0]


def answer_box(text: str, extract: Extractor = whole_text) -> BoundingBox | None:
    """The last box of the extracted answer; None if there is none."""
    boxes = find_boxes(extract(text) or "")
    return boxes[-1] if boxes else None


def picture_size(task: Task) -> tuple[int, int]:
    """Width and height of the first picture of the prompt, in pixels."""
    return open_picture(first_picture(task).data).size


def first_picture(task: Task) -> Image:
    """The first picture of the prompt; raises `ConfigError` if there is none."""
    for media in media_of(task.prompt):
        if isinstance(media, Image):
            return media
    raise ConfigError(f"Task {task.key}: the prompt has no picture. Allowed: at least one.")


@component
class BoxReward(PerRolloutReward):
    """Base class of rewards that compare the answer's box with the reference box.

    Args:
        extract: Finds the answer in the rollout's text.
        column: Column with the true box; "": it is the reference answer.
    """

    extract: Extractor = whole_text
    column: str = ""

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        box = answer_box(rollout.text, self.extract)
        return self.compare(box, reference_box(task, self.column), task) if box else 0.0

    def compare(self, box: BoundingBox, truth: BoundingBox, task: Task) -> float:
        """The value of a box."""
        raise NotImplementedError

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task whose reference answer is no box."""
        for task in tasks:
            reference_box(task, self.column)


@component
class BoxIoU(BoxReward):
    """Intersection over union of the answer's box and the reference box.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout((("?", Response((), (), text="at [0, 0, 2, 2]")),))
    >>> BoxIoU()(Task("k", "?", "[0, 0, 2, 1]"), [rollout])
    [0.5]
    """

    def compare(self, box: BoundingBox, truth: BoundingBox, task: Task) -> float:
        return iou(box, truth)


@component
class BoxCenterHit(BoxReward):
    """1 if the centre of the answer's box lies in the reference box, else 0.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout((("?", Response((), (), text="[0, 0, 4, 4]")),))
    >>> BoxCenterHit()(Task("k", "?", "[1, 1, 3, 3]"), [rollout])
    [1.0]
    """

    def compare(self, box: BoundingBox, truth: BoundingBox, task: Task) -> float:
        return center_hit(box, truth)


@component
class BoxCloseness(BoxReward):
    """4 / sum over sides k of 1 / (1 - |p_k - t_k| / size_k), sizes of the first picture in pixels.

    GUI-G1, Zhou et al. (arXiv:2505.15810).

    Args:
        extract: Finds the answer in the rollout's text.
        column: Column with the true box; "": it is the reference answer.
        size: Width and height of the coordinates, such as (1000.0, 1000.0) where the policy writes
            thousandths of the picture; zeros for those of the picture.

    >>> from grupo.core.types import Response
    >>> rollout = Rollout((("?", Response((), (), text="[0, 0, 10, 20]")),))
    >>> reward = BoxCloseness(size=(100.0, 100.0))
    >>> round(reward(Task("k", "?", "[0, 0, 10, 10]"), [rollout])[0], 5)
    0.97297
    """

    size: tuple[float, float] = (0.0, 0.0)

    def compare(self, box: BoundingBox, truth: BoundingBox, task: Task) -> float:
        width, height = self.size if all(self.size) else picture_size(task)
        return box_similarity(box, truth, width, height)


def points_distance(points: Sequence[Point], truth: Sequence[Point]) -> float:
    """Mean distance of two points to two true points, in the order in which it is smaller.

    >>> points_distance([(0, 0), (3, 4)], [(3, 4), (0, 2)])
    1.0
    """
    (a, b), (c, d) = points, truth
    return min(dist(a, c) + dist(b, d), dist(a, d) + dist(b, c)) / 2

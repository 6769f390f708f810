"""A reward of answers that prompt a segmentation model: a box and two points as JSON."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grupo.core.component import component
from grupo.core.extract_answer import is_thoughts_then_answer
from grupo.core.ranges import NonEmptyString, PositiveFloat
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.bounding_box import iou
from grupo.rewards.boxes import points_distance, reference_box
from grupo.util.boxes import BoundingBox, Point, box_text, find_boxes
from grupo.util.errors import ConfigError

JSON_OBJECT = re.compile(r"{[^}]+}")
POINT_KEYS = ("points_1", "points_2")


@dataclass(frozen=True)
class BoxAndPoints:
    """The prompt of a segmentation model."""

    box: BoundingBox
    points: Sequence[Point]


def parse_box_and_points(text: str) -> BoxAndPoints | None:
    """The first JSON object of a text, if it has a box and two points.

    >>> parse_box_and_points('{"bbox": [0, 0, 4, 4], "points_1": [1, 1], "points_2": [2, 3]}')
    BoxAndPoints(box=(0.0, 0.0, 4.0, 4.0), points=[(1.0, 1.0), (2.0, 3.0)])
    """
    match = JSON_OBJECT.search(text[: text.rfind("}") + 1])  # without it, each { would be followed
    try:
        data = json.loads(match[0]) if match else {}
        boxes = find_boxes(box_text(data["bbox"]))
        points = [(float(x), float(y)) for x, y in (data[key] for key in POINT_KEYS)]
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None
    return BoxAndPoints(boxes[0], points) if boxes else None


@component
class SegmentationPrompt(PerRolloutReward):
    """The number of five conditions that an answer meets, from 0 to 5.

    Thoughts and answer in tags; a JSON object with a box and two points; an IoU of the box above
    the threshold; a mean distance of its sides below the threshold; both points inside the
    predicted box, at a mean distance below the threshold from the true ones. Each is also the
    further number `tags`, `json`, `iou`, `sides` and `points`.

    Seg-Zero (arXiv:2503.06520) and PixelThink (arXiv:2505.23727).

    Args:
        points_column: Column with the two true points; the reference answer is the true box.
        iou_threshold: Intersection over union to exceed.
        sides_threshold: Mean distance of the sides, in pixels.
        points_threshold: Mean distance of the points, in the better order, in pixels.
    """

    points_column: NonEmptyString = "points"
    iou_threshold: PositiveFloat = 0.5
    sides_threshold: PositiveFloat = 10.0
    points_threshold: PositiveFloat = 100.0

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 5.0)

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        answer = parse_box_and_points(rollout.text)
        near = self._near(answer, task) if answer else (False,) * 3
        conditions = (
            is_thoughts_then_answer(rollout.text),
            answer is not None,
            *near,
        )
        names = ("tags", "json", "iou", "sides", "points")
        numbers = dict(zip(names, map(float, conditions), strict=True))
        return {"score": sum(numbers.values()), **numbers}

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a true box or without two true points."""
        for task in tasks:
            reference_box(task)
            self._true_points(task)

    def _near(self, answer: BoxAndPoints, task: Task) -> tuple[bool, bool, bool]:
        truth = reference_box(task)
        left, top, right, bottom = answer.box
        sides = sum(abs(a - b) for a, b in zip(answer.box, truth, strict=True)) / 4
        inside = all(left <= x <= right and top <= y <= bottom for x, y in answer.points)
        distance = points_distance(answer.points, self._true_points(task))
        # The released code counts the pixels of both edges in its IoU; a box here ends at its edge.
        return (
            iou(answer.box, truth) > self.iou_threshold,
            sides < self.sides_threshold,
            inside and distance < self.points_threshold,
        )

    def _true_points(self, task: Task) -> Sequence[Point]:
        points = task.columns.get(self.points_column)
        if not isinstance(points, list | tuple) or len(points) != 2:
            raise ConfigError(
                f"Task {task.key}: column {self.points_column!r}: {points!r}."
                " Allowed: two points [x, y]."
            )
        return [(float(x), float(y)) for x, y in points]

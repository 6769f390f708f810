"""Masks that a box and two points of an answer lead to, and their overlap with the true mask."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Bool, UInt8

from grupo.core.component import component
from grupo.core.ranges import NonEmptyString, NonNegativeInt
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.boxes import first_picture
from grupo.rewards.segmentation_prompt import parse_box_and_points
from grupo.util.boxes import BoundingBox, Point
from grupo.util.errors import ConfigError

Mask = Bool[np.ndarray, "H W"]


class Segmenter(Protocol):
    """Turns a box and points into the mask of an object: SAM, for example."""

    def __call__(
        self, pixels: UInt8[np.ndarray, "H W 3"], box: BoundingBox, points: Sequence[Point], /
    ) -> Mask:
        """The mask of the object.

        Args:
            pixels: The picture.
            box: Left, top, right and bottom in pixels.
            points: Points of the object, x and y in pixels.
        """
        ...


@component
class FloodFill:
    """Pixels in the box that pixels of nearly a point's colour connect with the point.

    Exact for objects of one colour that touch nothing of nearly the same colour in their box.

    Args:
        tolerance: Largest difference of a channel, from 0 to 255.

    >>> pixels = np.zeros((1, 6, 3), np.uint8)
    >>> pixels[0, [0, 2, 3, 4]] = 200
    >>> FloodFill()(pixels, (0, 0, 4, 1), [(3, 0)]).astype(int).tolist()
    [[0, 0, 1, 1, 0, 0]]
    """

    tolerance: NonNegativeInt = 30

    def __call__(
        self, pixels: UInt8[np.ndarray, "H W 3"], box: BoundingBox, points: Sequence[Point]
    ) -> Mask:
        from scipy.ndimage import label

        mask = np.zeros(pixels.shape[:2], dtype=bool)
        left, top = (max(0, int(side)) for side in box[:2])
        place = pixels[top : max(0, int(box[3])), left : max(0, int(box[2]))].astype(int)
        for x, y in points:
            if left <= x < left + place.shape[1] and top <= y < top + place.shape[0]:
                row, column = int(y) - top, int(x) - left
                near = np.abs(place - place[row, column]).max(-1) <= self.tolerance
                parts = np.zeros(near.shape, dtype=np.int32)
                label(near, output=parts)
                mask[top:, left:][: place.shape[0], : place.shape[1]] |= parts == parts[row, column]
        return mask


@component
class MaskIoU(PerRolloutReward):
    """Intersection over union of the true mask and that of the answer's box and points.

    The answer is a JSON object as for `SegmentationPrompt`; another text scores 0.

    Args:
        segmenter: Makes the mask in the first picture of the prompt.
        column: Column with the true mask, bool (H, W).
    """

    segmenter: Segmenter = FloodFill()
    column: NonEmptyString = "mask"

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        answer = parse_box_and_points(rollout.text)
        if answer is None:
            return 0.0
        predicted = self.segmenter(first_picture(task).pixels(), answer.box, answer.points)
        truth = np.asarray(task.columns[self.column], dtype=bool)
        return float((predicted & truth).sum() / max(1, (predicted | truth).sum()))

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a picture, or without its mask."""
        for task in tasks:
            first_picture(task)
            if self.column not in task.columns:
                raise ConfigError(f"Task {task.key}: no column {self.column!r}.")

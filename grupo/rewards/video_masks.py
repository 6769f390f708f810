"""Rewards of objects that an answer segments in a video by boxes on one of its frames.

Gong et al., 2025, arXiv:2508.11538 (Veason-R1). The answer is a JSON object: `keyframe_timestamp`,
the number of a frame, and `bbox_2d_list`, boxes [left, top, right, bottom] on it. A propagator
turns the boxes into masks of all frames; the column `masks` holds the true masks, bool (T, H, W),
and the column `boxes` the true boxes of each frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, UInt8

from grupo.core.component import component
from grupo.core.extract_answer import InsideTag, is_thoughts_then_answer
from grupo.core.media import Video, media_of
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.bounding_box import iou
from grupo.util.boxes import BoundingBox
from grupo.util.errors import ConfigError
from grupo.util.json_text import parse_json

MAX_BOXES = 120
MAX_CHARS = 20_000
Frames = UInt8[np.ndarray, "T H W 3"]
Masks = Bool[np.ndarray, "T H W"]


class MaskPropagator(Protocol):
    """Turns boxes on a frame into the masks of their objects in all frames: SAM 2, for example."""

    def __call__(self, frames: Frames, keyframe: int, boxes: Sequence[BoundingBox], /) -> Masks:
        """The union of the masks of all objects.

        Args:
            frames: The frames.
            keyframe: Index of the frame with the boxes.
            boxes: Boxes on it in pixels.
        """
        ...


@component
class ColourPropagator:
    """Pixels whose colour is near the median colour in the middle of a box, in all frames.

    Exact for objects of one colour that nothing else in the video has.

    Args:
        tolerance: Largest difference of a channel, from 0 to 255.

    >>> frames = np.zeros((2, 4, 4, 3), np.uint8)
    >>> frames[0, 0, 0] = frames[1, 2:, 2] = (200, 0, 0)
    >>> ColourPropagator()(frames, 0, [(0, 0, 1, 1)]).sum((1, 2)).tolist()
    [1, 2]
    """

    tolerance: int = 30

    def __call__(self, frames: Frames, keyframe: int, boxes: Sequence[BoundingBox]) -> Masks:
        masks = np.zeros(frames.shape[:3], dtype=bool)
        for box in boxes:
            inner = frames[keyframe][middle_of(box)].reshape(-1, 3)
            if len(inner):
                difference = np.abs(frames.astype(int) - np.median(inner, axis=0))
                masks |= difference.max(-1) <= self.tolerance
        return masks


def middle_of(box: BoundingBox) -> tuple[slice, slice]:
    """Rows and columns of the middle half of a box, at least one of each.

    >>> middle_of((0, 4, 8, 8))
    (slice(5, 7, None), slice(2, 6, None))
    """
    left, top, right, bottom = box
    return _middle(top, bottom), _middle(left, right)


def _middle(low: float, high: float) -> slice:
    quarter = (high - low) / 4
    first = int(low + quarter)
    last = max(first, int(high - quarter - 1))
    return slice(max(0, first), max(0, last + 1))


def matched_boxes(
    predicted: Sequence[BoundingBox], truth: Sequence[BoundingBox]
) -> tuple[float, Sequence[int]]:
    """Sum of IoU over the larger number of boxes, and the predicted boxes that are matched.

    The matching has the largest sum of IoU (Hungarian algorithm).

    >>> matched_boxes([(0, 0, 4, 4), (0, 0, 4, 2)], [(0, 0, 4, 4)])
    (0.5, [0])
    """
    from scipy.optimize import linear_sum_assignment

    if not predicted or not truth:
        return 0.0, []
    overlaps = np.array([[iou(a, b) for b in truth] for a in predicted])
    rows, columns = linear_sum_assignment(-overlaps)
    total = float(overlaps[rows, columns].sum())
    return total / max(len(predicted), len(truth)), rows.tolist()


def mean_mask_iou(predicted: Masks, truth: Masks) -> float:
    """Mean over frames of the IoU of two masks, 1 where both are empty.

    >>> a, b = np.zeros((2, 1, 2), bool), np.zeros((2, 1, 2), bool)
    >>> a[0, 0] = b[0, 0, 0] = True
    >>> mean_mask_iou(a, b)
    0.75
    """
    shared = (predicted & truth).sum((1, 2))
    union = (predicted | truth).sum((1, 2))
    return float(np.where(union == 0, 1.0, shared / np.maximum(union, 1)).mean())


@dataclass(frozen=True)
class Segmentation:
    """An answer that was parsed.

    Args:
        keyframe: Index of the frame.
        boxes: Boxes on it.
        valid_frac: Fraction of the listed boxes that are four numbers.
    """

    keyframe: int
    boxes: tuple[BoundingBox, ...]
    valid_frac: float


def parse_segmentation(text: str) -> Segmentation | None:
    """The segmentation inside the answer tag; None without an integer keyframe and a list."""
    answer = InsideTag("answer")(text)
    if answer is None or len(answer) > MAX_CHARS:
        return None
    try:
        value = parse_json(answer)
    except ValueError:
        return None
    keyframe, listed = (
        (value.get("keyframe_timestamp"), value.get("bbox_2d_list"))
        if isinstance(value, Mapping)
        else (None, None)
    )
    if type(keyframe) is not int or not isinstance(listed, list):
        return None
    boxes = tuple(box for item in listed if (box := _box(item)))
    return Segmentation(keyframe, boxes[:MAX_BOXES], len(boxes) / max(1, len(listed)))


def _box(value: Any) -> BoundingBox | None:
    if not isinstance(value, list) or len(value) != 4:
        return None
    if not all(type(side) in (int, float) for side in value):
        return None
    try:
        left, top, right, bottom = map(float, value)
    except OverflowError:
        return None
    return (left, top, right, bottom)


@component
class VideoSegmentation(PerRolloutReward):
    """Sum of the format, up to 2, and of keyframe, boxes and masks, up to 1 each.

    The score's parts are further numbers: `format`, 1 for a block of thoughts and an answer plus
    the fraction of valid boxes; `keyframe`, the true mask's area on the frame over its largest
    area; `boxes`, the IoU of matched boxes over the larger number of boxes; `masks`, the mean IoU
    of the propagated masks with the true ones. A keyframe that does not exist has the format alone.

    Args:
        propagator: Turns the matched boxes into masks of the video in the prompt.
    """

    propagator: MaskPropagator = ColourPropagator()

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 5.0)

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        answer = parse_segmentation(rollout.text)
        form = float(is_thoughts_then_answer(rollout.text))
        parts = {"format": form + (answer.valid_frac if answer else 0.0)}
        parts |= {"keyframe": 0.0, "boxes": 0.0, "masks": 0.0}
        masks = np.asarray(task.columns["masks"], dtype=bool)
        if answer and 0 <= answer.keyframe < len(masks):
            parts |= self.segmentation_parts(task, answer, masks)
        return {"score": sum(parts.values()), **parts}

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a video, or without the masks and boxes of it."""
        for task in tasks:
            video_of(task)
            for name in ("masks", "boxes"):
                if name not in task.columns:
                    raise ConfigError(f"tasks: {task.location or task.key}: no column {name!r}.")

    def segmentation_parts(
        self, task: Task, answer: Segmentation, masks: Masks
    ) -> Mapping[str, float]:
        """The parts of an answer whose keyframe exists."""
        areas = masks.sum((1, 2))
        truth = task.columns["boxes"][answer.keyframe][:MAX_BOXES]
        boxes, matched = matched_boxes(answer.boxes, [tuple(box) for box in truth])
        found = [answer.boxes[i] for i in matched]
        propagated = self.propagator(video_of(task).frames(), answer.keyframe, found)
        return {
            "keyframe": float(areas[answer.keyframe] / max(1, areas.max())),
            "boxes": boxes,
            "masks": mean_mask_iou(propagated, masks) if found else 0.0,
        }


def video_of(task: Task) -> Video:
    """The video of the prompt; raises `ConfigError` if there is none."""
    for media in media_of(task.prompt):
        if isinstance(media, Video):
            return media
    raise ConfigError(f"tasks: {task.location or task.key}: the prompt has no video. Allowed: one.")

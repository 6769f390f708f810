"""Region similarity J and boundary accuracy F of the masks of a video.

Perazzi et al., 2016, "A Benchmark Dataset and Evaluation Methodology for Video Object Segmentation"
(DAVIS).
"""

from collections.abc import Mapping, Sequence
from math import ceil, hypot

import numpy as np
from jaxtyping import Bool

from grupo.core.component import component
from grupo.core.ranges import NonNegativeFloat
from grupo.core.types import Rollout, Task
from grupo.rewards.base import PerRolloutReward
from grupo.rewards.video_masks import (
    ColourPropagator,
    MaskPropagator,
    Masks,
    mean_mask_iou,
    parse_segmentation,
    video_of,
)
from grupo.util.errors import ConfigError

Mask = Bool[np.ndarray, "H W"]


def boundary_of(mask: Mask) -> Mask:
    """The pixels of a mask with a neighbour to a side that is not in it.

    >>> boundary_of(np.ones((3, 3), bool)).astype(int).tolist()
    [[1, 1, 1], [1, 0, 1], [1, 1, 1]]
    """
    from scipy.ndimage import binary_erosion

    return mask & ~binary_erosion(mask)


def boundary_f(predicted: Mask, truth: Mask, tolerance: float) -> float:
    """F-measure of the boundaries of two masks; 1 if both are empty, 0 if one is.

    Args:
        predicted: The predicted mask.
        truth: The true mask.
        tolerance: Largest distance of pixels that match.

    >>> square = np.zeros((4, 8), bool)
    >>> square[:, :4] = True
    >>> boundary_f(square, ~square, tolerance=1)  # 4 of 12 pixels of either lie at the other
    0.3333333333333333
    """
    from scipy.ndimage import distance_transform_edt

    if not predicted.any() or not truth.any():
        return float(predicted.any() == truth.any())
    first, second = boundary_of(predicted), boundary_of(truth)
    to_second = np.asarray(distance_transform_edt(~second))  # distances in pixels
    to_first = np.asarray(distance_transform_edt(~first))
    precision = float((to_second[first] <= tolerance).mean())
    recall = float((to_first[second] <= tolerance).mean())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def mean_boundary_f(predicted: Masks, truth: Masks, bound: float = 0.008) -> float:
    """Mean over frames of the F-measure of boundaries.

    Args:
        predicted: Predicted masks.
        truth: True masks.
        bound: Largest distance of pixels that match, as a fraction of the diagonal; it is rounded
            up to pixels.
    """
    tolerance = ceil(bound * hypot(*truth.shape[1:]))
    pairs = zip(predicted, truth, strict=True)
    return float(np.mean([boundary_f(a, b, tolerance) for a, b in pairs]))


@component
class VideoMaskQuality(PerRolloutReward):
    """(J + F) / 2 of the masks that all boxes of an answer propagate to, 0 without any.

    Answers, propagators and the column `masks` are those of `VideoSegmentation`, which propagates
    only boxes that it matches with true ones: this score needs no true box. Its parts `region`
    (J, the mean IoU of masks) and `boundary` (F) are further numbers.

    Args:
        propagator: Turns the boxes into masks of the video in the prompt.
        bound: Largest distance of boundary pixels that match, as a fraction of the diagonal.
    """

    propagator: MaskPropagator = ColourPropagator()
    bound: NonNegativeFloat = 0.008

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> Mapping[str, float]:
        answer = parse_segmentation(rollout.text)
        truth = np.asarray(task.columns["masks"], dtype=bool)
        if not answer or not answer.boxes or not 0 <= answer.keyframe < len(truth):
            return {"score": 0.0, "region": 0.0, "boundary": 0.0}
        masks = self.propagator(video_of(task).frames(), answer.keyframe, answer.boxes)
        region, boundary = mean_mask_iou(masks, truth), mean_boundary_f(masks, truth, self.bound)
        return {"score": (region + boundary) / 2, "region": region, "boundary": boundary}

    def validate_tasks(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a task without a video, or without the masks of it."""
        for task in tasks:
            video_of(task)
            if "masks" not in task.columns:
                raise ConfigError(f"tasks: {task.location or task.key}: no column 'masks'.")

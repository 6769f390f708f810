"""Similarities of a predicted bounding box on an image or a screen to the true one."""

from grupo.util.boxes import BoundingBox


def iou(predicted: BoundingBox, truth: BoundingBox) -> float:
    """Intersection over union; 0 if the union is empty.

    >>> iou((0, 0, 2, 2), (0, 0, 2, 1))
    0.5
    """
    width = max(0.0, min(predicted[2], truth[2]) - max(predicted[0], truth[0]))
    height = max(0.0, min(predicted[3], truth[3]) - max(predicted[1], truth[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (predicted, truth)]
    union = sum(areas) - width * height
    return width * height / union if union > 0 else 0.0


def center_hit(predicted: BoundingBox, truth: BoundingBox) -> float:
    """1 if the centre of the predicted box lies in the true one or on its edge.

    >>> center_hit((0, 0, 4, 4), (1, 1, 3, 3)), center_hit((0, 0, 4, 4), (3, 3, 5, 5))
    (1.0, 0.0)
    """
    x = (predicted[0] + predicted[2]) / 2
    y = (predicted[1] + predicted[3]) / 2
    return float(truth[0] <= x <= truth[2] and truth[1] <= y <= truth[3])


def box_similarity(
    predicted: BoundingBox, truth: BoundingBox, width: float, height: float
) -> float:
    """4 / sum over sides k of 1 / (1 - |p_k - t_k| / size_k).

    Args:
        predicted: Left, top, right and bottom of the predicted box, in pixels.
        truth: The true box.
        width: Width of the screen, size_k of left and right.
        height: Height of the screen, size_k of top and bottom.

    >>> round(box_similarity((0, 0, 10, 20), (0, 0, 10, 10), 100, 100), 4)
    0.973
    """
    sides = zip(predicted, truth, (width, height) * 2, strict=True)
    closeness = [max(1e-6, 1 - abs(a - b) / size) for a, b, size in sides]  # 1e-6 for NaN
    return 4 / sum(1 / c for c in closeness)


def grounding_scores(
    predicted: BoundingBox, truth: BoundingBox, width: float, height: float
) -> dict[str, float]:
    """The centre hit, the intersection over union and the box similarity, as `hit`, `iou`, `box`.

    GUI-G1, Zhou et al. (arXiv:2505.15810).

    >>> grounding_scores((3, 4, 9, 8), (3, 4, 9, 8), 50, 20)
    {'hit': 1.0, 'iou': 1.0, 'box': 1.0}
    """
    return {
        "hit": center_hit(predicted, truth),
        "iou": iou(predicted, truth),
        "box": box_similarity(predicted, truth, width, height),
    }

"""What a box on an image or a screen is worth beside the true one."""

Box = tuple[float, float, float, float]  # left, top, right, bottom


def iou(said: Box, truth: Box) -> float:
    """Intersection by union; 0 where there is neither.

    >>> iou((0, 0, 2, 2), (0, 0, 2, 1))
    0.5
    """
    wide = max(0.0, min(said[2], truth[2]) - max(said[0], truth[0]))
    high = max(0.0, min(said[3], truth[3]) - max(said[1], truth[1]))
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (said, truth)]
    union = sum(areas) - wide * high
    return wide * high / union if union > 0 else 0.0


def hit(said: Box, truth: Box) -> float:
    """1 where the centre of `said` lies in the truth or on its edge.

    >>> hit((0, 0, 4, 4), (1, 1, 3, 3)), hit((0, 0, 4, 4), (3, 3, 5, 5))
    (1.0, 0.0)
    """
    x, y = (said[0] + said[2]) / 2, (said[1] + said[3]) / 2
    return float(truth[0] <= x <= truth[2] and truth[1] <= y <= truth[3])


def nearness(said: Box, truth: Box, width: float, height: float) -> float:
    """4 / sum over sides k of 1 / (1 - |distance of k| / size), size that of the screen along it.

    >>> round(nearness((0, 0, 10, 20), (0, 0, 10, 10), 100, 100), 4)
    0.973
    """
    sides = zip(said, truth, (width, height) * 2, strict=True)
    near = [max(1 - abs(a - b) / size, 1e-6) for a, b, size in sides]
    return 4 / sum(1 / c for c in near)


def grounded(said: Box, truth: Box, width: float, height: float) -> dict[str, float]:
    """All three: `hit`, `iou`, and `box`, its `nearness`.

    GUI-G1, Zhou et al. (arXiv:2505.15810).

    >>> grounded((3, 4, 9, 8), (3, 4, 9, 8), 50, 20)
    {'hit': 1.0, 'iou': 1.0, 'box': 1.0}
    """
    near = nearness(said, truth, width, height)
    return {"hit": hit(said, truth), "iou": iou(said, truth), "box": near}

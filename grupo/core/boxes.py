"""Boxes and points in texts: the notation that tasks, rewards and reports share.

A box is "[left, top, right, bottom]" and a point "[x, y]", in pixels of the prompt's first picture
from its upper left corner; round brackets mean the same.
"""

import re
from collections.abc import Sequence

BoundingBox = tuple[float, float, float, float]  # left, top, right, bottom
Point = tuple[float, float]  # x, y

NUMBER = r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*"
BOX = re.compile(r"[\[(]" + ",".join([NUMBER] * 4) + r"[\])]")
POINT = re.compile(r"[\[(]" + ",".join([NUMBER] * 2) + r"[\])]")


def find_boxes(text: str) -> Sequence[BoundingBox]:
    """The boxes of a text in order; empty boxes and boxes with exchanged sides are left out.

    >>> find_boxes("circle [3, 4, 9, 8], cross (10,2,14.5,6), none [5, 5, 1, 9]")
    [(3.0, 4.0, 9.0, 8.0), (10.0, 2.0, 14.5, 6.0)]
    """
    boxes = [_numbers(match) for match in BOX.finditer(text)]
    return [(a, b, c, d) for a, b, c, d in boxes if a < c and b < d]


def find_points(text: str) -> Sequence[Point]:
    """The points of a text in order.

    >>> find_points("click (3, 4) or [5, 6], not [3, 4, 9, 8]")
    [(3.0, 4.0), (5.0, 6.0)]
    """
    return [(x, y) for x, y in map(_numbers, POINT.finditer(text))]


def box_text(box: Sequence[float]) -> str:
    """A box as text.

    >>> box_text((3, 4, 9, 8.5))
    '[3, 4, 9, 8.5]'
    """
    return f"[{', '.join(f'{side:g}' for side in box)}]"


def _numbers(match: re.Match[str]) -> tuple[float, ...]:
    return tuple(map(float, match.groups()))

"""Boxes in texts: the notation that tasks, rewards and reports share.

A box is "[left, top, right, bottom]", in pixels of the prompt's first picture from its upper left
corner; round brackets mean the same.
"""

import re
from collections.abc import Sequence

BoundingBox = tuple[float, float, float, float]  # left, top, right, bottom
Point = tuple[float, float]  # x, y

NUMBER = r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*"
BOX = re.compile(r"[\[(]" + ",".join([NUMBER] * 4) + r"[\])]")


def find_boxes(text: str) -> Sequence[BoundingBox]:
    """The boxes of a text in order; empty boxes and boxes with exchanged sides are left out.

    >>> find_boxes("circle [3, 4, 9, 8], cross (10,2,14.5,6), none [5, 5, 1, 9]")
    [(3.0, 4.0, 9.0, 8.0), (10.0, 2.0, 14.5, 6.0)]
    """
    boxes = [tuple(map(float, match.groups())) for match in BOX.finditer(text)]
    return [(a, b, c, d) for a, b, c, d in boxes if a < c and b < d]


def box_text(box: Sequence[float]) -> str:
    """A box as text.

    >>> box_text((3, 4, 9, 8.5))
    '[3, 4, 9, 8.5]'
    """
    return f"[{', '.join(f'{side:g}' for side in box)}]"

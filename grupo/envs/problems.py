"""Problems of extremal mathematics, whose artefacts are scored exactly and at once."""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Annotated, Any

from annotated_types import Interval

from grupo.core.component import component
from grupo.envs.printed_value import NotAdmissible

__all__ = ["PointsInSquare"]
CENTRE = (0.5, 0.5)
Point = tuple[float, float]


@component
class PointsInSquare:
    """The smallest distance between any two of some points in the unit square, to be maximised.

    An artefact is a list of pairs [x, y] with 0 <= x <= 1 and 0 <= y <= 1. The best distances that
    are known are listed by E. Specht, packomania.com: 1/2 for 9 points.

    Measures: `spread`, the mean distance of the points from the centre of the square, and `edge`,
    the fraction of the points on the boundary.

    Args:
        count: Number of points.

    >>> PointsInSquare(4)([[0, 0], [0, 1], [1, 0], [1, 1]])["score"]
    1.0
    """

    count: Annotated[int, Interval(ge=2, le=1000)]

    def __call__(self, value: Any) -> Mapping[str, float]:
        points = self._points(value)
        smallest = min(math.dist(a, b) for a, b in combinations(points, 2))
        on_edge = [bool({0.0, 1.0}.intersection(point)) for point in points]
        return {
            "score": smallest,
            "spread": fmean(math.dist(point, CENTRE) for point in points),
            "edge": fmean(on_edge),
        }

    def _points(self, value: Any) -> Sequence[Point]:
        if not isinstance(value, list) or len(value) != self.count:
            raise NotAdmissible(f"no list of {self.count} points")
        return [_point(pair) for pair in value]


def _point(pair: Any) -> Point:
    if not isinstance(pair, list) or len(pair) != 2:
        raise NotAdmissible("a point is no pair")
    if not all(_is_coordinate(x) for x in pair):
        raise NotAdmissible("a coordinate is no number from 0 to 1")
    return float(pair[0]), float(pair[1])


def _is_coordinate(value: Any) -> bool:
    """True for a number from 0 to 1; a truth value is no number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1

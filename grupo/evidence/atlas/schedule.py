"""The order in which runs of the atlas are trained."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from grupo.evidence.atlas.comparison import DESIGN, AtlasComparison, Runs

RunKey = tuple[str, int]


def next_run(
    comparisons: Sequence[AtlasComparison], runs: Runs, share: tuple[int, int] = (1, 1)
) -> RunKey | None:
    """Arm and seed of the next run; None if no comparison needs one.

    Comparisons reach the same look, family by family, before one goes on to the next look.

    Args:
        comparisons: The comparisons, those of a family together.
        runs: The runs that are there.
        share: (i, n): of n processes the i-th, from 1, which takes every n-th seed.
    """
    index, count = share
    needed = (key for key in _needed_runs(comparisons, runs) if key[1] % count == index - 1)
    return next(needed, None)


def _needed_runs(comparisons: Sequence[AtlasComparison], runs: Runs) -> Iterator[RunKey]:
    for look in DESIGN.looks:
        for _, group in groupby(comparisons, lambda comparison: comparison.family):
            missing = [key for one in group for key in one.missing_runs(runs) if key[1] < look]
            yield from sorted(missing, key=lambda key: key[1])

"""The best rollout in each cell of a grid. MAP-Elites, Mouret & Clune, 2015, arXiv:1504.04909."""

import math
from collections.abc import Collection, Iterable, Sequence

from grupo.core.component import check_field, component
from grupo.core.kept_rollouts import MAX_REPLAYS
from grupo.core.paper import Paper, Source
from grupo.core.ranges import Finite, NonEmptyString, PositiveInt
from grupo.core.types import Rollout

Cell = tuple[int, ...]  # the index of an interval on each axis, from 0


@component
class Axis:
    """Equal intervals of a reward term: one dimension of the grid of `Elites`.

    A value outside of the range belongs to the first or to the last interval.

    Args:
        reward_term: Name of the reward term, in its own unit.
        low: Lower end of the range.
        high: Upper end of the range, above `low`.
        intervals: Number of intervals.

    >>> [Axis("length", 0.0, 10.0, 5).index(x) for x in (-1.0, 0.0, 3.9, 4.0, 10.0)]
    [0, 0, 1, 2, 4]
    """

    reward_term: NonEmptyString
    low: Finite
    high: Finite
    intervals: PositiveInt = 10

    def __post_init__(self) -> None:
        check_field(self, "high", self.high > self.low, f"above low, {self.low:g}")

    def index(self, value: float) -> int:
        """The interval of a finite value, from 0."""
        place = self.intervals * (value - self.low) / (self.high - self.low)
        return math.floor(min(max(place, 0.0), self.intervals - 1))


@component
class Elites:
    """Keeps the rollout with the highest reward in each cell; of equal ones, the oldest.

    A rollout is not kept if its reward is at most the threshold or infinite, or if it lacks the
    reward term of an axis. With one cell, the best rollout is kept.

    Args:
        axes: The axes of the grid; () is a grid of one cell.
        threshold: A rollout is kept if its reward is above this.

    Raises:
        ConfigError: The grid has more cells than a history keeps rollouts.

    >>> rule = Elites((Axis("x", 0.0, 1.0, 2), Axis("y", 0.0, 1.0, 2)))
    >>> rollouts = [
    ...     Rollout(reward=reward, reward_terms={"x": x, "y": y})
    ...     for reward, x, y in ((1.0, 0.1, 0.2), (2.0, 0.3, 0.4), (0.5, 0.9, 0.6))
    ... ]
    >>> rule(rollouts)
    [1, 2]
    >>> rule.coverage(rollouts), rule.qd_score(rollouts)
    (0.5, 2.5)
    """

    axes: tuple[Axis, ...] = ()
    threshold: Finite = 0.0

    def __post_init__(self) -> None:
        allowed = f"axes with at most {MAX_REPLAYS:,} cells; these have {self.num_cells:,}"
        check_field(self, "axes", self.num_cells <= MAX_REPLAYS, allowed)

    def __call__(self, rollouts: Sequence[Rollout]) -> Collection[int]:
        return sorted(self._elite_indices(rollouts).values())

    @property
    def num_cells(self) -> int:
        """Number of cells of the grid."""
        return math.prod(axis.intervals for axis in self.axes)

    @property
    def reward_terms(self) -> tuple[str, ...]:
        """The reward terms of the axes."""
        return tuple(axis.reward_term for axis in self.axes)

    def cell(self, rollout: Rollout) -> Cell | None:
        """The cell of a rollout; None for a rollout that cannot be kept."""
        values = [rollout.reward_terms.get(name, math.nan) for name in self.reward_terms]
        if not all(map(math.isfinite, (rollout.reward, *values))):
            return None
        if rollout.reward <= self.threshold:
            return None
        return tuple(axis.index(value) for axis, value in zip(self.axes, values, strict=True))

    def coverage(self, rollouts: Sequence[Rollout]) -> float:
        """The fraction of cells that hold a rollout, from 0 to 1."""
        return len(self._elite_indices(rollouts)) / self.num_cells

    def qd_score(self, rollouts: Sequence[Rollout]) -> float:
        """The sum over the cells of the highest reward minus the threshold, in units of reward.

        The QD score of Pugh, Soros and Stanley, 2016, doi:10.3389/frobt.2016.00040.
        """
        indices = self._elite_indices(rollouts).values()
        return math.fsum(rollouts[i].reward - self.threshold for i in indices)

    def _elite_indices(self, rollouts: Sequence[Rollout]) -> dict[Cell, int]:
        """The index of the best rollout of each cell."""
        best = dict[Cell, int]()
        for i, rollout in enumerate(rollouts):
            cell = self.cell(rollout)
            if cell is None:
                continue
            if cell not in best or rollout.reward > rollouts[best[cell]].reward:
                best[cell] = i
        return best


def archive_metrics(
    rules: Iterable[object], replays_by_task: Collection[Sequence[Rollout]]
) -> dict[str, float]:
    """Metrics of the archives that rules of the kind `Elites` keep; empty without such a rule.

    Coverage and QD score are means over the tasks with replays, and over the rules. The best reward
    is that of all archives.

    Args:
        rules: The keep rules of a method.
        replays_by_task: The kept rollouts of each task.
    """
    archives = [
        (rule, replays) for rule in rules if isinstance(rule, Elites) for replays in replays_by_task
    ]
    rewards = [r.reward for rule, replays in archives for r in replays if rule.cell(r) is not None]
    if not rewards:
        return {}
    count = len(archives)
    return {
        "archive/coverage": sum(rule.coverage(replays) for rule, replays in archives) / count,
        "archive/qd_score": sum(rule.qd_score(replays) for rule, replays in archives) / count,
        "archive/best": max(rewards),
    }


PAPER = Paper(
    title="Illuminating search spaces by mapping elites",
    kind="sampler",
    use="A search shall find the best artefact of every kind, not one artefact.",
    tags=("exploration", "off-policy"),
    checked=("golden", "reference", "run"),
    catalogue=("map-elites",),
    source=Source(
        "third_party",
        "the release of pyribs (icaros-usc/pyribs), ribs/archives/grid_archive.py, and its package"
        " ribs 0.12.0, which a test compares; the paper was not opened",
    ),
    missing=(
        "The hierarchical version, whose cells become smaller during a run.",
        "Programs as artefacts: the run that is shown edits lists of points.",
        "A better best artefact: with equal evaluations, random edits of the single best list of"
        " points end higher than the archive, which has more cells and a higher QD score.",
    ),
    deviations=(
        "A place within a rounding error of the border of two cells may be in the other cell than"
        " with ribs, which adds a small number before it rounds down.",
    ),
    shown=(
        "tests/core/test_elites.py::test_each_cell_keeps_its_best_rollout",
        "tests/core/test_elites.py::test_the_archive_equals_that_of_ribs",
        "docs/guidance_shown/points_in_square.md#an-archive-against-independent-samples",
    ),
)

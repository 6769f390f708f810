"""A curriculum that prefers sources of tasks (data sets) whose rollouts differ in reward."""

from collections.abc import Mapping, Sequence
from math import exp, log, sqrt
from statistics import fmean, stdev

from grupo.core.component import component
from grupo.core.paper import Paper, Source
from grupo.core.ranges import PositiveFloat, PositiveInt
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.core.types import Task
from grupo.rollouts.curricula.base import CurriculumRequest
from grupo.rollouts.history import History
from grupo.util.errors import ConfigError, suggest
from grupo.util.rng import make_rng


@component
class RecentAdvantages(TaskStatistic):
    """Counts the rollouts of a source, and keeps |A| of its last `recent_rollouts` rollouts.

    A = (r - mean) / (s + 1e-6) is GRPO's advantage within a group with the deviation s.

    Args:
        recent_rollouts: Number of rollouts whose |A| is kept.
    """

    recent_rollouts: PositiveInt

    @property
    def initial_state(self) -> StatisticState:
        return (0.0,) * (1 + self.recent_rollouts)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        count, *recent = state
        for advantage in absolute_advantages(group.rewards):
            recent[int(count) % self.recent_rollouts] = advantage
            count += 1
        return (count, *recent)

    def mean(self, state: StatisticState) -> float:
        """Mean |A| of the kept rollouts; 0 for a source without rollouts."""
        count, *recent = state
        return sum(recent) / min(count, self.recent_rollouts) if count else 0.0


@component
class SourceBandit:
    """Draws a source for each task, and then a random task of this source.

    The probability of source d is softmax(UCB / `temperature`)_d, where
    UCB_d = L_d + sqrt(2 ln(N + 1) / (n_d + 1)) is an upper confidence bound. L_d is the mean |A| of
    the last `recent_rollouts` rollouts of d. n_d is the number of rollouts of d, and N is the sum
    of n_d over all sources, at least 1. Tasks are drawn with replacement. Only the first request of
    a step returns tasks. DUMP, Wang et al. (arXiv:2504.09710).

    Args:
        sources: Values of `task.source` to draw from; all sources of the tasks by default.
        temperature: Temperature of the softmax.
        recent_rollouts: Number of rollouts of a source whose |A| is averaged.

    Raises:
        ConfigError: No task has one of the sources. Raised before the run.
    """

    sources: tuple[str, ...] = ()
    temperature: PositiveFloat = 0.1
    recent_rollouts: PositiveInt = 300

    @property
    def requires(self) -> Requires:
        return Requires(source_statistics=(self._statistic,))

    def validate_every_task(self, tasks: Sequence[Task]) -> None:
        """Raise `ConfigError` for a source that no task has."""
        check_sources("SourceBandit.sources", self.sources, tasks)

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index:
            return []
        places_of = places_by_source(request.tasks)
        names = list(self.sources or places_of)
        weights = [*self.probabilities(request.history, names).values()]
        rng = make_rng(request.seed, "source-bandit", request.history.num_tasks_drawn)
        drawn = rng.choices(names, weights, k=request.num_tasks)
        return [request.tasks[rng.choice(places_of[name])] for name in drawn]

    def probabilities(self, history: History, sources: Sequence[str]) -> Mapping[str, float]:
        """The probability of each source.

        Args:
            history: Earlier groups.
            sources: The sources to draw from.
        """
        states = [history.statistics_of_source(name).state(self._statistic) for name in sources]
        means = [self._statistic.mean(state) for state in states]
        weights = bandit_probabilities(means, [state[0] for state in states], self.temperature)
        return dict(zip(sources, weights, strict=True))

    @property
    def _statistic(self) -> RecentAdvantages:
        return RecentAdvantages(self.recent_rollouts)


def absolute_advantages(rewards: Sequence[float]) -> Sequence[float]:
    """|r - mean| / (s + 1e-6) of each reward r of a group; s is the unbiased standard deviation.

    >>> [round(a, 3) for a in absolute_advantages([1.0, 0.0, 0.0, 0.0])]
    [1.5, 0.5, 0.5, 0.5]
    >>> absolute_advantages([1.0, 1.0]), absolute_advantages([0.5])
    ([0.0, 0.0], [0.0])
    """
    mean = fmean(rewards)
    deviation = stdev(rewards) if len(rewards) > 1 else 0.0
    return [abs(reward - mean) / (deviation + 1e-6) for reward in rewards]


def bandit_probabilities(
    means: Sequence[float], counts: Sequence[float], temperature: float
) -> Sequence[float]:
    """Softmax of the upper confidence bounds mean + sqrt(2 ln(N + 1) / (n + 1)).

    Args:
        means: Mean |A| of each source.
        counts: Number n of rollouts of each source; N is the sum, at least 1.
        temperature: Temperature of the softmax.

    >>> [round(p, 4) for p in bandit_probabilities([0.8, 0.2], [100, 100], 0.1)]
    [0.9975, 0.0025]
    >>> [round(p, 4) for p in bandit_probabilities([0.8, 0.2], [9990, 10], 0.1)]
    [0.0015, 0.9985]
    """
    total = max(1.0, sum(counts))
    bounds = [
        mean + sqrt(2 * log(total + 1) / (count + 1))
        for mean, count in zip(means, counts, strict=True)
    ]
    weights = [exp((bound - max(bounds)) / temperature) for bound in bounds]
    return [weight / sum(weights) for weight in weights]


def places_by_source(tasks: Sequence[Task]) -> dict[str, list[int]]:
    """The indices of the tasks of each source; the sources are in the order of their first task.

    The function returns indices, because a list of tasks would keep all tasks of a file in memory.
    """
    places_of: dict[str, list[int]] = {}
    for i, task in enumerate(tasks):
        places_of.setdefault(task.source, []).append(i)
    return places_of


def check_sources(field: str, sources: Sequence[str], tasks: Sequence[Task]) -> None:
    """Raise `ConfigError` for the first source that no task has, with the nearest spelling.

    Args:
        field: The field that names the sources.
        sources: The names.
        tasks: All training tasks.
    """
    if not sources:
        return
    known = dict.fromkeys(task.source for task in tasks)
    for name in sources:
        if name not in known:
            hint = suggest(name, known)
            raise ConfigError(f"{field}: no task has the source {name!r}. {hint}")


PAPER = Paper(
    title="DUMP: Automated Distribution-Level Curriculum Learning for RL-based LLM Post-training",
    use="Tasks come from several sources, and it is not known which of them can be learned now.",
    tags=("curriculum",),
    kind="curriculum",
    checked=("golden", "run"),
    catalogue=("dump",),
    source=Source("code", "ZhentingWang/DUMP, verl/utils/curriculum_learning.py"),
    missing=(
        "The counts of successes of a source: the release records them and never reads them.",
    ),
    deviations=(
        "Advantages are those of the training rollouts, as in the paper; the release updates its"
        " scores with values of validation passes.",
        "Rollouts that the filter drops are counted, with |A| = 0 if the rewards of their group are"
        " equal.",
    ),
    shown=(
        "docs/guidance_shown/dump.md#dump",
        "tests/rollouts/curricula/test_sources.py::test_probabilities_of_two_sources_by_hand",
        "docs/guidance_shown/task_choice.md#results",
    ),
)

"""Variance-aware sampling: tasks with rollouts that differ are drawn more often."""

from collections.abc import Sequence
from dataclasses import replace

from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule
from grupo.core.paper import Paper, Source
from grupo.core.ranges import NonNegativeFloat, Probability
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.core.types import Task
from grupo.rollouts.curricula.base import CurriculumRequest, next_tasks
from grupo.util.rng import make_rng


@component
class OutcomeAndDiversity(TaskStatistic):
    """Success rate and diversity of a task's rollouts.

    State: (success rate, diversity, 1.0 once the task has had a group, else 0.0).

    Args:
        momentum: Share of earlier groups in success rate and diversity; with 0, only the last group
            counts.
        success_threshold: A rollout is correct if its reward is above this.
        diversity_term: Reward term whose mean over a group is the diversity; with "", the diversity
            is 0.
    """

    momentum: Probability
    success_threshold: NumberOrSchedule
    diversity_term: str

    @property
    def initial_state(self) -> StatisticState:
        return (0.0, 0.0, 0.0)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        count = len(group.rewards)
        rate = sum(r > self.success_threshold for r in group.rewards) / count
        diversity = sum(group.reward_terms.get(self.diversity_term, ())) / count
        old_rate, old_diversity, had_group = state
        old_weight = self.momentum * had_group
        return (
            old_weight * old_rate + (1 - old_weight) * rate,
            old_weight * old_diversity + (1 - old_weight) * diversity,
            1.0,
        )


@component
class VarianceAware:
    """Samples some tasks of a step by weight; the other tasks follow the shuffled order.

    The score of a task is outcome_coef p (1 - p) + diversity_coef d, with the success rate p and
    the diversity d of its earlier rollouts. Its weight is this score, scaled to [0, 1] over all
    tasks, plus `floor`. Tasks are sampled by weight with replacement, and alternate with the others
    in the step. MMR1, Leng et al. (arXiv:2509.21268).

    Args:
        weighted_frac: Fraction of the tasks of a step that is sampled by weight.
        outcome_coef: Factor of the variance p (1 - p) of the outcome in the score.
        diversity_coef: Factor of the diversity, which `diversity_term` measures, in the score.
        momentum: Share of a task's earlier groups in p and d; with 0, only the last group counts.
        success_threshold: A rollout is correct if its reward is above this.
        diversity_term: Reward term whose mean over a group is the diversity, such as
            `RewardTerm("diversity", DistinctNgrams(), weight=0)`; with "", the diversity is 0.
        floor: Added to every weight, so that every task can be sampled.
    """

    weighted_frac: Probability = 0.5
    outcome_coef: NonNegativeFloat = 0.8
    diversity_coef: NonNegativeFloat = 0.2
    momentum: Probability = 0.0
    success_threshold: NumberOrSchedule = 0.5
    diversity_term: str = "diversity"
    floor: NonNegativeFloat = 1e-3

    @property
    def requires(self) -> Requires:
        terms = (self.diversity_term,) if self.diversity_term else ()
        return Requires(task_statistics=(self._statistic,), reward_terms=terms)

    def __call__(self, request: CurriculumRequest) -> Sequence[Task]:
        if request.round_index:
            return []
        history = request.history
        num_weighted = int(self.weighted_frac * request.num_tasks)
        rng = make_rng(request.seed, "variance-aware", history.num_tasks_drawn)
        weighted = rng.choices(request.tasks, self.weights(request), k=num_weighted)
        # earlier steps took only about this number of tasks from the shuffled order
        num_shuffled_drawn = round(history.num_tasks_drawn * (1 - self.weighted_frac))
        shuffled_history = replace(history, num_tasks_drawn=num_shuffled_drawn)
        num_shuffled = request.num_tasks - num_weighted
        shuffled = next_tasks(replace(request, num_tasks=num_shuffled, history=shuffled_history))
        return interleave(weighted, shuffled)

    def weights(self, request: CurriculumRequest) -> Sequence[float]:
        """The weight of each task, with the floor."""
        states = [
            request.history.statistics_of_task(t).state(self._statistic) for t in request.tasks
        ]
        scores = [
            self.outcome_coef * p * (1 - p) + self.diversity_coef * d if had_group else None
            for p, d, had_group in states
        ]
        return [weight + self.floor for weight in min_max_scaled(scores)]

    @property
    def _statistic(self) -> OutcomeAndDiversity:
        return OutcomeAndDiversity(self.momentum, self.success_threshold, self.diversity_term)


def min_max_scaled(scores: Sequence[float | None]) -> Sequence[float]:
    """Scores scaled to [0, 1]. An unknown score counts as the mean. Equal scores become 1.

    >>> min_max_scaled([0.0, 0.25, None]), min_max_scaled([None, 0.2])
    ([0.0, 1.0, 0.5], [1.0, 1.0])
    """
    known = [score for score in scores if score is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if high == low:
        return [1.0] * len(scores)
    mean = sum(known) / len(known)
    return [((mean if score is None else score) - low) / (high - low) for score in scores]


def interleave(first: Sequence[Task], second: Sequence[Task]) -> Sequence[Task]:
    """Tasks of two sequences in turn, then the rest of the longer sequence."""
    in_turn = [task for pair in zip(first, second, strict=False) for task in pair]
    num_pairs = min(len(first), len(second))
    return [*in_turn, *first[num_pairs:], *second[num_pairs:]]


PAPER = Paper(
    title="MMR1: Enhancing Multimodal Reasoning with Variance-Aware Sampling and Open Resources",
    use="Many tasks are always or never solved, and their groups have no gradient.",
    tags=("curriculum", "multimodal"),
    kind="curriculum",
    checked=("golden", "run"),
    catalogue=("mmr1-vas",),
    source=Source(
        "code",
        "LengSicong/MMR1: verl/curriculum/metrics.py and samplers.py, examples/mmr1.yaml;"
        " the weights 0.8 and 0.2 are the paper's, as the catalogue row lists them",
    ),
    plan="examples/mmr1.yaml: 512 prompts per step in one batch of 512",
    missing=(
        "Self-BLEU and edit distance as diversity: DistinctNgrams measures the share of n-grams.",
        "The cold start on long chains of thought.",
    ),
    deviations=(
        "Scores come from training groups. The release instead generates 8 rollouts of every task"
        " every 4 steps. A task that was never drawn has the mean score.",
        "The momentum averages success rate and diversity, not the scaled weights.",
        "A floor is added to every weight, so that every task can be sampled by weight.",
    ),
    shown=(
        "docs/vision_shown/landed_methods.md#mmr1-vas",
        "docs/guidance_shown/task_choice.md#results",
    ),
)

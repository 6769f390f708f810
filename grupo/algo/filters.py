"""Filters: which groups of a step, and which rollouts of a group, are trained on."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from grupo.core.component import check_field, component
from grupo.core.dynamic_number import DynamicNumber
from grupo.core.kept_rollouts import BestAndWorst
from grupo.core.numbers import Fraction, NumberOrSchedule, PositiveInt
from grupo.core.requires import Requires
from grupo.core.types import Group, Rollout


class Filter(Protocol):
    """Maps the scored groups of a step to those that are trained on.

    A filter may drop groups, drop rollouts of a group, or add earlier rollouts to it.
    """

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]: ...


@runtime_checkable
class StepFilter(Protocol):
    """A filter that also sees all groups of a step, once no further ones are generated."""

    def __call__(self, groups: Sequence[Group], /) -> Sequence[Group]: ...

    def finish_step(
        self, kept: Sequence[Group], sampled: Sequence[Group], num_groups: int, /
    ) -> Sequence[Group]:
        """Return the groups in order of preference; the first `num_groups` are trained on.

        Args:
            kept: The groups that the filter kept in each round.
            sampled: All groups of the step, without failed rollouts.
            num_groups: Number of groups to train on.
        """
        ...


def select_groups_of_step(
    group_filter: Filter, kept: Sequence[Group], sampled: Sequence[Group], num_groups: int
) -> Sequence[Group]:
    """Select the groups to train on from all groups of a step, at most `num_groups`.

    The arguments are those of `StepFilter.finish_step`.
    """
    if isinstance(group_filter, StepFilter):
        kept = group_filter.finish_step(kept, sampled, num_groups)
    return kept[:num_groups]


def keep_all(groups: Sequence[Group]) -> Sequence[Group]:
    """Return all groups: no filter."""
    return groups


def keep_nonzero_std(groups: Sequence[Group]) -> Sequence[Group]:
    """Keep the groups whose rewards differ; the others have advantage 0 everywhere.

    Source: dynamic sampling of DAPO (arXiv:2503.14476), eq. 11: 0 < number correct < G.
    """
    return [group for group in groups if group.has_reward_variance]


@component
class KeepMixed:
    """Keep the groups in which a reward term differs, whatever else the reward has.

    Source: TAPO (Goer17/TAPO), whose accuracy and not its reward decides about a group.

    Args:
        reward_term: name of the reward term.

    >>> from grupo.core.types import Task
    >>> mixed = [Rollout(reward=0.0, reward_terms={"right": x}) for x in (0.0, 1.0)]
    >>> equal = [Rollout(reward=x, reward_terms={"right": 0.0}) for x in (0.5, 1.0)]
    >>> groups = [Group(Task(key, "?"), tuple(x)) for key, x in (("a", mixed), ("b", equal))]
    >>> [group.task.key for group in KeepMixed("right")(groups)]
    ['a']
    """

    reward_term: str

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        name = self.reward_term
        return [g for g in groups if len({r.reward_terms[name] for r in g.rollouts}) > 1]


@component
class KeepAccuracy:
    """Keep the groups in which the fraction of correct rollouts is from `low` to `high`.

    If too few groups of a step are in the interval, the groups that are closest to it are kept as
    well. Of two equally close groups, the earlier one comes first.
    Source: Online Difficulty Filtering, Bae et al., arXiv:2504.03380.

    Args:
        low: smallest fraction.
        high: largest fraction.
        success_threshold: a rollout is correct if its reward is above this.

    Raises:
        ConfigError: `low` is above `high`.

    >>> from grupo.core.types import Task
    >>> rewards = [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1), (1, 1, 1, 1)]
    >>> groups = [Group(Task("k", "?"), tuple(Rollout(reward=r) for r in row)) for row in rewards]
    >>> [group.rewards for group in KeepAccuracy(0.25, 0.75)(groups)]
    [(0, 0, 0, 1), (0, 0, 1, 1)]
    """

    low: Fraction = 0.25
    high: Fraction = 0.75
    success_threshold: NumberOrSchedule = 0.5

    def __post_init__(self) -> None:
        if not any(isinstance(end, DynamicNumber) for end in (self.low, self.high)):
            check_field(self, "low", self.low <= self.high, f"at most high, {self.high}")

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [group for group in groups if not self._distance(group)]

    def finish_step(
        self, kept: Sequence[Group], sampled: Sequence[Group], num_groups: int
    ) -> Sequence[Group]:
        """The kept groups and, if they are too few, the closest of the others."""
        others = [group for group in sampled if self._distance(group)]
        return [*kept, *sorted(others, key=self._distance)[: max(0, num_groups - len(kept))]]

    def _distance(self, group: Group) -> float:
        """Distance of the group's fraction of correct rollouts from the interval."""
        correct = sum(reward > self.success_threshold for reward in group.rewards)
        fraction = correct / len(group.rewards)
        return max(self.low - fraction, fraction - self.high, 0.0)


@component
class KeepMaxVariance:
    """Keep the `num_rollouts` rollouts of each group whose rewards have the largest variance.

    These are the k lowest and the n - k highest rewards for some k; all k are tried. A group of
    fewer rollouts is kept whole.
    Source: max-variance down-sampling of PODS, Xu et al., 2025, arXiv:2504.13818, theorem 1.

    Args:
        num_rollouts: rollouts kept of each group.
    """

    num_rollouts: PositiveInt

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [replace(group, rollouts=self._max_variance_subset(group)) for group in groups]

    def _max_variance_subset(self, group: Group) -> tuple:
        ranked = sorted(group.rollouts, key=lambda r: r.reward)
        num_worst = max(
            range(self.num_rollouts + 1),
            key=lambda k: _variance([r.reward for r in self._worst_and_best(ranked, k)]),
        )
        return self._worst_and_best(ranked, num_worst)

    def _worst_and_best(self, ranked: Sequence, num_worst: int) -> tuple:
        n = min(self.num_rollouts, len(ranked))
        num_worst = min(num_worst, n)
        return (*ranked[:num_worst], *ranked[len(ranked) - (n - num_worst) :])


@component
class KeepBest:
    """Keep the `num_rollouts` rollouts of each group with the highest `score`, in their old order.

    Source: GFPO, Shrivastava et al., arXiv:2508.09726.

    Args:
        num_rollouts: rollouts kept of each group.
        score: function of a rollout; larger is better.

    >>> from grupo.core.types import Task
    >>> def negative_reward(rollout):
    ...     return -rollout.reward
    >>> group = Group(Task("k", "?"), (Rollout(reward=1.0), Rollout(reward=0.0)))
    >>> KeepBest(1, negative_reward)([group])[0].rewards
    (0.0,)
    """

    num_rollouts: PositiveInt
    score: Callable[[Rollout], float]

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [replace(group, rollouts=self._best(group.rollouts)) for group in groups]

    def _best(self, rollouts: tuple[Rollout, ...]) -> tuple[Rollout, ...]:
        ranked = sorted(range(len(rollouts)), key=lambda i: -self.score(rollouts[i]))
        return tuple(rollouts[i] for i in sorted(ranked[: self.num_rollouts]))


@component
class Replay:
    """Add earlier rollouts of the same task to groups that are all correct or all incorrect.

    An all-incorrect group gets the newest correct rollouts of `task.replays`, an all-correct group
    the newest incorrect ones. They keep the log-probabilities of the step that generated them;
    their `source` is "replayed" and their actions are `off_context`.
    Source: cross-context replay of R^3, Jiang et al., arXiv:2601.19620, section 3.1.

    Args:
        num_rollouts: replayed rollouts per group, at most.
        success_threshold: a rollout is correct if its reward is above this.

    >>> from grupo.core.types import Response, Task
    >>> early = Rollout((("?", Response((1,), (-0.5,))),), reward=1.0)
    >>> group = Group(Task("k", "?", replays=(early,)), (Rollout(reward=0.0), Rollout(reward=0.0)))
    >>> (extended,) = Replay(1)([group])
    >>> extended.rewards, extended.rollouts[2].source
    ((0.0, 0.0, 1.0), 'replayed')
    >>> extended.rollouts[2].turns[0][1].off_context
    True
    """

    num_rollouts: PositiveInt = 1
    success_threshold: NumberOrSchedule = 0.5

    @property
    def requires(self) -> Requires:
        return Requires(replay_rules=(BestAndWorst(self.num_rollouts),))

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [self._with_replays(group) for group in groups]

    def _with_replays(self, group: Group) -> Group:
        outcomes = {self._is_correct(reward) for reward in group.rewards}
        missing = [r for r in group.task.replays if self._is_correct(r.reward) not in outcomes]
        replayed = map(mark_replayed, missing[-self.num_rollouts :])
        return replace(group, rollouts=(*group.rollouts, *replayed))

    def _is_correct(self, reward: float) -> bool:
        return reward > self.success_threshold


def mark_replayed(rollout: Rollout) -> Rollout:
    """The rollout as one of an earlier step: its old log-probabilities stay as they are."""
    turns = [
        (observation, replace(action, off_context=True)) for observation, action in rollout.turns
    ]
    return replace(rollout, turns=tuple(turns), source="replayed")


def _variance(rewards: Sequence[float]) -> float:
    mean = sum(rewards) / len(rewards)
    return sum((r - mean) ** 2 for r in rewards) / len(rewards)

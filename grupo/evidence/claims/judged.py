"""Training in the environments of the claims on comparisons in place of their reward.

The answers are those of the policy, or given: drawn from the reference policy at every step, as if
they had been collected before training. Both kinds get the same number of generated answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import torch

from grupo.algo.filters import Filter, keep_nonzero_std
from grupo.core.component import component
from grupo.core.types import Group, Rollout, Task
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.rewarded import RewardedArm
from grupo.evidence.claims.rollouts import sample_groups
from grupo.evidence.claims.train import TabularRun
from grupo.method import Method
from grupo.rewards.noisy_preferences import Compare, win_rate
from grupo.rewards.pairwise import PairwiseWinRate
from grupo.rollouts.samplers import GroupSampler
from grupo.util.rng import derive_key

Quality = Callable[[Rollout], float]
JUDGED_PER_TASK = 32  # rollouts of a task by which two policies are compared


@component
class HigherQuality:
    """The true judge: 1 if the first rollout is of higher quality, 0 if of lower, 1/2 for a tie.

    Args:
        quality: Quality of a rollout.
    """

    quality: Quality

    def __call__(self, task: Task, first: Rollout, second: Rollout) -> float:
        difference = self.quality(first) - self.quality(second)
        return (1 + (difference > 0) - (difference < 0)) / 2


def preferred_items(rollout: Rollout) -> float:
    """Items that an optimal policy takes, minus those that it does not; others count nothing."""
    return sum(rollout.step_values["preferred"])


@component
class JudgedBefore:
    """Rewards each rollout by its win rate in its group, then filters the groups.

    Args:
        inner: The filter.
        compare: The judge.
        terms: Further reward terms by name, which the reward does not include.
    """

    inner: Filter
    compare: Compare
    terms: tuple[tuple[str, Quality], ...] = ()

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return self.inner([self._judged(group) for group in groups])

    def _judged(self, group: Group) -> Group:
        wins = PairwiseWinRate(self.compare)(group.task, group.rollouts)
        rollouts = [
            replace(
                rollout,
                reward=win,
                reward_terms={
                    **rollout.reward_terms,
                    "win_rate": win,
                    **{name: term(rollout) for name, term in self.terms},
                },
            )
            for rollout, win in zip(group.rollouts, wins, strict=True)
        ]
        return replace(group, rollouts=tuple(rollouts))


def keep_winners(groups: Sequence[Group]) -> Sequence[Group]:
    """The winner of each pair; a tied pair is dropped."""
    return [
        replace(group, rollouts=tuple(r for r in group.rollouts if r.reward == max(group.rewards)))
        for group in keep_nonzero_std(groups)
    ]


@dataclass(frozen=True)
class JudgedArm(RewardedArm):
    """An arm whose rollouts a judge compares; `method` is its label.

    Args:
        given: The reference policy generates the answers, in place of the trained one.
    """

    given: bool = False


def own_answers(label: str, method: Method, compare: Compare) -> JudgedArm:
    """A method on the answers of the policy, with their win rates as rewards."""
    judged = JudgedBefore(method.filter, compare)
    return JudgedArm(label, built=method.replace(filter=judged))


def given_answers(
    label: str,
    method: Method,
    compare: Compare,
    group_size: int = 2,
    *,
    kept: Filter = keep_nonzero_std,
    terms: tuple[tuple[str, Quality], ...] = (),
) -> JudgedArm:
    """A method on given answers, in pairs or in larger groups."""
    judged = JudgedBefore(kept, compare, terms)
    built = method.replace(sampler=GroupSampler(group_size), filter=judged)
    return JudgedArm(label, built=built, given=True)


class JudgedRun(TabularRun):
    """A run whose answers the reference policy generates where they are given."""

    arm: JudgedArm  # pyrefly: ignore[bad-override-mutable-attribute]

    @torch.no_grad()
    def _sampler_table(self) -> np.ndarray:
        return self.reference.logp_table().numpy() if self.arm.given else super()._sampler_table()

    @torch.no_grad()
    def answers(self, label: str, *, of_reference: bool = False) -> list[Group]:
        """Fresh answers of the trained policy or of the reference, a group for each task."""
        policy = self.reference if of_reference else self.policy
        key = derive_key(self.seed, "judged", label)
        logp = policy.logp_table().numpy()
        return sample_groups(self.env, logp, self.tasks, JUDGED_PER_TASK, key)

    def win_rate(self, quality: Quality) -> float:
        """Win rate of the trained policy against the reference, by a judge without error."""
        pairs = zip(self.answers("own"), self.answers("other", of_reference=True), strict=True)
        judge = HigherQuality(quality)
        return fmean(win_rate(judge, own.task, own.rollouts, ref.rollouts) for own, ref in pairs)


def train_judged(setting: Setting, arm: JudgedArm, seed: int) -> JudgedRun:
    """Train an arm until its budget is used, and return the run."""
    run = JudgedRun(setting, arm, seed)
    while run.progress < 1:
        run.step()
    return run


def judged_metrics(run: JudgedRun, quality: Quality) -> Mapping[str, float]:
    """The metrics of a trained run, with its win rate against the reference policy."""
    return run.metrics([run.success()] * 2) | {"win_rate": run.win_rate(quality)}

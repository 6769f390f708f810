"""ARRoL's claim: survivors of pruning have more reward variance and a more even success rate.

Every rollout is generated to its end and only then pruned. Survivors are compared with all subsets
of their size, which is the average result of random pruning.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, sqrt
from statistics import fmean, stdev, variance

import pytest
import torch

from grupo.core.component import component
from grupo.core.requires import Requires
from grupo.core.types import PRUNED_BY_SAMPLER, Group
from grupo.methods.arrol import arrol
from grupo.rollouts.samplers import EarlyPruning
from grupo.rollouts.samplers.pruning import QUALITY_HEAD
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner

T95 = {5: 2.776, 8: 2.365}  # 95 % quantile of Student's t by number of seeds


@dataclass(frozen=True)
class PrunedGroup:
    """Rewards of a group, 0 or 1, and the indices of its survivors."""

    rewards: Sequence[float]
    survivors: Sequence[int]

    @property
    def variance_gain(self) -> float:
        """Variance of the survivors' rewards minus that of a random subset: the group's (n - 1)."""
        return variance([self.rewards[i] for i in self.survivors]) - variance(self.rewards)

    @property
    def balance_gain(self) -> float:
        """Decrease of |fraction correct - 1/2| against a random subset of the same size."""
        k = len(self.survivors)
        num_correct = sum(self.rewards[i] > 0.5 for i in self.survivors)
        return expected_imbalance(self.rewards, k) - abs(num_correct / k - 0.5)


def expected_imbalance(rewards: Sequence[float], k: int) -> float:
    """Mean of |fraction correct - 1/2| over all subsets of size k."""
    n, ones = len(rewards), sum(x > 0.5 for x in rewards)
    counts = ((comb(ones, i) * comb(n - ones, k - i), abs(i / k - 0.5)) for i in range(k + 1))
    return sum(count * imbalance for count, imbalance in counts) / comb(n, k)


class Recorder:
    """Collects the pruned groups of a run."""

    def __init__(self) -> None:
        self.groups: list[PrunedGroup] = []


@component
class PruneAfterwards:
    """Generates every rollout to its end, then prunes those that `inner` would have pruned."""

    inner: EarlyPruning
    recorder: Recorder
    requires = Requires(heads=(QUALITY_HEAD,))

    async def __call__(self, task, env, actor) -> Group:
        group = await replace(self.inner, keep_fraction=1.0)(task, env, actor)
        scores = [r.reward_terms["quality"] for r in group.rollouts]
        survivors = self.inner.kept_indices(scores)
        if 1 < len(survivors) < len(group.rollouts):
            self.recorder.groups.append(PrunedGroup([r.reward for r in group.rollouts], survivors))
        rollouts = [
            r if i in survivors else replace(r, error=PRUNED_BY_SAMPLER)
            for i, r in enumerate(group.rollouts)
        ]
        return replace(group, rollouts=tuple(rollouts))


def pruned_groups(seed: int, steps: int = 40) -> list[PrunedGroup]:
    """The pruned groups of a run of smoke training."""
    method, recorder = arrol(16, prune_at=1, always_keep=2), Recorder()
    recipe = echo_recipe(method, max_steps=steps, seed=seed)
    sampler = PruneAfterwards(method.sampler, recorder)
    learner = Learner(recipe.replace(method=method.replace(sampler=sampler)))
    for _ in range(steps):
        learner.step()
    return recorder.groups


def confidence_interval(values: Sequence[float]) -> tuple[float, float]:
    """95 % confidence interval of the mean over seeds."""
    half = T95[len(values)] * stdev(values) / sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def test_random_subset_has_the_variance_of_its_group():
    # two of 1, 1, 0, 0 survive, one correct: variance 1/2; pairs have 1/2 (4 of 6) and 0 (2 of 6)
    mixed = PrunedGroup([1.0, 1.0, 0.0, 0.0], [0, 2])
    assert mixed.variance_gain == pytest.approx(1 / 2 - 1 / 3)
    assert expected_imbalance(mixed.rewards, 2) == pytest.approx(2 / 6 * 0.5)
    assert mixed.balance_gain == pytest.approx(1 / 6)
    pairs = [PrunedGroup(mixed.rewards, (i, j)) for i in range(4) for j in range(i)]
    assert fmean(pair.variance_gain for pair in pairs) == pytest.approx(0)
    assert fmean(pair.balance_gain for pair in pairs) == pytest.approx(0)


@pytest.mark.slow
def test_survivors_have_more_variance_and_balance_than_a_random_subset():
    torch.set_num_threads(1)
    runs = [pruned_groups(seed) for seed in range(5)]
    variance_gains = [fmean(group.variance_gain for group in run) for run in runs]
    balance_gains = [fmean(group.balance_gain for group in run) for run in runs]
    assert confidence_interval(variance_gains)[0] > 0
    assert confidence_interval(balance_gains)[0] > 0

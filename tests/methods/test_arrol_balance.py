"""What ARRoL claims of its pruning: who is left differs more, and is more evenly right and wrong.

Each group is sampled to its end, and only then is given up who would have been: survivors are
compared with all subsets of their size, which is what pruning at random leaves on average.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb, sqrt
from statistics import fmean, stdev, variance

import pytest
import torch

from grupo.core.component import component
from grupo.core.types import PRUNED, Group
from grupo.methods.arrol import arrol
from grupo.rollouts.samplers import EarlyPruning
from grupo.rollouts.samplers.pruning import QUALITY_HEAD
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner

T95 = {5: 2.776, 8: 2.365}  # Student's t of so many seeds, 95 %


@dataclass(frozen=True)
class Left:
    """A group's rewards, 0 or 1, and who of them was left."""

    rewards: Sequence[float]
    left: Sequence[int]

    @property
    def more_varied(self) -> float:
        """Variance of those left, n - 1, less that of a random subset: the whole group's."""
        return variance([self.rewards[i] for i in self.left]) - variance(self.rewards)

    @property
    def more_even(self) -> float:
        """How much nearer a half of those left are right than of a random subset."""
        k, right = len(self.left), sum(self.rewards[i] > 0.5 for i in self.left)
        return uneven(self.rewards, k) - abs(right / k - 0.5)


def uneven(rewards: Sequence[float], k: int) -> float:
    """|share right - 1/2| of k drawn from these without looking, on average."""
    n, ones = len(rewards), sum(x > 0.5 for x in rewards)
    ways = ((comb(ones, i) * comb(n - ones, k - i), abs(i / k - 0.5)) for i in range(k + 1))
    return sum(w * off for w, off in ways) / comb(n, k)


class Notes:
    """Groups as they were."""

    def __init__(self) -> None:
        self.found: list[Left] = []


@component
class Watched:
    """Samples every rollout to its end, then gives up whom `inner` would have given up before."""

    inner: EarlyPruning
    notes: Notes
    helpers = (QUALITY_HEAD,)

    async def __call__(self, task, env, act) -> Group:
        group = await replace(self.inner, keep_fraction=1.0)(task, env, act)
        going = self.inner.surviving_indices([r.reward_terms["quality"] for r in group.rollouts])
        if 1 < len(going) < len(group.rollouts):
            self.notes.found.append(Left([r.reward for r in group.rollouts], going))
        told = [r if i in going else replace(r, error=PRUNED) for i, r in enumerate(group.rollouts)]
        return replace(group, rollouts=tuple(told))


def watched(seed: int, steps: int = 40) -> list[Left]:
    """The groups of a run on the proving ground."""
    method, notes = arrol(16, prune_at=1, always_keep=2), Notes()
    made = echo_recipe(method, max_steps=steps, seed=seed)
    sample = Watched(method.sampler, notes)
    learner = Learner(made.replace(method=method.replace(sampler=sample)))
    for _ in range(steps):
        learner.step()
    return notes.found


def interval(of_seeds: Sequence[float]) -> tuple[float, float]:
    """95 % of a mean over seeds."""
    half = T95[len(of_seeds)] * stdev(of_seeds) / sqrt(len(of_seeds))
    return fmean(of_seeds) - half, fmean(of_seeds) + half


def test_random_subset_has_the_variance_of_its_group():
    # of 1, 1, 0, 0 two are left, one right: 1/2 against pairs of 1/2 (4 of 6) and 0 (2 of 6)
    mixed = Left([1.0, 1.0, 0.0, 0.0], [0, 2])
    assert mixed.more_varied == pytest.approx(1 / 2 - 1 / 3)
    assert uneven(mixed.rewards, 2) == pytest.approx(2 / 6 * 0.5)
    assert mixed.more_even == pytest.approx(1 / 6)
    pairs = [(i, j) for i in range(4) for j in range(i)]
    assert fmean(Left(mixed.rewards, p).more_varied for p in pairs) == pytest.approx(0)
    assert fmean(Left(mixed.rewards, p).more_even for p in pairs) == pytest.approx(0)


@pytest.mark.slow
def test_survivors_have_more_variance_and_balance_than_a_random_subset():
    torch.set_num_threads(1)
    runs = [watched(seed) for seed in range(5)]
    assert interval([fmean(one.more_varied for one in run) for run in runs])[0] > 0
    assert interval([fmean(one.more_even for one in run) for run in runs])[0] > 0

"""GFPO: filtering of rollouts and advantages of the kept ones."""

from math import inf

import pytest

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import KeepBest
from grupo.algo.losses import KL, Clip, Entropy
from grupo.core import group_ops
from grupo.core.controllers import Quantile
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Group, Response, Rollout, Task
from grupo.methods.gfpo import KeepBestByDifficulty, efficiency, gfpo, shortness
from grupo.rollouts.history import History
from grupo.testing.batches import make_batch
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner
from grupo.util.errors import ConfigError


def rollout(length, reward):
    return Rollout(turns=(("", Response(("a",) * length, (0.0,) * length)),), reward=reward)


def kept_rollouts(curate, *lengths_and_rewards):
    (group,) = curate(
        [Group(Task("k", "?"), tuple(rollout(*pair) for pair in lengths_and_rewards))]
    )
    return [(r.length, r.reward) for r in group.rollouts]


def test_shortest_rollouts_are_kept_in_order():
    lengths_and_rewards = (5, 1.0), (2, 0.0), (9, 1.0), (3, 1.0)
    assert kept_rollouts(KeepBest(2, shortness), *lengths_and_rewards) == [(2, 0.0), (3, 1.0)]
    assert kept_rollouts(KeepBest(3, shortness), *lengths_and_rewards) == [
        (5, 1.0),
        (2, 0.0),
        (3, 1.0),
    ]


def test_token_efficiency_may_keep_long_rollouts():
    # rewards per token 0.2, 0, 0.25, 0.1
    lengths_and_rewards = (5, 1.0), (2, 0.0), (8, 2.0), (10, 1.0)
    assert kept_rollouts(KeepBest(2, efficiency), *lengths_and_rewards) == [(5, 1.0), (8, 2.0)]


def test_small_group_is_not_filtered():
    assert kept_rollouts(KeepBest(8, shortness), (1, 0.0), (2, 1.0)) == [(1, 0.0), (2, 1.0)]


def test_advantages_compare_kept_rollouts_only():
    batch = make_batch(group=[0, 0], reward=[0.0, 1.0]).with_advantage(gfpo().advantage)
    assert batch.advantage[:, 0].tolist() == pytest.approx([-1.0, 1.0], rel=1e-5)  # population


def groups_by_mean(*means):
    """Groups of ten rollouts of 1 to 10 tokens, of which a fraction earned 1."""
    return [
        Group(Task("k", "?"), tuple(rollout(n + 1, float(n < 10 * mean)) for n in range(10)))
        for mean in means
    ]


def test_harder_groups_keep_more_rollouts():
    adaptive = KeepBestByDifficulty(quartiles=(0.25, 0.5, 0.75))
    kept = adaptive(groups_by_mean(0.0, 0.2, 0.3, 0.5, 0.6, 0.8, 1.0))
    assert [len(group.rollouts) for group in kept] == [8, 8, 8, 6, 6, 4, 4]
    assert [r.length for r in kept[-1].rollouts] == [1, 2, 3, 4]


def test_before_the_quartiles_are_known_every_group_is_very_hard():
    adaptive = resolve_schedules(KeepBestByDifficulty((7, 3, 2, 1)), 0.5)
    assert [len(group.rollouts) for group in adaptive(groups_by_mean(0.0, 1.0))] == [7, 7]


@pytest.mark.slow
def test_quartiles_are_those_of_the_groups_of_earlier_steps():
    history = History()
    history.append_group_rewards(groups_by_mean(*[0.0] * 159, 0.4))
    assert resolved(history).quartiles == (inf,) * 3
    history.append_group_rewards(groups_by_mean(*[0.4] * 80, *[0.8] * 80, 1.0))
    # sorted, 0 ends at index 158, 0.4 at 239, 0.8 at 319; the quartiles are at 80, 160 and 240
    assert resolved(history).quartiles == (0.0, 0.4, 0.8)
    kept = resolved(history)(groups_by_mean(0.0, 0.3, 0.4, 0.8))
    assert [len(group.rollouts) for group in kept] == [8, 8, 6, 4]


def resolved(history):
    return resolve_schedules(KeepBestByDifficulty(), 0.5, history.metrics)


def test_a_number_of_rollouts_is_needed_for_each_difficulty():
    with pytest.raises(ConfigError, match=r"KeepBestByDifficulty.num_kept: .* 4 numbers"):
        KeepBestByDifficulty((8, 6, 4))


def test_a_run_reads_the_quartiles_of_its_own_groups():
    quartiles = tuple(Quantile("group/reward", q, inf, 16) for q in (0.25, 0.5, 0.75))
    adaptive = KeepBestByDifficulty((8, 6, 4, 2), quartiles)
    learner = Learner(echo_recipe(gfpo().replace(filter=adaptive), max_steps=4))
    sizes, seen = [], []
    for _ in range(3):
        result = learner.step()
        sizes.append({len(group.rollouts) for group in result.collected.kept_groups})
        groups = result.collected.sampled_groups
        seen += [sum(group.rewards) / len(group.rewards) for group in groups]
        assert learner.state.history.metrics["group/reward"] == seen
    assert sizes[:2] == [{8}, {8}]
    assert len(sizes[2]) > 1


def test_defaults_match_paper():
    method = gfpo()
    assert method.advantage == chain(Center(), ScaleByStd(std=group_ops.population_std))
    assert method.loss == Clip(0.2, 0.2) + 0.001 * KL() + (-0.001) * Entropy()
    assert method.aggregation is token_mean
    assert method.filter == KeepBest(8, shortness)

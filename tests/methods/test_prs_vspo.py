"""VSPO: the value of tasks, the refill, its copies, and the damping of their advantages."""

from collections import Counter
from math import sqrt

import pytest
import torch

from grupo.core.batch import TaskHistory
from grupo.core.task_statistic import ScoredGroup
from grupo.core.types import Group, Rollout, Task
from grupo.methods.prs_vspo import (
    DivideByCopies,
    InformativeCopies,
    LatestRewards,
    ValueRefill,
    prs_vspo,
)
from grupo.rollouts.curricula import CurriculumRequest, ShuffledTasks
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.testing.batches import make_batch
from grupo.testing.smoke.run import echo_recipe
from grupo.training.learner import Learner

REWARDS = {  # mean 0, 1/4, 1/2, 3/4 and 1
    "never": (0.0, 0.0, 0.0, 0.0),
    "rarely": (1.0, 0.0, 0.0, 0.0),
    "half": (1.0, 1.0, 0.0, 0.0),
    "mostly": (1.0, 1.0, 1.0, 0.0),
    "always": (1.0, 1.0, 1.0, 1.0),
}
TASKS = [Task(name, "") for name in (*REWARDS, "new")]


def group_of(name: str, rewards=None) -> Group:
    rewards = rewards or REWARDS[name]
    return Group(Task(name, ""), tuple(Rollout(reward=reward) for reward in rewards))


def request(num_tasks: int, *, round_index: int = 1, seed: int = 0, groups=(), history=None):
    history = history or History(statistics_by_task=StatisticStore((LatestRewards(),)))
    return CurriculumRequest(TASKS, history, num_tasks, seed, round_index, tuple(groups))


GROUPS = [group_of(name) for name in REWARDS]
REFILL = ValueRefill(ShuffledTasks())


def test_the_value_is_greatest_at_a_success_rate_of_a_quarter():
    # (1 - p) sqrt(p (1 - p)): 0.75 x 0.4330, 0.5 x 0.5, 0.25 x 0.4330
    expected = [0.0, 0.3248, 0.25, 0.1083, 0.0, 0.0]
    assert REFILL.values(request(1, groups=GROUPS)) == pytest.approx(expected, abs=1e-4)


def test_the_value_is_that_of_the_latest_group():
    history = History(statistics_by_task=StatisticStore((LatestRewards(),)))
    history.append_groups(0, [group_of("half"), group_of("rarely", (1.0, 1.0, 1.0, 0.0))])
    values = REFILL.values(request(1, groups=[group_of("rarely")], history=history))
    assert values == pytest.approx([0.0, 0.75 * sqrt(3) / 4, 0.25, 0.0, 0.0, 0.0])


def test_the_largest_reward_may_be_another_one():
    values = ValueRefill(ShuffledTasks(), reward_max=0.5).values(request(1, groups=GROUPS))
    assert values == pytest.approx([0.0, 0.25 * sqrt(3) / 4, 0.0, 0.0, 0.0, 0.0])


def test_tasks_are_drawn_in_proportion_to_their_value():
    drawn = Counter()
    for seed in range(400):
        drawn.update(t.key for t in REFILL(request(10, groups=GROUPS, seed=seed)))
    total = 0.75 * sqrt(3) / 4 + 0.25 + 0.25 * sqrt(3) / 4
    expected = {"rarely": 0.75 * sqrt(3) / 4, "half": 0.25, "mostly": 0.25 * sqrt(3) / 4}
    assert drawn.keys() == expected.keys()
    for name, value in expected.items():
        assert drawn[name] / 4000 == pytest.approx(value / total, abs=0.03)


def test_the_first_round_is_that_of_the_inner_curriculum():
    assert len(REFILL(request(4, round_index=0, groups=GROUPS))) == 4


@pytest.mark.parametrize(
    "ended",
    [
        request(0, groups=GROUPS),
        request(4, round_index=10, groups=GROUPS),
        request(4, groups=[group_of("never"), group_of("always")]),
    ],
    ids=["enough groups", "last round", "no task of value"],
)
def test_the_refill_ends(ended):
    assert REFILL(ended) == []


def test_a_statistic_remembers_the_latest_group():
    history = TaskHistory(steps=(0, 1), rewards=((1.0, 1.0), (1.0, 0.0)))
    assert history.state(LatestRewards()) == (0.5, 0.5)
    assert LatestRewards()((0.9, 0.1), ScoredGroup(0, (0.0, 0.0))) == (0.0, 0.0)


def test_copies_are_counted_among_the_groups_that_are_trained_on():
    kept = InformativeCopies()([group_of(x) for x in ("half", "never", "rarely", "half", "half")])
    assert [group.task.key for group in kept] == ["half", "rarely", "half", "half"]
    trained = InformativeCopies().finish_step(kept, kept, 3)  # the last one is surplus
    copies = [{r.reward_terms["copies"] for r in group.rollouts} for group in trained]
    assert copies == [{2.0}, {1.0}, {2.0}]


def test_both_groups_of_a_task_that_is_drawn_twice_have_half_the_advantage():
    copies = [2.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    batch = make_batch([0, 0, 1, 1, 2, 2], reward_terms={"copies": copies})
    x = torch.tensor([1.0, -1.0, 0.6, -0.6, 1.0, -1.0])
    assert DivideByCopies()(x, batch).tolist() == pytest.approx([0.5, -0.5, 0.3, -0.3, 1.0, -1.0])


def test_advantages_of_the_method_by_hand():
    batch = make_batch(
        [0] * 4 + [1] * 4, reward=REWARDS["half"] * 2, reward_terms={"copies": [2.0] * 8}
    )
    advantage = batch.with_advantage(prs_vspo().advantage).advantage[:, 0]
    # the standard deviation of 1, 1, 0, 0 is sqrt(1 / 3); two groups of the task
    assert advantage.tolist() == pytest.approx(
        ([sqrt(3) / 4] * 2 + [-sqrt(3) / 4] * 2) * 2, abs=1e-5
    )


@pytest.mark.slow
def test_no_group_of_a_run_has_a_zero_gradient():
    method = prs_vspo(group_size=2)
    learner = Learner(echo_recipe(method, max_steps=4).replace(method=method))
    results = [learner.step() for _ in range(4)]
    assert any(len(r.collected.sampled_groups) > len(r.collected.kept_groups) for r in results)
    for result in results:
        assert result.collected.kept_groups
        assert all(group.has_reward_variance for group in result.collected.kept_groups)
        assert (result.batch.advantage[result.batch.mask] != 0).all()

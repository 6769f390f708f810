import torch

from grupo.algo.minibatches import Updates
from grupo.core.types import Group, Response, Rollout, Task
from grupo.methods.hpt import DemonstrationsWhereFailing, hpt
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution
from grupo.testing.batches import make_batch, perturb_logp


def rollout(right, sampled=True):
    return Rollout((("?", Response((1,), (0.0,), sampled=sampled)),), right, {"correct": right})


def group(*right, shown=True):
    shown = (rollout(1.0, sampled=False),) if shown else ()
    return Group(Task("k", "?"), tuple(map(rollout, right)) + shown)


def sampled_flags(switch, *groups):
    return [[r.turns[0][1].sampled for r in g.rollouts] for g in switch(groups)]


def test_imitation_applies_to_unsolved_tasks_only():
    assert sampled_flags(DemonstrationsWhereFailing(), group(0.0, 0.0), group(1.0, 0.0)) == [
        [False],
        [True, True],
    ]


def test_gate_counts_on_policy_successes():
    assert sampled_flags(
        DemonstrationsWhereFailing(min_correct=2), group(1.0, 0.0), group(1.0, 1.0)
    ) == [
        [False],
        [True, True],
    ]


def test_unsolved_task_without_demonstration_is_dropped():
    assert sampled_flags(DemonstrationsWhereFailing(), group(0.0, 0.0, shown=False)) == []


def test_filter_declares_the_reward_term_that_it_reads():
    filter = DemonstrationsWhereFailing(reward_term="passed")
    assert filter.requires.reward_terms == {"passed"}


def test_each_loss_averages_over_its_own_rollouts():
    method = hpt()
    sampled = {"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]}
    batch = make_batch([0, 0, 1], reward=[1.0, 0.0, 1.0], length=[1, 1, 2], signals=sampled)
    batch = batch.with_advantage(method.advantage)
    pi = perturb_logp(batch, [[0.0, 0.0]] * 3)
    gradient = torch.autograd.grad(
        (method.aggregation(batch) * method.loss(pi, batch)).sum(), pi.logp
    )[0]
    assert gradient.tolist() == [[-0.25, 0.0], [0.25, 0.0], [-0.5, -0.5]]


def test_defaults_match_release():
    assert hpt().sampler == WithExpertSolution(GroupSampler(8))
    assert hpt().filter == DemonstrationsWhereFailing(min_correct=1)
    assert hpt().requires.all_signals == {"sampled"}


def test_step_has_2_minibatches():
    assert hpt().updates == Updates(minibatches=2)

import pytest
import torch

from grupo.core.types import Action, Group, Rollout, Task
from grupo.methods.hpt import DemonstrationsWhereFailing, hpt
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution
from grupo.testing.batches import make_batch, perturb_logp
from tests.helpers.recorded_batches import EXPERT, flat, learned, six


def rollout(right, sampled=True):
    return Rollout((("?", Action((1,), (0.0,), sampled=sampled)),), right, {"correct": right})


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
    assert hpt().required_signals == {"sampled"}


def test_matches_reference_implementation():
    # TsinghuaC3I/Unify-Post-Training @ ae332f5, hpt/verl/verl/mix_src/mix_actor.py,
    # update_policy, its lines for sft, with token means and the clip; inputs as below
    batch = six(advantage=[1.2, -0.7, -0.5, 0.6, 0.9, -1.5], signals=EXPERT)
    method = hpt()
    loss, gradient = learned(method, batch)
    assert loss == pytest.approx(1.46435, rel=1e-5)
    rows = [
        [-0.1666667, -0.1666667, -0.1666667],
        [0.149803, 0.1004159],
        [0.0],
        [0.0, 0.0],
        [-0.1666667, -0.1666667, -0.1666667],
        [0.3374647],
    ]
    assert gradient == pytest.approx(flat(rows), rel=1e-5, abs=1e-9)

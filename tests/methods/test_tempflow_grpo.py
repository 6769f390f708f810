"""TempFlow-GRPO: steps of noise 0.3, 0.2 and 0.1, and paths with one stochastic step."""

import asyncio
from math import exp, sqrt
from statistics import correlation

import pytest
import torch

from grupo.algo.advantages import ByRewardTerm, Center, ClampAdvantage, GroupedBy, ScaleByStd, chain
from grupo.algo.losses import Clip, ReverseKL
from grupo.core.types import Task
from grupo.methods.flow_grpo import flow_grpo
from grupo.methods.tempflow_grpo import ScaleByNoise, tempflow_grpo
from grupo.rollouts.samplers import SingleStepBranching
from grupo.testing.batches import make_batch, perturb_logp
from grupo.training.update.collate import collate
from tests.helpers.number_policy import Walk, Weighed, steps

MATTERS = (1.0, 0.8, 0.5, 0.0)


def sampled_batch(method):
    """A group of sampled paths and its batch with advantages."""
    group = asyncio.run(method.sampler(Task("t", "go"), Weighed(MATTERS), Walk(len(MATTERS), 5)))
    batch = collate([group], lambda rows: {})
    batch = batch.with_signals({"step/std": torch.ones_like(batch.old_logp)})
    return group, batch.with_advantage(method.advantage)


def test_advantages_follow_noise_with_mean_weight_one():
    batch = make_batch([0, 0, 0], signals={"step/std": [[0.3], [0.2], [0.1]]})
    A = ScaleByNoise()(torch.tensor([2.0, -2.0, 4.0]), batch)
    assert A.flatten().tolist() == pytest.approx([1.5 * 2, 1.0 * -2, 0.5 * 4])


def test_noise_weights_are_normalized_within_group():
    batch = make_batch([0, 0, 1], signals={"step/std": [[0.3], [0.1], [0.7]]})
    assert ScaleByNoise()(torch.ones(3), batch).flatten().tolist() == pytest.approx([1.5, 0.5, 1])
    silent = make_batch([0], signals={"step/std": [[0.0]]})
    assert ScaleByNoise()(torch.ones(1), silent).tolist() == [[0.0]]


def test_loss_and_gradient_of_two_branch_points():
    method = tempflow_grpo(clip_eps=1e-4, kl_coef=0.04)
    marks = {"step/std": [[0.3], [0.3], [0.1], [0.1]]}
    parts = {"branch_step": [0.0, 0.0, 2.0, 2.0]}
    batch = make_batch(
        [0] * 4, [1.0, 0.0, 5.0, 5.0], reward_terms=parts, signals=marks
    ).with_advantage(method.advantage)
    pi = perturb_logp(batch, [[2e-4], [2e-4], [2e-4], [2e-4]])
    pi["reverse_kl@ref"] = torch.full((4, 1), 0.5).double().requires_grad_()
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    slopes = torch.autograd.grad(loss, [pi.logp, pi["reverse_kl@ref"]])
    A = 0.5 / (sqrt(0.5) + 1e-6)  # at the second place both have equal rewards
    # noise .3 and .1, mean .2: weights 1.5 / 4 and .5 / 4; the first is clipped
    surrogate = 1.5 / 4 * (-1.0001 * A + exp(2e-4) * A)
    assert loss.item() == pytest.approx(surrogate + 0.04 * 0.5)
    expected = [0.0, 1.5 / 4 * exp(2e-4) * A, 0.0, 0.0]
    assert slopes[0].flatten().tolist() == pytest.approx(expected)
    # the KL of every branch has the same weight, 0.04 / 4
    assert slopes[1].flatten().tolist() == pytest.approx([0.01] * 4)


def test_only_stochastic_step_of_each_rollout_is_trained():
    group, batch = sampled_batch(tempflow_grpo(branches_per_step=8, kl_coef=0.0))
    assert batch.mask.sum(1).tolist() == [1] * 32
    assert batch.mask.nonzero()[:, 1].tolist() == [k for k in range(4) for _ in range(8)]
    assert all(sum(x != 0 for x in steps(r)) == 1 for r in group.rollouts)


def test_advantage_follows_branch_step_where_flow_grpo_follows_total():
    group, batch = sampled_batch(tempflow_grpo(branches_per_step=8, kl_coef=0.0))
    rollouts, A = group.rollouts, batch.advantage[batch.mask].tolist()
    flow_group, flow_batch = sampled_batch(flow_grpo(group_size=32, kl_coef=0.0))
    for place, matters in enumerate(MATTERS[:3]):
        branch = slice(8 * place, 8 * place + 8)
        did = [matters * steps(r)[place] for r in rollouts[branch]]
        assert correlation(did, A[branch]) == pytest.approx(1.0)
        did = [matters * steps(r)[place] for r in flow_group.rollouts]
        assert correlation(did, flow_batch.advantage[:, place].tolist()) < 0.9


def test_step_without_effect_has_zero_advantage():
    _, batch = sampled_batch(tempflow_grpo(branches_per_step=8, kl_coef=0.0))
    assert batch.advantage[24:].tolist() == [[0.0] * 4] * 8


def test_default_hyperparameters():
    method = tempflow_grpo()
    assert method.sampler == SingleStepBranching(6, ())
    within = chain(Center(), ScaleByStd(), ClampAdvantage(-5.0, 5.0))
    per_step = GroupedBy(within, ByRewardTerm("branch_step"))
    assert method.advantage == chain(per_step, ScaleByNoise())
    assert method.loss == Clip(1e-4, 1e-4) + 0.004 * ReverseKL()
    assert method.requires.all_signals == {"reverse_kl@ref", "step/std"}
    assert tempflow_grpo(kl_coef=0.0).loss == Clip(1e-4, 1e-4)

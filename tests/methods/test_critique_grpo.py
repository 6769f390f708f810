"""Critique-GRPO: seven incorrect first answers and a correct refinement."""

from math import exp, log

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.methods.critique_grpo import critique_grpo
from grupo.rollouts.samplers import GroupSampler, with_critique
from grupo.testing.batches import make_batch, perturb_logp

MOVED = {"off_context": [[1.0], *[[0.0]] * 7]}


def group(**more):
    method = critique_grpo(max_length=4, **more)
    rewards = [1.0, *[0.0] * 7]
    return method, make_batch([0] * 8, rewards, logp=-1.0, signals=MOVED).with_advantage(
        method.advantage
    )


def gradient(method, batch, logp):
    pi = perturb_logp(batch, [[x + 1.0] for x in logp])
    pi["entropy"] = torch.full((8, 1), 0.5, dtype=torch.float64, requires_grad=True)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return torch.autograd.grad(loss, [pi.logp, pi["entropy"]])


def test_advantages_are_centred_over_first_and_refined_answers():
    assert group()[1].advantage[:, 0].tolist() == pytest.approx([0.875, *[-0.125] * 7])


@pytest.mark.parametrize(("p", "factor"), [(0.01, 0.0826), (0.1, 0.25), (0.9, 0.09)])
def test_rare_tokens_of_the_refinement_have_larger_gradients(p, factor):
    method, batch = group()
    slope, _ = gradient(method, batch, [log(p), *[-1.0] * 7])
    exact = 0.1 * p / (p + 0.1) ** 2
    assert exact == pytest.approx(factor, rel=1e-3)
    assert slope[0, 0].item() == pytest.approx(-0.875 * exact / (8 * 4))  # over rollouts and length


def test_first_answers_use_the_ratio_without_clip():
    method, batch = group()
    slope, entropy = gradient(method, batch, [-1.0, 1.0, -3.0, *[-1.0] * 5])  # ratios e^2, e^-2, 1
    own = [0.125 * exp(2) / 32, 0.125 * exp(-2) / 32, 0.125 / 32]
    assert slope[1:4, 0].tolist() == pytest.approx(own)
    assert entropy[:, 0].tolist() == pytest.approx([-0.001 / 32] * 8)


def test_defaults():
    method = critique_grpo(max_length=4)
    assert method.sampler == with_critique(GroupSampler(8))
    assert method.requires.all_signals == {"off_context", "entropy"}


def test_update_plan_is_the_released_one():
    assert critique_grpo(max_length=64).updates == Updates(minibatches=2)

from math import exp

import pytest
import torch

from grupo.algo.losses import PolicyShaping
from grupo.algo.minibatches import Updates
from grupo.methods.luffy import luffy
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution
from grupo.testing.batches import make_batch, perturb_logp

SAMPLED = {"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]}


def test_expert_rollout_joins_group_with_shaped_ratio():
    method = luffy(max_length=4)
    batch = make_batch(
        [0, 0, 0], reward=[0.0, 0.0, 1.0], length=[1, 1, 2], logp=0.0, signals=SAMPLED
    ).with_advantage(method.advantage)
    assert batch.advantage[:, 0].tolist() == pytest.approx([-1 / 3, -1 / 3, 2 / 3])
    pi = perturb_logp(batch, [[0.0, 0.0], [0.0, 0.0], [-1.0, -3.0]])
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    f = [p / (p + 0.1) for p in (exp(-1), exp(-3))]
    assert loss.item() == pytest.approx((1 / 3 + 1 / 3 - 2 / 3 * sum(f)) / 12)
    gradient = torch.autograd.grad(loss, pi.logp)[0]
    slopes = [0.1 * p / (p + 0.1) ** 2 for p in (exp(-1), exp(-3))]
    assert gradient[2].tolist() == pytest.approx([-2 / 3 * s / 12 for s in slopes])
    assert gradient[:2, 0].tolist() == pytest.approx([1 / 36, 1 / 36])


def test_shaping_increases_gradient_of_unlikely_tokens():
    batch = make_batch([0, 0, 0], advantage=[1.0, 1.0, 1.0], logp=0.0)
    pi = perturb_logp(batch, [[-0.01], [-2.302585092994046], [-9.0]])  # p = 0.99, 0.1, 0.0001
    (slope,) = torch.autograd.grad(PolicyShaping()(pi, batch).sum(), pi.logp)
    assert slope.argmin() == 1  # steepest where p = shape: -1/4
    assert slope[1, 0].item() == pytest.approx(-0.25)


def test_on_policy_tokens_use_clipped_ratio():
    batch = make_batch([0], advantage=[1.0], signals={"sampled": [[1.0]]})
    assert luffy(max_length=1).loss(perturb_logp(batch, [[0.5]]), batch).item() == pytest.approx(
        -1.2
    )


def test_default_group_has_seven_own_and_one_expert_rollout():
    assert luffy(max_length=8).sampler == WithExpertSolution(GroupSampler(7))
    assert luffy(max_length=8).requires.all_signals == {"sampled"}


def test_step_has_2_minibatches():
    assert luffy(max_length=64).updates == Updates(minibatches=2)

from math import sqrt

import pytest
import torch

from grupo.methods.grao import AlignmentAdvantage, grao
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution
from grupo.testing.batches import make_batch, perturb_logp

SIGMA = sqrt(2 / 3)  # of 1, 2 and 3 around 2
SAMPLED = {"sampled": [[1.0], [1.0], [0.0]]}


def loss_and_gradient(reward, imitate=0.5, push=0.5):
    method = grao(sft_coef=imitate, alignment_coef=push)
    batch = make_batch([0, 0, 0], reward=reward, logp=0.0, signals=SAMPLED).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[-2.0], [-1.0], [-1.5]])  # l(o_1), l(o_2), l(y)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0].flatten().tolist()


def test_objective_is_sum_of_three_terms():
    loss, gradient = loss_and_gradient([1.0, 2.0, 3.0])
    A, y = [-1 / SIGMA, 0.0], 1 / SIGMA
    terms = [a * o + 0.5 * y * -1.5 + 0.5 * a * (o + 1.5) for a, o in zip(A, [-2, -1], strict=True)]
    assert sum(terms) / 2 == pytest.approx(0.45928, abs=1e-5)
    assert loss == pytest.approx(-sum(terms) / 2, rel=1e-5)
    # d/dl: own (1 + push) A_i / G; the reference's imitate A_y - push mean(A)
    expected = [1.5 / SIGMA / 2, 0.0, -(0.5 / SIGMA + 0.5 * 0.5 / SIGMA)]
    assert gradient == pytest.approx(expected, rel=1e-5, abs=1e-9)


def test_reference_answer_below_policy_mean_is_pushed_down():
    _, gradient = loss_and_gradient([3.0, 2.0, 1.0])
    assert gradient[2] > 0  # of the loss: its likelihood is to fall


def test_advantage_is_zero_when_rewards_are_equal():
    assert loss_and_gradient([1.0, 1.0, 1.0])[1] == [0.0, 0.0, 0.0]


def test_without_reference_answer_reduces_to_policy_gradient():
    batch = make_batch([0, 0], signals={"sampled": [[1.0], [1.0]]})
    advantage = AlignmentAdvantage(0.5, 0.5, eps=0.0)(torch.tensor([1.0, 0.0]).double(), batch)
    assert advantage.tolist() == [1.5, -1.5]


def test_default_hyperparameters():
    assert grao().sampler == WithExpertSolution(GroupSampler(8))
    assert grao().requires.all_signals == {"sampled"}
    assert grao().advantage == AlignmentAdvantage(0.5, 0.6)

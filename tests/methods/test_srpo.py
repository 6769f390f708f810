from math import exp, log

import pytest
import torch

from grupo.batch import Signals
from grupo.distributions import jsd
from grupo.methods.srpo import srpo
from grupo.references import Follow
from grupo.testing import batch_of

D = (0.5 * log(0.5 / 0.7) + 0.5 * log(0.5 / 0.3) + 0.9 * log(0.9 / 0.7) + 0.1 * log(0.1 / 0.3)) / 2


def learned(right, moves, entropy=(0.0, 0.0, 0.0), strength=1.0):
    method = srpo(strength=strength)
    seen = {"entropy@hinted": [[h] for h in entropy]}
    batch = batch_of([0] * 3, reward=right, parts={"correct": right}, seen=seen)
    batch = batch.credited(method.credit)
    logp = (batch.old_logp + torch.tensor(moves).double()[:, None]).requires_grad_()
    told = torch.full((3, 1), D, dtype=torch.float64, requires_grad=True)
    pi = Signals({"logp": logp, "jsd@hinted": told})
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    slopes = torch.autograd.grad(loss, [logp, told], allow_unused=True, materialize_grads=True)
    return loss.item(), *(slope.flatten().tolist() for slope in slopes)


def test_the_divergence_of_an_even_policy_from_a_sure_teacher():
    half, sure = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    assert jsd(half, sure).item() == pytest.approx(D, abs=1e-6)
    assert pytest.approx(0.10175, abs=1e-5) == D


def test_right_rollouts_go_to_grpo_and_wrong_ones_to_the_teacher():
    loss, by_logp, by_told = learned([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    A = (2 / 3) / ((1 / 3) ** 0.5 + 1e-6)  # mean 1/3, variance (4 + 1 + 1) / 9 / 2
    assert loss == pytest.approx(-A + D)
    assert by_logp == pytest.approx([-A, 0.0, 0.0])
    assert by_told == pytest.approx([0.0, 0.5, 0.5])


def test_without_a_right_sibling_nothing_is_learned():
    loss, by_logp, by_told = learned([0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert (loss, by_logp, by_told) == (0.0, [0.0] * 3, [0.0] * 3)


def test_a_sure_teacher_counts_for_more():
    _, _, by_told = learned([1.0, 0.0, 0.0], [0.0, 0.0, 0.0], entropy=(9.0, 0.0, 1.0))
    assert by_told == pytest.approx([0.0, 1 / (1 + exp(-1)), exp(-1) / (1 + exp(-1))])


def test_the_ratio_is_a_constant_of_at_most_two():
    _, by_logp, by_told = learned([1.0, 0.0, 0.0], [0.0, 0.5, 1.0], strength=3.0)
    assert by_told == pytest.approx([0.0, 3 * exp(0.5) / 2, 3 * 2 / 2])
    assert by_logp[1:] == [0.0, 0.0]


def test_the_teacher_is_an_average_of_the_policy():
    assert srpo().reference == Follow(0.05)
    assert srpo().needs == {"jsd@hinted", "entropy@hinted"}
    assert srpo().measured == {"entropy@hinted"}

from math import sqrt

import pytest
import torch

from grupo.algo.aggregation import group_mean
from grupo.methods.reg_grpo import AdvantageRegression, reg_grpo
from grupo.testing.batches import make_batch, perturb_logp


def loss_and_gradient(moves, advantage):
    batch = make_batch([0] * len(moves), length=[len(m) for m in moves], advantage=advantage)
    pi = perturb_logp(batch, moves)
    loss = (group_mean(batch) * AdvantageRegression()(pi, batch)).sum()
    return loss.item(), torch.autograd.grad(loss, pi.logp)[0].flatten().tolist()


def test_loss_regresses_advantage_on_standardized_log_ratios():
    assert loss_and_gradient([[0.2], [-0.2]], [1.0, -1.0])[0] == pytest.approx(0.0)
    assert loss_and_gradient([[-0.2], [0.2]], [1.0, -1.0])[0] == pytest.approx(4.0)


def test_loss_and_gradient_of_three_answers():
    # rho = 0, 0, 3: centred -1, -1, 2, std sqrt 2; A = 1, 0, -1
    loss, gradient = loss_and_gradient([[0.0], [0.0], [3.0]], [1.0, 0.0, -1.0])
    hat = [-1 / sqrt(2), -1 / sqrt(2), sqrt(2)]
    miss = [1.0 - hat[0], 0.0 - hat[1], -1.0 - hat[2]]
    assert loss == pytest.approx(sum(m**2 for m in miss) / 3)
    # dhat_i / drho_j = (d_ij - 1/3 - hat_i hat_j / 3) / std
    expected = [
        sum(-2 / 3 * miss[i] * ((i == j) - 1 / 3 - hat[i] * hat[j] / 3) / sqrt(2) for i in range(3))
        for j in range(3)
    ]
    assert gradient == pytest.approx(expected)


def test_first_update_is_reinforce():
    loss, gradient = loss_and_gradient([[0.0, 0.0], [0.0, 0.0]], [1.0, -1.0])
    assert loss == pytest.approx(1.0)
    assert gradient == pytest.approx([-1.0, -1.0, 1.0, 1.0])  # -2 A / G


def test_both_deviations_use_population_std():
    batch = make_batch([0, 0], [1.0, 0.0])
    assert reg_grpo().advantage(batch.reward, batch).tolist() == pytest.approx(
        [1.0, -1.0], abs=1e-5
    )
    assert reg_grpo().requires.all_signals == {"logp@ref"}

"""T-PPO: one truncated and one finished answer with equal values."""

import pytest
import torch

from grupo.core.aux_heads import LinearHead
from grupo.core.batch import Signals
from grupo.methods.t_ppo import FinishedValueLoss, t_ppo
from grupo.testing.batches import make_batch

V = [0.2, 0.4, 0.5]


def answers():
    return make_batch(
        group=[0, 0],
        reward=[1.0, 7.0],
        length=[3, 3],
        reward_terms={"cut": [0.0, 1.0]},
        signals={"value": [V, V]},
    )


def test_finished_answer_has_gae():
    A = answers().with_advantage(t_ppo(gae_lambda=0.95).advantage).advantage[0]
    assert A.tolist() == pytest.approx([0.2 + 0.95 * (0.1 + 0.95 * 0.5), 0.1 + 0.475, 0.5])


def test_truncated_answer_bootstraps_value_and_ignores_reward():
    A = answers().with_advantage(t_ppo(gae_lambda=0.95).advantage).advantage[1]
    assert A.tolist() == pytest.approx([0.2 + 0.95 * 0.1, 0.1, 0.0])  # d = 0.2, 0.1, 0


def test_value_loss_covers_finished_answers_only():
    batch = answers().with_advantage(t_ppo().advantage)
    pi = Signals(
        logp=batch.old_logp,
        value=torch.tensor([V, V], dtype=torch.float64, requires_grad=True),
    )
    loss = FinishedValueLoss()(pi, batch)
    assert loss.tolist() == [pytest.approx([0.64, 0.36, 0.25]), [0.0] * 3]
    (slope,) = torch.autograd.grad(loss.sum(), pi["value"])
    assert slope.tolist() == [pytest.approx([-1.6, -1.2, -1.0]), [0.0] * 3]


def test_default_hyperparameters():
    assert t_ppo().requires.heads == (LinearHead("value"),)

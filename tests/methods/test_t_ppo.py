"""T-PPO: one answer cut, one finished, the same values."""

import pytest
import torch

from grupo.core.aux_heads import Head
from grupo.core.batch import Signals
from grupo.methods.t_ppo import FitFinished, t_ppo
from grupo.testing.batches import batch_of

V = [0.2, 0.4, 0.5]


def answers():
    return batch_of(
        group=[0, 0],
        reward=[1.0, 7.0],
        length=[3, 3],
        parts={"cut": [0.0, 1.0]},
        seen={"value": [V, V]},
    )


def test_a_finished_answer_has_plain_gae():
    A = answers().credited(t_ppo(lam=0.95).credit).advantage[0]
    assert A.tolist() == pytest.approx([0.2 + 0.95 * (0.1 + 0.95 * 0.5), 0.1 + 0.475, 0.5])


def test_a_cut_answer_goes_on_as_it_was_worth_and_its_reward_is_not_read():
    A = answers().credited(t_ppo(lam=0.95).credit).advantage[1]
    assert A.tolist() == pytest.approx([0.2 + 0.95 * 0.1, 0.1, 0.0])  # d = 0.2, 0.1, 0


def test_the_value_learns_from_finished_answers():
    batch = answers().credited(t_ppo().credit)
    pi = Signals(
        logp=batch.old_logp,
        value=torch.tensor([V, V], dtype=torch.float64, requires_grad=True),
    )
    loss = FitFinished()(pi, batch)
    assert loss.tolist() == [pytest.approx([0.64, 0.36, 0.25]), [0.0] * 3]
    (slope,) = torch.autograd.grad(loss.sum(), pi["value"])
    assert slope.tolist() == [pytest.approx([-1.6, -1.2, -1.0]), [0.0] * 3]


def test_the_defaults():
    assert t_ppo() == t_ppo(group=8, lam=0.95, low=0.2, high=0.28)
    assert t_ppo().helpers == (Head("value"),)

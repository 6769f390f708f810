"""VC-PPO: separate lambdas of the policy and the value head."""

import pytest
import torch

from grupo.algo.losses.critic import OutcomeValueLoss
from grupo.core.aux_heads import LinearHead
from grupo.core.batch import Signals
from grupo.methods.vc_ppo import vc_ppo
from grupo.testing.batches import make_batch


def answers():
    return make_batch(
        group=[0, 1], reward=[1.0, -1.0], length=[2, 1], signals={"value": [[0.2, 0.4], [0.5, 9.0]]}
    )


def test_policy_has_separate_lambda():
    A = answers().with_advantage(vc_ppo(gae_lambda=0.5).advantage).advantage
    # d = 0.2, 0.6; -1.5
    assert A[0].tolist() == pytest.approx([0.2 + 0.3, 0.6])
    assert A[1].tolist() == pytest.approx([-1.5, 0.0])


def test_value_target_is_outcome_at_every_token():
    batch = answers().with_advantage(vc_ppo().advantage)
    pi = Signals(
        logp=batch.old_logp,
        value=torch.tensor([[0.2, 0.4], [0.5, 9.0]], dtype=torch.float64, requires_grad=True),
    )
    loss = OutcomeValueLoss()(pi, batch)
    assert loss[batch.mask].tolist() == pytest.approx([0.8**2, 0.6**2, 1.5**2])
    (slope,) = torch.autograd.grad((loss * batch.mask).sum(), pi["value"])
    assert slope.flatten().tolist() == pytest.approx([-1.6, -1.2, 3.0, 0.0])


def test_defaults_match_paper():
    assert vc_ppo().requires.heads == (LinearHead("value"),)

import pytest
import torch

from grupo.algo.advantages import chain
from grupo.algo.advantages.kl_in_reward import KLPerAction
from grupo.algo.losses import CorrectedKL, Reinforce
from grupo.methods.k2_kl import k2_kl
from grupo.testing.batches import make_batch, perturb_logp

SIGNALS = {"logp@ref": [[-1.5, -3.0], [-0.8, 9.0]]}


def gradient(method, moves):
    batch = make_batch([0, 0], reward=[1.0, 0.0], length=[2, 1], signals=SIGNALS).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, moves)
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    return torch.autograd.grad(loss, pi.logp)[0].flatten().tolist()


def test_loss_gradient():
    # A = 1/2 and -1/2; d = log pi - log ref; three tokens
    expected = [-0.5 + 0.04 * 0.5, -0.5 + 0.04 * 2.0, 0.5 + 0.04 * -0.2, 0.0]
    assert gradient(k2_kl(), [[0.0, 0.0]] * 2) == pytest.approx([g / 3 for g in expected])


def test_k2_as_loss_equals_k1_in_reward_on_policy():
    method = k2_kl(kl_coef=0.3)
    kl_in_reward = method.replace(
        advantage=chain(method.advantage, KLPerAction(0.3)), loss=Reinforce()
    )
    on_policy = [[0.0, 0.0]] * 2
    assert gradient(method, on_policy) == pytest.approx(gradient(kl_in_reward, on_policy))


def test_off_policy_correction_multiplies_by_ratio():
    method = k2_kl(kl_coef=1.0)
    moves = [[0.3, -0.2], [0.1, 0.0]]
    corrected = gradient(method.replace(loss=CorrectedKL()), moves)
    r = torch.tensor(moves).double().exp().flatten()
    d = torch.tensor([0.8, 1.8, -0.1, 0.0]).double()
    assert corrected == pytest.approx((r * d / 3).tolist())


def test_default_hyperparameters():
    assert k2_kl().requires.all_signals == {"logp@ref"}

import pytest
import torch

from grupo.methods.g_opd import ExtrapolatedDistillation, g_opd
from grupo.methods.opd import opd
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def batch(base=-1.5, reward=0.0):
    signals = {"logp@teacher": [[-0.5, 9.0]], "logp@ref": [[base, 9.0]]}
    wide = make_batch(
        [0, 0], reward=[reward, 0.0], length=[1, 2], signals={k: v * 2 for k, v in signals.items()}
    )
    return wide.select_rows(torch.tensor([0]))  # s = -1, T = -0.5, and a masked column of nines


def test_reward_is_teacher_log_ratio_over_base():
    assert ExtrapolatedDistillation(1.25)(torch.zeros(2), batch()).tolist() == [
        [1.25 * 1.0 - 0.5, 0.0]
    ]


def test_scale_one_cancels_base_and_reduces_to_distillation():
    estimator = g_opd(teacher_scale=1.0).advantage
    for base in (-1.5, -4.0):
        assert estimator(torch.zeros(2), batch(base))[0, 0].item() == pytest.approx(0.5)
    expected = opd().advantage(torch.zeros(2), batch())
    assert estimator(torch.zeros(2), batch()).tolist() == expected.tolist()


def test_environment_reward_is_ignored():
    estimator = g_opd().advantage
    rich, poor = batch(reward=5.0), batch(reward=0.0)
    assert estimator(rich.reward, rich).tolist() == estimator(poor.reward, poor).tolist()


def test_gradient_equals_advantage():
    learned = batch().with_advantage(g_opd().advantage)
    pi = perturb_logp(learned, [[0.0, 0.0]])
    (gradient,) = torch.autograd.grad(
        (g_opd().aggregation(learned) * g_opd().loss(pi, learned)).sum(), pi.logp
    )
    assert gradient.tolist() == [[-0.75, 0.0]]


def test_defaults_match_release():
    assert g_opd().sampler == GroupSampler(1)
    assert g_opd().requires.all_signals == {"logp@teacher", "logp@ref"}

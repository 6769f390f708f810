from dataclasses import replace

import pytest
import torch

from grupo.methods.g_opd import ExtrapolatedDistillation, g_opd
from grupo.methods.opd import opd
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp
from tests.helpers.recorded_batches import OLD


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
    assert g_opd().required_signals == {"logp@teacher", "logp@ref"}


def test_matches_reference_implementation():
    # RUCBM/G-OPD @ 37371a4, verl/verl/workers/actor/dp_actor.py, update_policy, its lines for one
    # teacher with lambda 1.25; inputs as below
    old = OLD
    signals = {
        "logp@teacher": [
            [-0.6, -0.9, -1.5],
            [-1.0, -0.4, 9.0],
            [-0.2, 9.0, 9.0],
            [-0.5, -1.1, 9.0],
            [-0.7, -1.3, -0.3],
            [-2.0, 9.0, 9.0],
        ],
        "logp@ref": [
            [-1.2, -0.7, -1.8],
            [-0.9, -0.8, 9.0],
            [-1.1, 9.0, 9.0],
            [-0.4, -1.9, 9.0],
            [-1.3, -1.0, -0.6],
            [-1.6, 9.0, 9.0],
        ],
    }
    wide = make_batch([0, 0, 0, 1, 1, 1], length=[3, 2, 1, 2, 3, 1], signals=signals)
    wide = replace(wide, old_logp=torch.tensor(old).double())
    advantage = wide.with_advantage(g_opd().advantage).advantage[wide.mask]
    assert advantage.tolist() == pytest.approx(
        [0.55, -0.45, 0.575, -0.325, 0.9, 0.925, -0.225, 0.7, 0.55, -0.575, 0.175, -0.7], rel=1e-5
    )

"""E-GRPO: hand-computed entity rewards of failed rollouts."""

import pytest
import torch

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.methods.e_grpo import EntityReward, IsNotOverlong, e_grpo
from grupo.testing.batches import make_batch, perturb_logp


def search_batch(correct, entities, format=None, overlong=None, length=None):
    n = len(correct)
    parts = {
        "correct": correct,
        "entities": entities,
        "format": format or [1.0] * n,
        "overlong": overlong or [0.0] * n,
    }
    return make_batch(group=[0] * n, length=length, reward_terms=parts)


def rewards(*args, **more):
    batch = search_batch(*args, **more)
    return EntityReward(0.3)(batch.reward, batch).tolist()


def test_failed_rollouts_are_rewarded_by_relative_entity_recall():
    r = rewards([1.0, 0.0, 0.0, 0.0], [1.0, 0.5, 0.25, 0.75], format=[1.0, 1.0, 1.0, 0.0])
    assert r == pytest.approx([1.0, 0.15, 0.075, 0.0])


def test_all_failed_group_has_nonzero_advantage():
    batch = search_batch([0.0] * 4, [0.5, 0.25, 0.0, 0.0])
    assert EntityReward(0.3)(batch.reward, batch).tolist() == pytest.approx([0.3, 0.15, 0.0, 0.0])
    advantage = batch.with_advantage(e_grpo().advantage).advantage[:, 0].tolist()
    std = ((0.1875**2 + 0.0375**2 + 2 * 0.1125**2) / 3) ** 0.5  # of 0.3, 0.15, 0, 0, mean 0.1125
    expected = [d / std for d in (0.1875, 0.0375, -0.1125, -0.1125)]
    assert advantage == pytest.approx(expected, rel=1e-4)


def test_reward_is_zero_when_no_entity_is_found():
    assert rewards([0.0, 0.0], [0.0, 0.0]) == [0.0, 0.0]


def test_overlong_rollouts_count_in_baseline_but_are_masked():
    batch = search_batch([1.0, 0.0, 1.0], [1.0] * 3, overlong=[0.0, 0.0, 1.0]).with_advantage(
        e_grpo().advantage
    )
    mean = (1 + 0.3 + 0) / 3
    std = (((1 - mean) ** 2 + (0.3 - mean) ** 2 + mean**2) / 2) ** 0.5
    assert batch.advantage[:, 0].tolist() == pytest.approx(
        [(1 - mean) / std, (0.3 - mean) / std, 0.0], rel=1e-4
    )
    pi = perturb_logp(batch, [[0.1]] * 3)
    (gradient,) = torch.autograd.grad(e_grpo().loss(pi, batch).sum(), pi.logp)
    assert gradient[2, 0] == 0 != gradient[0, 0]


def test_weight_zero_reduces_to_grpo():
    batch = search_batch([1.0, 0.0], [1.0, 0.5])
    advantage = batch.with_advantage(e_grpo(entity_coef=0.0).advantage).advantage[:, 0].tolist()
    assert advantage == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-5)


def test_default_hyperparameters():
    method = e_grpo()
    assert method.loss == Clip(0.2, 0.28)
    assert method.aggregation is token_mean


def test_mask_declares_the_reward_term_that_it_reads():
    assert IsNotOverlong().requires.reward_terms == {"overlong"}

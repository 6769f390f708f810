from math import exp

import pytest
import torch

from grupo.algo.advantages import SignAdvantage
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.core.types import Group, Rollout, Task
from grupo.methods.nsr import nsr
from grupo.testing.batches import make_batch, perturb_logp


def test_only_wrong_answers_have_advantage():
    batch = make_batch(group=[0, 0, 1, 1], reward=[1.0, 0.0, 0.0, 0.0])
    # what github.com/TianHongZXY/RLVR-Decomposed 84be7a2, compute_psr_nsr_outcome_advantage,
    # gives with advantage "negative"
    assert nsr().advantage(batch.reward, batch).tolist() == [0.0, -1.0, -1.0, -1.0]


def test_group_without_failure_has_zero_advantage():
    batch = make_batch(group=[0, 0], reward=[1.0, 1.0])
    assert nsr().advantage(batch.reward, batch).tolist() == [0.0, 0.0]


def test_correct_rollouts_are_dropped_before_the_update():
    # RLVR-Decomposed 84be7a2, ray_trainer.py, keeps the incorrect rows before compute_advantage
    def group(*rewards):
        return Group(Task("t", ""), tuple(Rollout(reward=r) for r in rewards))

    kept = nsr().filter([group(1.0, 0.0, 0.0), group(1.0, 1.0), group(0.0)])
    assert [g.rewards for g in kept] == [(0.0, 0.0), (0.0,)]


def test_mean_is_over_tokens_of_wrong_answers():
    batch = make_batch(group=[0, 0], reward=[0.0, 0.0], length=[2, 1]).with_advantage(
        nsr().advantage
    )
    pi = perturb_logp(batch, [[0.1, 0.1], [0.1, 0.0]])
    loss = (nsr().aggregation(batch) * nsr().loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(exp(0.1))
    (gradient,) = torch.autograd.grad(loss, pi.logp)
    assert gradient.flatten().tolist() == pytest.approx([exp(0.1) / 3] * 3 + [0])


def test_default_hyperparameters():
    assert (nsr().advantage, nsr().loss) == (SignAdvantage(0.0), Clip(0.2, 0.2))
    assert nsr().aggregation is token_mean
    assert nsr().updates == Updates(minibatches=4)

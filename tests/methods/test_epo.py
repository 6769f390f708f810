"""EPO on one dialogue of two turns."""

import pytest
import torch

from grupo.algo.advantages.turn_table import rollout_turn_mean
from grupo.core.batch import Signals
from grupo.methods.epo import epo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def dialogue_batch():
    return make_batch(
        group=[0],
        length=[3],
        turn=[[0, 0, 1]],
        signals={"step/reward": [[0.0, 1.0, 0.5]]},
    )


def loss_and_gradient(method):
    batch = dialogue_batch().with_advantage(method.advantage)
    logp = torch.tensor([[-1.0, -1.0, -2.0]], dtype=torch.float64, requires_grad=True)
    loss = (method.aggregation(batch) * method.loss(Signals(logp=logp), batch)).sum()
    return loss.item(), torch.autograd.grad(loss, logp)[0][0].tolist()


def test_turns_have_equal_weight_regardless_of_length():
    loss, gradient = loss_and_gradient(epo())
    assert loss == pytest.approx(-(1.0 * (-2) / 2 + 0.5 * (-2) / 1) / 2)  # 1.0
    assert gradient == pytest.approx([-1 / 4, -1 / 4, -0.5 / 2])


def test_later_turn_scores_are_discounted_by_gamma():
    A = dialogue_batch().with_advantage(epo(gamma=0.5).advantage).advantage
    assert A.tolist() == [[1.25, 1.25, 0.5]]


def test_turn_without_score_has_zero_advantage():
    batch = make_batch(
        group=[0], length=[2], turn=[[0, 1]], signals={"step/reward": [[0.0, 1.0]]}
    ).with_advantage(epo().advantage)
    assert batch.advantage.tolist() == [[0.0, 1.0]]


def test_rollouts_have_equal_weight_regardless_of_turn_count():
    batch = make_batch(group=[0, 0], length=[3, 1], turn=[[0, 1, 1], [0, 0, 0]])
    assert rollout_turn_mean(batch).tolist() == [[0.25, 0.125, 0.125], [0.5, 0.0, 0.0]]


def test_defaults_match_release():
    assert epo().sampler == GroupSampler(1)

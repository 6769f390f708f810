"""CRRAFT: the best feasible answer of a group."""

from math import exp

import pytest
import torch

from grupo.core.batch import Signals
from grupo.methods.cgpo_crraft import cgpo_crraft
from grupo.testing.batches import make_batch

BEATS = 1 / (1 + exp(-1))


def batch_with(reward, feasible, k):
    return make_batch(
        group=[0] * len(reward),
        reward=reward,
        reward_terms={"feasible": feasible, "baseline": [1.0] * len(reward)},
        signals={"logp@ref": [[-1.0 - x] for x in k]},
    )


def credit(*args):
    return batch_with(*args).with_advantage(cgpo_crraft().advantage).advantage.flatten().tolist()


def test_best_feasible_answer_has_its_calibrated_reward():
    assert credit([2.0, 1.0, 5.0], [1.0, 1.0, 0.0], [5.0, 0.0, 0.0]) == pytest.approx([BEATS, 0, 0])


def test_answers_beyond_max_kl_count_as_infeasible():
    assert credit([2.0, 1.0], [1.0, 1.0], [12.0, 0.0]) == pytest.approx([0.0, 0.5])


def test_group_without_qualifying_answer_has_advantage_0():
    assert credit([2.0, 1.0], [0.0, 1.0], [0.0, 12.0]) == [0.0, 0.0]


def test_gradient_is_that_of_the_weighted_likelihood():
    method = cgpo_crraft()
    batch = batch_with([2.0, 1.0], [1.0, 1.0], [0.0, 0.0]).with_advantage(method.advantage)
    logp = batch.old_logp.clone().requires_grad_()
    loss = (method.aggregation(batch) * method.loss(Signals(logp=logp), batch)).sum()
    assert loss.item() == pytest.approx(BEATS / 2)
    assert torch.autograd.grad(loss, logp)[0].flatten().tolist() == pytest.approx([-BEATS / 2, 0.0])

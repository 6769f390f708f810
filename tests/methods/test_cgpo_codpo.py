"""CODPO: winner and loser, the loss, and its gradient."""

from math import exp, log

import pytest
import torch

from grupo.core.batch import Signals
from grupo.methods.cgpo_codpo import cgpo_codpo
from grupo.testing.batches import make_batch


def learn(reward, feasible, drift, beta=0.1, lam=5.0, length=None):
    """The loss of one group whose answers are `drift` nats from the reference, evenly spread."""
    length = length or [1] * len(reward)
    batch = make_batch(group=[0] * len(reward), reward=reward, length=length, logp=-0.8)
    batch = make_batch(
        group=[0] * len(reward),
        reward=reward,
        length=length,
        logp=-0.8,
        reward_terms={"feasible": feasible},
        signals={
            "logp@ref": [[-0.8 - d / n] * max(length) for d, n in zip(drift, length, strict=True)]
        },
    )
    method = cgpo_codpo(beta=beta, nll_coef=lam)
    logp = batch.old_logp.clone().requires_grad_()
    loss = (method.aggregation(batch) * method.loss(Signals(logp=logp), batch)).sum()
    return loss.item(), torch.autograd.grad(loss, logp)[0]


def test_best_feasible_is_compared_with_worst_infeasible():
    loss, gradient = learn([1.0, 3.0, 0.5, 0.2], [1.0, 0.0, 0.0, 1.0], [2.0, 9.0, 0.0, 7.0])
    assert loss == pytest.approx(log(1 + exp(-0.2)) + 5 * 0.8)  # 0.5981 + 4
    pull = 0.1 / (1 + exp(0.2))
    assert gradient.flatten().tolist() == pytest.approx([-pull - 5, 0.0, pull, 0.0])


def test_nll_is_a_mean_over_the_winners_tokens():
    loss, gradient = learn([1.0, 0.0], [1.0, 0.0], [2.0, 0.0], length=[10, 1])
    assert loss == pytest.approx(log(1 + exp(-0.2)) + 5 * 0.8)
    assert gradient[0].tolist() == pytest.approx([-0.1 / (1 + exp(0.2)) - 0.5] * 10)


def test_worst_feasible_loses_if_all_are_feasible():
    loss, _ = learn([1.0, 0.2, 0.5], [1.0, 1.0, 1.0], [2.0, 0.0, 9.0], lam=0.0)
    assert loss == pytest.approx(log(1 + exp(-0.2)))


def test_group_without_feasible_answer_has_loss_0():
    loss, gradient = learn([1.0, 0.2], [0.0, 0.0], [2.0, 0.0])
    assert loss == 0
    assert gradient.abs().max() == 0


def test_the_mean_is_over_groups_with_a_feasible_answer():
    # of three groups of 2, 1 and 1 answers the second has no feasible one
    batch = make_batch(
        group=[0, 0, 1, 2],
        length=[1, 2, 1, 1],
        reward_terms={"feasible": [0.0, 1.0, 0.0, 1.0]},
    )
    weight = cgpo_codpo().aggregation(batch)
    assert weight.tolist() == [[1 / 4, 0.0], [1 / 8, 1 / 8], [0.0, 0.0], [1 / 2, 0.0]]


def test_ties_share_their_place():
    loss, gradient = learn([1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [2.0, 4.0, 0.0], lam=0.0)
    assert loss == pytest.approx(log(1 + exp(-0.3)))
    pull = 0.1 / (1 + exp(0.3))
    assert gradient.flatten().tolist() == pytest.approx([-pull / 2, -pull / 2, pull])


def test_group_of_one_has_margin_0():
    loss, gradient = learn([1.0], [1.0], [2.0], lam=0.0)
    assert loss == pytest.approx(log(2))
    assert gradient.item() == 0

"""Guide-GRPO: the ratio of a hinted answer divides by its probability given the hint."""

from dataclasses import replace
from math import exp

import pytest
import torch

from grupo.algo import ratios
from grupo.algo.aggregation import sequence_mean
from grupo.algo.minibatches import Updates
from grupo.core.types import Group, Response, Rollout, Task
from grupo.methods.guide_grpo import guide_grpo
from grupo.rollouts.samplers import GroupSampler, with_hint
from grupo.testing.batches import Signals
from grupo.training.update.collate import collate


def answer(reward, *logp, moved=False):
    response = Response(tuple(range(len(logp))), logp, ("q",), off_context=moved)
    return Rollout((("q", response),), reward)


def batch(*rollouts):
    return collate([Group(Task("t", "q"), rollouts)], lambda rows: None)


def test_ratio_uses_plain_prompt_over_hinted_prompt():
    # two tokens: log pi(o | q) = -1 - 2 = -3, log old(o | q, g) = -0.25 - 0.75 = -1
    hinted = batch(answer(1.0, -0.25, -0.75, moved=True))
    pi = Signals(logp=torch.tensor([[-1.0, -2.0]]))
    assert ratios.product(pi, hinted)[0, 0].item() == pytest.approx(exp(-2))
    assert ratios.token(pi, hinted)[0].tolist() == pytest.approx([exp(-0.75), exp(-1.25)])


def test_hinted_rollouts_replace_the_plain_ones_of_their_group():
    # guide_rl, ray_trainer.py: the accuracy filter drops the failed plain rollouts, and each
    # n_samples hinted ones are a group of their own
    plain, wrong = Rollout(reward=0.0), Rollout(reward=0.0, source="with_hint")
    right = Rollout(reward=1.0, source="with_hint")
    groups = [
        Group(Task("hinted", ""), (plain, plain, wrong, right)),
        Group(Task("plain", ""), (plain, Rollout(reward=1.0))),
        Group(Task("unsolved", ""), (plain, plain, wrong, wrong)),
    ]
    kept = guide_grpo().filter(groups)
    assert [(g.task.key, g.rewards) for g in kept] == [
        ("hinted", (0.0, 1.0)),
        ("plain", (0.0, 1.0)),
    ]


def test_hinted_ratio_is_shaped_by_its_quantile_and_not_clipped():
    hinted = batch(
        answer(0.0, -1.0, -1.0, moved=True), answer(1.0, -0.25, -0.75, moved=True)
    ).with_advantage(guide_grpo().advantage)
    A = 0.5 / (0.5**0.5 + 1e-6)  # of 0 and 1: mean 1/2, std sqrt(1/2)
    pi = Signals(logp=torch.tensor([[-1.0, -1.0], [-1.0, -2.0]], requires_grad=True))
    low, high = exp(-1.25), exp(-0.75)  # the ratios of the second answer
    q = 0.1 * low + 0.9 * high
    loss = guide_grpo().loss(pi, hinted)
    assert loss[1].tolist() == pytest.approx([-A * high / (high + q), -A * low / (low + q)])
    (slope,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert slope[1].tolist() == pytest.approx(
        [-A * high * q / (high + q) ** 2, -A * low * q / (low + q) ** 2]
    )
    # ratios and quantile of the first are 1, so r / (r + q) has slope 1/4
    assert slope[0].tolist() == pytest.approx([A / 4, A / 4])


def test_a_row_without_actions_has_a_finite_loss_and_no_gradient():
    hinted = batch(answer(0.0, -1.0, moved=True), answer(1.0, -1.0, moved=True))
    hinted = hinted.with_advantage(guide_grpo().advantage)
    hinted = replace(hinted, mask=torch.tensor([[True], [False]]))
    pi = Signals(logp=torch.tensor([[-1.0], [-1.0]], requires_grad=True))
    loss = guide_grpo().loss(pi, hinted)
    (slope,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert loss.isfinite().all()
    assert slope[0].item() != 0.0
    assert slope[1].item() == 0.0


def test_ratios_of_an_answer_that_are_nan_stay_nan_in_its_loss():
    hinted = batch(answer(0.0, -1.0, moved=True), answer(1.0, -1.0, moved=True))
    hinted = hinted.with_advantage(guide_grpo().advantage)
    pi = Signals(logp=torch.tensor([[-1.0], [torch.nan]]))
    loss = guide_grpo().loss(pi, hinted)
    assert loss[0].isfinite().all()
    assert loss[1].isnan().all()


def test_plain_rollouts_have_the_clipped_surrogate():
    plain = batch(answer(0.0, -1.0), answer(1.0, -1.0)).with_advantage(guide_grpo().advantage)
    pi = Signals(logp=torch.tensor([[-1.0], [-0.5]]))
    A = 0.5 / (0.5**0.5 + 1e-6)
    assert guide_grpo().loss(pi, plain)[:, 0].tolist() == pytest.approx([A, -1.2 * A])


def test_answers_count_equally_whatever_their_lengths():
    groups = batch(answer(0.0, -1.0), answer(1.0, -1.0, -1.0))
    assert guide_grpo().aggregation(groups).tolist() == [[1 / 2, 0.0], [1 / 4, 1 / 4]]


def test_default_hyperparameters():
    assert guide_grpo().sampler == with_hint(GroupSampler(8))
    assert guide_grpo().requires.columns == {"hint"}
    assert guide_grpo().updates == Updates(minibatches=2)
    assert guide_grpo().aggregation is sequence_mean

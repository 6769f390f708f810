"""Guide-GRPO: the ratio of a hinted answer divides by its probability given the hint."""

from math import exp

import pytest
import torch

from grupo.algo import ratios
from grupo.core.types import Action, Group, Rollout, Task
from grupo.methods.guide_grpo import guide_grpo
from grupo.rollouts.samplers import GroupSampler, WithHint
from grupo.testing.batches import Signals
from grupo.training.collate import collate


def answer(reward, *logp, moved=False):
    action = Action(tuple(range(len(logp))), logp, ("q",), off_context=moved)
    return Rollout((("q", action),), reward)


def batch(*rollouts):
    return collate([Group(Task("t", "q"), rollouts)], lambda rows: None)


def test_ratio_uses_plain_prompt_over_hinted_prompt():
    # two tokens: log pi(o | q) = -1 - 2 = -3, log old(o | q, g) = -0.25 - 0.75 = -1
    hinted = batch(answer(1.0, -0.25, -0.75, moved=True))
    pi = Signals(logp=torch.tensor([[-1.0, -2.0]]))
    assert ratios.product(pi, hinted)[0, 0].item() == pytest.approx(exp(-2))
    assert ratios.token(pi, hinted)[0].tolist() == pytest.approx([exp(-0.75), exp(-1.25)])


def test_hinted_success_with_low_ratio_is_not_clipped():
    # r = [0, 0, 0, 1]: A = 0.75 / 0.5 of the hinted one, its ratio exp(-2), its slope -ratio A / 4
    method = guide_grpo()
    wrong = (answer(0.0, -1.0),) * 3
    mixed = batch(*wrong, answer(1.0, -1.0, moved=True)).with_advantage(method.advantage)
    pi = Signals(logp=torch.tensor([[-1.0], [-1.0], [-1.0], [-3.0]], requires_grad=True))
    loss = (method.aggregation(mixed) * method.loss(pi, mixed)).sum()
    (slope,) = torch.autograd.grad(loss, pi.logp)
    assert slope[3, 0].item() == pytest.approx(-exp(-2) * 1.5 / 4, rel=1e-5)
    assert slope[0, 0].item() == pytest.approx(0.5 / 4, rel=1e-5)


def test_default_hyperparameters():
    assert guide_grpo().sampler == WithHint(GroupSampler(8))
    assert guide_grpo().requires.columns == {"hint"}

from math import exp

import pytest
import torch

from grupo.core.types import Group, Rollout, Task
from grupo.methods.justgrpo import justgrpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_loss_is_normalized_by_canvas_length():
    method = justgrpo(max_length=4)
    batch = make_batch([0, 0], reward=[1.0, 0.0], length=[3, 1]).with_advantage(method.advantage)
    A = 0.5 / (0.5**0.5 + 1e-4)  # deviation of 1 and 0: sqrt(1/2)
    assert batch.advantage[:, 0].tolist() == pytest.approx([A, -A])
    pi = perturb_logp(
        batch, [[0.3, 0.1, 0.0], [0.3, 0.0, 0.0]]
    )  # e^0.3 > 1.2: clipped where A > 0 alone
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(A * (-1.2 - exp(0.1) - 1 + exp(0.3)) / (2 * 4))
    (slope,) = torch.autograd.grad(loss, pi.logp)
    expected = [0.0, -A * exp(0.1) / 8, -A / 8, A * exp(0.3) / 8, 0.0, 0.0]
    assert slope.flatten().tolist() == pytest.approx(expected)


def test_uninformative_groups_do_not_dilute_gradient():
    # reference implementation: sum over answers / length / fraction with A != 0,
    # beside a mean over all answers
    rewards = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    groups = justgrpo(max_length=4).filter(
        [
            Group(Task(str(i), ""), tuple(Rollout(reward=r) for r in g))
            for i, g in enumerate(rewards)
        ]
    )
    assert [group.rewards for group in groups] == [(1.0, 0.0)]


def test_defaults_match_release():
    assert justgrpo(max_length=256).sampler == GroupSampler(16)
    assert justgrpo(max_length=256).requires.all_signals == frozenset()

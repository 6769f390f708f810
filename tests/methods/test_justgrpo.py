from math import exp

import pytest
import torch

from grupo.core.types import Group, Rollout, Task
from grupo.methods.justgrpo import justgrpo
from grupo.rollouts.samplers import Independent
from grupo.testing.batches import batch_of, moved


def test_the_loss_of_a_group_over_the_length_of_the_canvas():
    method = justgrpo(length=4)
    batch = batch_of([0, 0], reward=[1.0, 0.0], length=[3, 1]).credited(method.credit)
    A = 0.5 / (0.5**0.5 + 1e-4)  # deviation of 1 and 0: sqrt(1/2)
    assert batch.advantage[:, 0].tolist() == pytest.approx([A, -A])
    pi = moved(batch, [[0.3, 0.1, 0.0], [0.3, 0.0, 0.0]])  # e^0.3 > 1.2: clipped where A > 0 alone
    loss = (method.weigh(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(A * (-1.2 - exp(0.1) - 1 + exp(0.3)) / (2 * 4))
    (slope,) = torch.autograd.grad(loss, pi.logp)
    expected = [0.0, -A * exp(0.1) / 8, -A / 8, A * exp(0.3) / 8, 0.0, 0.0]
    assert slope.flatten().tolist() == pytest.approx(expected)


def test_groups_without_signal_do_not_dilute_the_step():
    # their code: sum over answers / length / share with A != 0, a mean over all of them beside it
    rewards = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    kept = justgrpo(length=4).curate(
        [
            Group(Task(str(i), ""), tuple(Rollout(reward=r) for r in g))
            for i, g in enumerate(rewards)
        ]
    )
    assert [group.rewards for group in kept] == [(1.0, 0.0)]


def test_the_defaults_are_the_released_ones():
    assert justgrpo(length=256) == justgrpo(length=256, group=16, clip=0.2)
    assert justgrpo(length=256).sample == Independent(16)
    assert justgrpo(length=256).needs == frozenset()

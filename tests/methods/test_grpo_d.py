from math import exp

import pytest
import torch

from grupo.core.schedules import at
from grupo.methods.grpo_d import grpo_d
from grupo.testing.batches import batch_of, moved


@pytest.mark.parametrize(("progress", "b"), [(0.0, 0.0), (0.5, 0.02), (1.0, 0.04)])
def test_the_leash_shortens_in_a_straight_line(progress, b):
    batch = batch_of([0], advantage=[2.0])
    pi = moved(batch, [[0.5]])  # d = log ref - log pi = -0.5
    loss = at(grpo_d(), progress).loss(pi, batch)
    assert loss.item() == pytest.approx(-2 * -0.5 + b * (exp(-0.5) + 0.5 - 1))
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert gradient.item() == pytest.approx(-2 + b * (1 - exp(-0.5)))


def test_the_defaults():
    assert grpo_d() == grpo_d(group=8, start=0.0, end=0.04)
    assert grpo_d().needs == {"logp@ref"}

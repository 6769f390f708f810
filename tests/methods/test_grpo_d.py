from math import exp

import pytest
import torch

from grupo.core.schedules import resolve_schedules
from grupo.methods.grpo_d import grpo_d
from grupo.testing.batches import make_batch, perturb_logp


@pytest.mark.parametrize(("progress", "b"), [(0.0, 0.0), (0.5, 0.02), (1.0, 0.04)])
def test_step_length_decreases_linearly(progress, b):
    batch = make_batch([0], advantage=[2.0])
    pi = perturb_logp(batch, [[0.5]])  # d = log ref - log pi = -0.5
    loss = resolve_schedules(grpo_d(), progress).loss(pi, batch)
    assert loss.item() == pytest.approx(-2 * -0.5 + b * (exp(-0.5) + 0.5 - 1))
    (gradient,) = torch.autograd.grad(loss.sum(), pi.logp)
    assert gradient.item() == pytest.approx(-2 + b * (1 - exp(-0.5)))


def test_default_hyperparameters():
    assert grpo_d().requires.all_signals == {"logp@ref"}

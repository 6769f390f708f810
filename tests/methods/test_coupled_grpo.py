from math import exp

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.core.reference_update import ReferenceUpdate
from grupo.methods.coupled_grpo import coupled_grpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp


def test_baseline_is_the_leave_one_out_mean():
    batch = make_batch([0] * 4, reward=[1.0, 0.0, 0.0, 0.0]).with_advantage(
        coupled_grpo().advantage
    )
    assert batch.advantage[:, 0].tolist() == pytest.approx([1.0, -1 / 3, -1 / 3, -1 / 3])


def test_loss_is_clipped_per_token_with_kl_to_the_reference():
    method = coupled_grpo()
    seen = {"logp@ref": [[-1.5, -1.0], [-1.0, 9.0]]}
    batch = make_batch([0, 0], reward=[1.0, 0.0], length=[2, 1], signals=seen).with_advantage(
        method.advantage
    )
    pi = perturb_logp(batch, [[0.5, 0.1], [-0.8, 0.0]])  # A = 1 and -1; e^0.5 > 1.5, e^-0.8 < 0.5
    surrogate = [-1.5, -exp(0.1), 0.5]
    off = [-1.5 + 0.5, -1.0 + 0.9, -1.0 + 1.8]  # log ref - log pi
    k3 = [exp(d) - d - 1 for d in off]
    expected = sum(s + 0.01 * k for s, k in zip(surrogate, k3, strict=True)) / 3
    loss = (method.aggregation(batch) * method.loss(pi, batch)).sum()
    assert loss.item() == pytest.approx(expected)
    (slope,) = torch.autograd.grad(loss, pi.logp)  # k3' = 1 - e^d; what is clipped has no other
    held = [0.01 * (1 - exp(d)) / 3 for d in off]
    assert slope.flatten().tolist() == pytest.approx([held[0], held[1] - exp(0.1) / 3, held[2], 0])


def test_defaults_are_the_released_ones():
    method = coupled_grpo()
    assert method.sampler == GroupSampler(10)
    assert method.updates == Updates(epochs=2, minibatches=1)
    # 64 optimizer steps of the release are 32 steps of two updates
    assert method.reference == ReferenceUpdate(rate=0.6, every=32)
    assert method.requires.all_signals == {"logp@ref"}
    assert coupled_grpo(kl_coef=0.0).requires.all_signals == frozenset()

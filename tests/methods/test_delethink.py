"""Delethink: a rollout of three chunks beside one of a single chunk."""

from math import log

import pytest
import torch

from grupo.algo.minibatches import Updates
from grupo.core.batch import Batch, SignalDict
from grupo.methods.delethink import delethink
from grupo.rollouts.samplers import GroupSampler
from grupo.rollouts.turns import ChunkedThinking
from grupo.testing.batches import perturb_logp


def batch(sampler: float = 0.0) -> Batch:
    """Rows of 8, 4 and 4 actions of the right rollout and of 8 of the wrong one."""
    mask = torch.arange(8) < torch.tensor([[8], [4], [4], [8]])
    old = torch.zeros(4, 8, dtype=torch.float64)
    return Batch.of(
        torch.tensor([1.0, 0.0], dtype=torch.float64),
        torch.tensor([0, 0]),
        rollout=torch.tensor([0, 0, 0, 1]),
        mask=mask,
        old_logp=old,
        signals=SignalDict({"logp@sampler": old + sampler}),
    )


def test_all_tokens_of_a_rollout_have_equal_weight_across_chunks():
    weight = delethink().aggregation(batch())
    assert (2 * weight[:3][batch().mask[:3]]).tolist() == pytest.approx([1 / 16] * 16)
    assert (2 * weight[3]).tolist() == pytest.approx([1 / 8] * 8)


def test_all_chunks_have_the_advantage_of_their_rollout():
    A = batch().with_advantage(delethink().advantage).advantage
    high = 0.5 / 0.5**0.5
    assert A[:3][batch().mask[:3]].tolist() == pytest.approx([high] * 16, rel=1e-5)
    assert A[3].tolist() == pytest.approx([-high] * 8, rel=1e-5)


def test_loss_is_clipped_and_importance_weighted():
    plain = batch().with_advantage(lambda x, _: torch.ones_like(x))
    up = perturb_logp(plain, [[log(1.5)] * 8] * 4)
    assert delethink().loss(up, plain)[0, 0].item() == pytest.approx(-1.26)
    off = batch(sampler=-log(3.0)).with_advantage(lambda x, _: torch.ones_like(x))
    assert delethink().loss(up, off)[0, 0].item() == pytest.approx(-2 * 1.26)


def test_loss_of_a_negative_advantage_is_at_most_3_times_it():
    plain = batch().with_advantage(lambda x, _: -torch.ones_like(x))
    pi = perturb_logp(plain, [[log(2.0), log(4.0)] + [0.0] * 6] * 4)
    loss = delethink().loss(pi, plain)
    assert loss[0, :2].tolist() == pytest.approx([2.0, 3.0])  # 2 and min(4, 3)
    (gradient,) = torch.autograd.grad(loss[0].sum(), pi.logp)
    assert gradient[0, :2].tolist() == pytest.approx([2.0, 0.0])  # none beyond the bound


def test_defaults_are_the_papers():
    method = delethink()
    assert method.sampler == GroupSampler(8, ChunkedThinking(8192, 100, 3996, 5))
    chunked = ChunkedThinking()
    assert chunked.prefix_tokens + chunked.suffix_tokens == chunked.chunk_size // 2
    assert chunked.chunk_size + 4 * chunked.chunk_size // 2 == 24_576
    assert method.updates == Updates(minibatches=2)

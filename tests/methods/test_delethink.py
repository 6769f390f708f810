"""Delethink: a rollout of three chunks beside one of a single chunk."""

from math import log

import pytest
import torch

from grupo.algo.minibatches import Passes
from grupo.core.batch import Batch, Named
from grupo.methods.delethink import delethink
from grupo.rollouts.samplers import Independent
from grupo.rollouts.turns import Chunked
from grupo.testing.batches import moved


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
        seen=Named({"logp@sampler": old + sampler}),
    )


def test_every_token_of_a_trace_of_8_4_and_4_counts_a_sixteenth():
    weight = delethink().weigh(batch())
    assert (2 * weight[:3][batch().mask[:3]]).tolist() == pytest.approx([1 / 16] * 16)
    assert (2 * weight[3]).tolist() == pytest.approx([1 / 8] * 8)


def test_all_chunks_of_a_trace_are_credited_with_its_one_reward():
    A = batch().credited(delethink().credit).advantage
    high = 0.5 / 0.5**0.5
    assert A[:3][batch().mask[:3]].tolist() == pytest.approx([high] * 16, rel=1e-5)
    assert A[3].tolist() == pytest.approx([-high] * 8, rel=1e-5)


def test_ratios_are_clipped_higher_and_weighed_by_a_truncated_importance():
    plain = batch().credited(lambda x, _: torch.ones_like(x))
    up = moved(plain, [[log(1.5)] * 8] * 4)
    assert delethink().loss(up, plain)[0, 0].item() == pytest.approx(-1.26)
    off = batch(sampler=-log(3.0)).credited(lambda x, _: torch.ones_like(x))
    assert delethink().loss(up, off)[0, 0].item() == pytest.approx(-2 * 1.26)


def test_the_defaults_are_the_papers():
    method = delethink()
    assert method.sample == Independent(8, Chunked(8192, 100, 3996, 5))
    chunked = Chunked()
    assert chunked.head + chunked.tail == chunked.chunk // 2
    assert chunked.chunk + 4 * chunked.chunk // 2 == 24_576
    assert method.plan == Passes(minibatches=2)

"""Attention to parts of what is seen makes the whole, by either kernel."""

from dataclasses import replace
from math import inf

import pytest
import torch
from torch import Tensor

from grupo.kernels.packing.block_attention import (
    AttentionBlock,
    AttentionConfig,
    FusedKernel,
    Kernel,
    ReferenceKernel,
    kernel_for,
)
from grupo.kernels.packing.tree_attention import merge_block
from tests.helpers.packed_rows import by_definition

SCALE = 0.7
CUT = (slice(0, 4), slice(4, 9))
KERNELS = {"fused": FusedKernel(SCALE), "plain": ReferenceKernel(SCALE)}


def part(
    heads: int = 4, groups: int = 2, queries: int = 5, keys: int = 5, batch: int = 2
) -> AttentionBlock:
    shapes = (heads, queries, 8), (groups, keys, 8), (groups, keys, 8)
    return AttentionBlock(*(torch.randn(batch, *shape, dtype=torch.float64) for shape in shapes))


def banded(one: AttentionBlock) -> AttentionBlock:
    """Each query sees the key at its place and the two before: the sixth sees none of three."""
    queries, keys = one.q.shape[2], one.k.shape[2]
    apart = torch.arange(queries)[:, None] - torch.arange(keys)
    mask = torch.zeros(queries, keys, dtype=one.q.dtype)
    return replace(one, mask=mask.masked_fill((apart < 0) | (apart > 2), -inf)[None, None])


PARTS = {
    "all": part,
    "causal": lambda: replace(part(), causal=True),
    "band": lambda: banded(part()),
    "one head each": lambda: part(groups=4),
    "one key head": lambda: part(groups=1),
    "few keys": lambda: part(queries=7, keys=2),
    "one query": lambda: part(queries=1, keys=9),
}


def whole(one: AttentionBlock) -> tuple[Tensor, Tensor]:
    """What is said, and the logarithm of its normaliser, by definition."""
    k, v = (x.repeat_interleave(one.q.shape[1] // x.shape[1], 1) for x in (one.k, one.v))
    scores = one.q @ k.mT * SCALE
    if one.mask is not None:
        scores = scores + one.mask
    if one.causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def assert_near(ours: Tensor, theirs: Tensor, off: float = 1e-10) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=off)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("made", PARTS.values(), ids=PARTS)
def test_a_kernel_says_what_the_definition_says(made, kernel: Kernel):
    one = made()
    for ours, theirs in zip(kernel.forward(one), whole(one), strict=True):
        assert_near(ours, theirs)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("made", PARTS.values(), ids=PARTS)
def test_its_gradients_are_those_of_the_definition(made, kernel: Kernel):
    one = made()
    qkv = [x.requires_grad_() for x in (one.q, one.k, one.v)]
    out, total = whole(one)
    slope = torch.randn_like(out)
    theirs = torch.autograd.grad((out * slope).sum(), qkv)
    with torch.no_grad():
        for mine, yours in zip(kernel.backward(slope, one, out, total), theirs, strict=True):
            assert_near(mine, yours)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_gradients_of_parts_need_only_what_the_whole_said(kernel: Kernel):
    one = part(keys=9)
    qkv = [x.requires_grad_() for x in (one.q, one.k, one.v)]
    out, total = whole(one)
    slope = torch.randn_like(out)
    dq, dk, dv = torch.autograd.grad((out * slope).sum(), qkv)
    with torch.no_grad():
        halves = [replace(one, k=one.k[:, :, at], v=one.v[:, :, at]) for at in CUT]
        found = [kernel.backward(slope, half, out, total) for half in halves]
    assert_near(found[0][0] + found[1][0], dq)
    assert_near(torch.cat([x[1] for x in found], 2), dk)
    assert_near(torch.cat([x[2] for x in found], 2), dv)


@pytest.mark.parametrize("order", [CUT, CUT[::-1]], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_parts_join_to_the_whole_in_any_order(kernel: Kernel, order):
    one = part(keys=9, batch=1)
    halves = [replace(one, k=one.k[:, :, at], v=one.v[:, :, at]) for at in order]
    (out, total), (more, sum_) = map(kernel.forward, halves)
    out, total = out[0].transpose(0, 1).clone(), total[0].T.clone()
    merge_block(out, total, more, sum_)
    assert_near(out, whole(one)[0][0].transpose(0, 1))
    assert_near(total, whole(one)[1][0].T)


def test_what_sees_nothing_adds_nothing():
    blind = banded(part(queries=8, keys=3, batch=1))
    _, total = ReferenceKernel(SCALE).forward(blind)
    assert total[..., 5:].isneginf().all()
    assert total[..., :5].isfinite().all()
    out, before = torch.randn(8, 4, 8).double(), torch.randn(8, 4).double()
    after, kept = out.clone(), before.clone()
    merge_block(after, kept, *ReferenceKernel(SCALE).forward(blind))
    assert torch.equal(after[5:], out[5:])
    assert torch.equal(kept[5:], before[5:])
    assert (after[:5] != out[:5]).all()


def test_the_gradients_of_what_sees_nothing_are_0():
    blind = banded(part(queries=8, keys=3, batch=1))
    out, total = torch.randn(1, 4, 8, 8).double(), torch.zeros(1, 4, 8).double()
    slope = torch.ones_like(out)
    slope[:, :, :5] = 0  # only those who see nothing have one
    for kernel in KERNELS.values():
        assert all((x == 0).all() for x in kernel.backward(slope, blind, out, total))


@pytest.mark.parametrize("softcap", [0.5, 3.0])
def test_a_softcap_bends_scores_as_tanh_does(softcap):
    one = replace(part(batch=1, queries=6, keys=6), causal=True)
    qkv = [x.requires_grad_() for x in (one.q, one.k, one.v)]
    q, k, v = (x[0].transpose(0, 1) for x in qkv)
    theirs = by_definition(q, k, v, AttentionConfig(SCALE, softcap=softcap)).transpose(0, 1)[None]
    kernel = ReferenceKernel(SCALE, softcap)
    out, total = kernel.forward(one)
    assert_near(out, theirs)
    slope = torch.randn_like(out)
    slopes = torch.autograd.grad((theirs * slope).sum(), qkv)
    with torch.no_grad():
        for mine, yours in zip(kernel.backward(slope, one, out, total), slopes, strict=True):
            assert_near(mine, yours)


def test_the_fused_kernel_is_chosen_where_it_works():
    wide, narrow = torch.zeros(2, 4, 8), torch.zeros(2, 4, 5)
    assert kernel_for(AttentionConfig(0.5), wide, wide) == FusedKernel(0.5)
    assert kernel_for(AttentionConfig(0.5, window=3), wide, wide) == FusedKernel(0.5)
    assert kernel_for(AttentionConfig(0.5, softcap=2.0), wide, wide) == ReferenceKernel(0.5, 2.0)
    assert kernel_for(AttentionConfig(0.5), wide, narrow) == ReferenceKernel(0.5)
    assert kernel_for(AttentionConfig(0.5), wide.to("meta"), wide) == ReferenceKernel(0.5)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_in_bfloat16_normalisers_are_in_float32_and_numbers_near(kernel: Kernel):
    one = replace(part(queries=6, keys=6), causal=True)
    rounded = AttentionBlock(*(x.bfloat16() for x in (one.q, one.k, one.v)), causal=True)
    out, total = kernel.forward(rounded)
    exact = whole(
        AttentionBlock(*(x.double() for x in (rounded.q, rounded.k, rounded.v)), causal=True)
    )
    assert (out.dtype, total.dtype) == (torch.bfloat16, torch.float32)
    assert_near(out.double(), exact[0], 2e-2)
    assert_near(total.double(), exact[1], 5e-2)

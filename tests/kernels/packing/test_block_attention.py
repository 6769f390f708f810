"""Attention to blocks of keys merges to attention to all keys, with either kernel."""

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
from tests.helpers.packed_rows import reference_attention

SCALE = 0.7
HALVES = (slice(0, 4), slice(4, 9))
KERNELS = {"fused": FusedKernel(SCALE), "reference": ReferenceKernel(SCALE)}


def random_block(
    heads: int = 4, key_heads: int = 2, queries: int = 5, keys: int = 5, batch: int = 2
) -> AttentionBlock:
    shapes = (heads, queries, 8), (key_heads, keys, 8), (key_heads, keys, 8)
    return AttentionBlock(*(torch.randn(batch, *shape, dtype=torch.float64) for shape in shapes))


def banded(block: AttentionBlock) -> AttentionBlock:
    """Each query sees the key at its position and the two before: of 3 keys the sixth sees none."""
    queries, keys = block.q.shape[2], block.k.shape[2]
    distance = torch.arange(queries)[:, None] - torch.arange(keys)
    mask = torch.zeros(queries, keys, dtype=block.q.dtype)
    mask = mask.masked_fill((distance < 0) | (distance > 2), -inf)
    return replace(block, mask=mask[None, None])


BLOCKS = {
    "full": random_block,
    "causal": lambda: replace(random_block(), causal=True),
    "band": lambda: banded(random_block()),
    "no shared key heads": lambda: random_block(key_heads=4),
    "one key head": lambda: random_block(key_heads=1),
    "few keys": lambda: random_block(queries=7, keys=2),
    "one query": lambda: random_block(queries=1, keys=9),
}


def reference(block: AttentionBlock) -> tuple[Tensor, Tensor]:
    """Outputs and log-sum-exp, by definition."""
    k, v = (x.repeat_interleave(block.q.shape[1] // x.shape[1], 1) for x in (block.k, block.v))
    scores = block.q @ k.mT * SCALE
    if block.mask is not None:
        scores = scores + block.mask
    if block.causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def assert_near(actual: Tensor, expected: Tensor, tolerance: float = 1e-10) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("make_block", BLOCKS.values(), ids=BLOCKS)
def test_outputs_match_the_definition(make_block, kernel: Kernel):
    block = make_block()
    for actual, expected in zip(kernel.forward(block), reference(block), strict=True):
        assert_near(actual, expected)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("make_block", BLOCKS.values(), ids=BLOCKS)
def test_gradients_match_the_definition(make_block, kernel: Kernel):
    block = make_block()
    qkv = [x.requires_grad_() for x in (block.q, block.k, block.v)]
    out, lse = reference(block)
    grad_out = torch.randn_like(out)
    expected = torch.autograd.grad((out * grad_out).sum(), qkv)
    with torch.no_grad():
        for x, y in zip(kernel.backward(grad_out, block, out, lse), expected, strict=True):
            assert_near(x, y)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_gradients_of_blocks_need_only_merged_outputs(kernel: Kernel):
    block = random_block(keys=9)
    qkv = [x.requires_grad_() for x in (block.q, block.k, block.v)]
    out, lse = reference(block)
    grad_out = torch.randn_like(out)
    dq, dk, dv = torch.autograd.grad((out * grad_out).sum(), qkv)
    with torch.no_grad():
        halves = [replace(block, k=block.k[:, :, keys], v=block.v[:, :, keys]) for keys in HALVES]
        grads = [kernel.backward(grad_out, half, out, lse) for half in halves]
    assert_near(grads[0][0] + grads[1][0], dq)
    assert_near(torch.cat([x[1] for x in grads], 2), dk)
    assert_near(torch.cat([x[2] for x in grads], 2), dv)


@pytest.mark.parametrize("order", [HALVES, HALVES[::-1]], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_blocks_merge_in_any_order(kernel: Kernel, order):
    block = random_block(keys=9, batch=1)
    halves = [replace(block, k=block.k[:, :, keys], v=block.v[:, :, keys]) for keys in order]
    (out, lse), (other_out, other_lse) = map(kernel.forward, halves)
    out, lse = out[0].transpose(0, 1).clone(), lse[0].T.clone()
    merge_block(out, lse, other_out, other_lse)
    assert_near(out, reference(block)[0][0].transpose(0, 1))
    assert_near(lse, reference(block)[1][0].T)


def test_queries_that_see_no_key_are_left_unchanged_by_a_merge():
    hidden = banded(random_block(queries=8, keys=3, batch=1))
    _, lse = ReferenceKernel(SCALE).forward(hidden)
    assert lse[..., 5:].isneginf().all()
    assert lse[..., :5].isfinite().all()
    out, lse = torch.randn(8, 4, 8).double(), torch.randn(8, 4).double()
    merged_out, merged_lse = out.clone(), lse.clone()
    merge_block(merged_out, merged_lse, *ReferenceKernel(SCALE).forward(hidden))
    assert torch.equal(merged_out[5:], out[5:])
    assert torch.equal(merged_lse[5:], lse[5:])
    assert (merged_out[:5] != out[:5]).all()


def test_gradients_of_queries_that_see_no_key_are_0():
    hidden = banded(random_block(queries=8, keys=3, batch=1))
    out, lse = torch.randn(1, 4, 8, 8).double(), torch.zeros(1, 4, 8).double()
    grad_out = torch.ones_like(out)
    grad_out[:, :, :5] = 0  # only the queries that see no key have a gradient
    for kernel in KERNELS.values():
        assert all((x == 0).all() for x in kernel.backward(grad_out, hidden, out, lse))


@pytest.mark.parametrize("softcap", [0.5, 3.0])
def test_softcap_matches_the_definition(softcap):
    block = replace(random_block(batch=1, queries=6, keys=6), causal=True)
    qkv = [x.requires_grad_() for x in (block.q, block.k, block.v)]
    q, k, v = (x[0].transpose(0, 1) for x in qkv)
    config = AttentionConfig(SCALE, softcap=softcap)
    expected = reference_attention(q, k, v, config).transpose(0, 1)[None]
    kernel = ReferenceKernel(SCALE, softcap)
    out, lse = kernel.forward(block)
    assert_near(out, expected)
    grad_out = torch.randn_like(out)
    grads = torch.autograd.grad((expected * grad_out).sum(), qkv)
    with torch.no_grad():
        for x, y in zip(kernel.backward(grad_out, block, out, lse), grads, strict=True):
            assert_near(x, y)


def test_fused_kernel_is_chosen_if_supported():
    wide, narrow = torch.zeros(2, 4, 8), torch.zeros(2, 4, 5)
    assert kernel_for(AttentionConfig(0.5), wide, wide) == FusedKernel(0.5)
    assert kernel_for(AttentionConfig(0.5, window=3), wide, wide) == FusedKernel(0.5)
    assert kernel_for(AttentionConfig(0.5, softcap=2.0), wide, wide) == ReferenceKernel(0.5, 2.0)
    assert kernel_for(AttentionConfig(0.5), wide, narrow) == ReferenceKernel(0.5)
    assert kernel_for(AttentionConfig(0.5), wide.to("meta"), wide) == ReferenceKernel(0.5)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_bfloat16_outputs_are_close_and_log_sum_exp_is_float32(kernel: Kernel):
    block = replace(random_block(queries=6, keys=6), causal=True)
    rounded = AttentionBlock(*(x.bfloat16() for x in (block.q, block.k, block.v)), causal=True)
    out, lse = kernel.forward(rounded)
    widened = (x.double() for x in (rounded.q, rounded.k, rounded.v))
    exact = reference(AttentionBlock(*widened, causal=True))
    assert (out.dtype, lse.dtype) == (torch.bfloat16, torch.float32)
    assert_near(out.double(), exact[0], 2e-2)
    assert_near(lse.double(), exact[1], 5e-2)

"""Attention within a line is that of every row on its own, and so are its gradients."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grupo.kernels.packing import native_attention, tree_attention
from grupo.kernels.packing.block_attention import (
    AttentionConfig,
    FusedKernel,
    Kernel,
    ReferenceKernel,
)
from grupo.kernels.packing.tree_attention import TreeAttention
from tests.helpers.packed_rows import Rows, by_definition, laid, places

# a question, two turns that go on from it, answers to each; one that ends early; one of its own
QUESTION, HERE, THERE = [1] * 5, [2] * 4, [3, 4, 3]
DEEP = (
    [*QUESTION, *HERE, 5, 6],
    [*QUESTION, *HERE, 5, 7, 7, 7],
    [*QUESTION, *HERE, 8],
    [*QUESTION, *THERE, 5],
    [*QUESTION, *THERE],
    QUESTION[:3],
    [9] * 6,
)
FLAT = ([1, 2, 3], [4, 5], [6])
HOWS = {
    "all": AttentionConfig(0.4),
    "window": AttentionConfig(0.4, window=3),  # answers see nothing of the question
    "wide window": AttentionConfig(0.4, window=7),
    "softcap": AttentionConfig(0.9, softcap=1.5),
    "both": AttentionConfig(0.9, window=4, softcap=1.5),
}


@pytest.fixture(params=["c", "torch"], scope="module", autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    """All at once in C, and part by part."""
    assert native_attention.native_library_for(HOWS["all"], *numbers(FLAT, 2, 1, 8)) is not None
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "torch":
            patch.setattr(native_attention, "whole", lambda *_: None)
        yield


def numbers(rows: Rows, heads: int, groups: int, width: int) -> tuple[Tensor, ...]:
    """Queries (M, H, 8), keys (M, K, 8) and values (M, K, width) of what is in a line."""
    count = len(laid(rows).token)
    shapes = (count, heads, 8), (count, groups, 8), (count, groups, width)
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


def by_tree(rows: Rows, q: Tensor, k: Tensor, v: Tensor, how: AttentionConfig) -> list[Tensor]:
    """What every row is answered."""
    packed = laid(rows)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = TreeAttention(packed).attend(0, q, k, v, how)[0]
    return [out[place] for place in places(packed, rows)]


def row_by_row(rows: Rows, q: Tensor, k: Tensor, v: Tensor, how: AttentionConfig) -> list[Tensor]:
    return [by_definition(q[p], k[p], v[p], how) for p in places(laid(rows), rows)]


def gradients(out: list[Tensor], qkv: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Of a loss that weighs everything that is said differently."""
    said = torch.cat([x.flatten() for x in out])
    weight = torch.randn(len(said), generator=torch.Generator().manual_seed(1), dtype=said.dtype)
    return torch.autograd.grad((said * weight).sum(), qkv)


def assert_as_row_by_row(rows: Rows, qkv: tuple[Tensor, ...], how: AttentionConfig) -> None:
    ours, theirs = by_tree(rows, *qkv, how), row_by_row(rows, *qkv, how)
    for mine, yours in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, yours, rtol=0, atol=1e-10)
    for mine, yours in zip(gradients(ours, qkv), gradients(theirs, qkv), strict=True):
        torch.testing.assert_close(mine, yours, rtol=0, atol=1e-10)


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("width", [8, 5], ids=["", "narrow values"])
@pytest.mark.parametrize("groups", [4, 2, 1])
def test_of_rows_that_share_three_levels_of_beginnings(groups, width, how):
    assert_as_row_by_row(DEEP, numbers(DEEP, 4, groups, width), how)


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
@pytest.mark.parametrize("rows", [FLAT, ([1, 1, 1, 1, 1],), ([2], [2, 3]), ([1], [])])
def test_of_rows_that_share_little(rows, how):
    assert_as_row_by_row(rows, numbers(rows, 2, 2, 8), how)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 1), max_size=9), min_size=1, max_size=7).filter(any),
    st.sampled_from(list(HOWS)),
)
def test_of_any_rows(rows, how):
    assert_as_row_by_row(rows, numbers(rows, 2, 1, 8), HOWS[how])


def test_of_some_stretches_a_small_window_leaves_nothing_to_see():
    parts = TreeAttention(laid(DEEP)).prefix_blocks(*numbers(DEEP, 2, 2, 8), HOWS["window"])
    blind = [p.mask.isneginf().all(-1).any() for _, _, p in parts if p.mask is not None]
    assert sum(blind) > 2  # else the tests above have not tried it


def test_masks_are_made_only_where_the_window_is_shorter_than_the_longest_row():
    longest = max(map(len, DEEP))
    q, k, v = numbers(DEEP, 2, 2, 8)
    for window, masked in ((longest, False), (longest - 1, True)):
        parts = TreeAttention(laid(DEEP)).prefix_blocks(
            q, k, v, AttentionConfig(1.0, window=window)
        )
        assert {part.mask is not None for _, _, part in parts} == {masked}


@pytest.mark.parametrize("how", [HOWS["all"], HOWS["window"]], ids=["all", "window"])
@pytest.mark.parametrize("kernel", [FusedKernel(0.4), ReferenceKernel(0.4)], ids=["fused", "plain"])
def test_whichever_kernel_works_it_out(monkeypatch: pytest.MonkeyPatch, kernel: Kernel, how):
    monkeypatch.setattr(native_attention, "whole", lambda *_: None)
    monkeypatch.setattr(tree_attention, "kernel_for", lambda *_: kernel)
    assert_as_row_by_row(DEEP, numbers(DEEP, 4, 2, 8), how)


@pytest.mark.parametrize("window", [inf, 200, 700], ids=str)
def test_however_long_rows_are(window: float):
    prompt = [1 + i % 7 for i in range(600)]  # more than are looked at at once
    rows = ([*prompt, *[8] * 150], [*prompt, 9, 8], [*prompt[:300], 9], [2] * 270)
    assert_as_row_by_row(rows, numbers(rows, 4, 2, 8), AttentionConfig(0.4, window=window))


@pytest.mark.parametrize("how", [HOWS["window"], HOWS["softcap"]], ids=["window", "softcap"])
def test_gradients_are_slopes(how):
    rows = ([1, 1, 1, 2], [1, 1, 1, 3, 3])

    def said(*qkv: Tensor) -> tuple[Tensor, ...]:
        return tuple(by_tree(rows, *qkv, how))

    assert torch.autograd.gradcheck(said, numbers(rows, 2, 1, 8), fast_mode=True)


def test_scores_far_from_0_neither_overflow_nor_lose_a_part():
    qkv = numbers(DEEP, 2, 2, 8)
    assert_as_row_by_row(DEEP, qkv, replace(HOWS["all"], scale=60.0))
    loud = by_tree(DEEP, *qkv, replace(HOWS["all"], scale=1e4))
    assert all(x.isfinite().all() for x in loud)


def test_of_a_line_that_no_row_is_in_there_is_nothing_to_say():
    q, k, v = (torch.zeros(1, 2, 0, 8) for _ in range(3))
    assert TreeAttention(laid([[]])).attend(0, q, k, v, HOWS["window"]).shape == (1, 0, 2, 8)

"""Tree attention over packed rows equals attention to each row alone, gradients included."""

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
from tests.helpers.fast_cases import fast_cases
from tests.helpers.packed_rows import Rows, pack_rows, reference_attention, row_indices

# a prompt, two continuations, answers to both; a row that ends early; a row without shared tokens
PROMPT, TURN, OTHER_TURN = [1] * 5, [2] * 4, [3, 4, 3]
DEEP_ROWS = (
    [*PROMPT, *TURN, 5, 6],
    [*PROMPT, *TURN, 5, 7, 7, 7],
    [*PROMPT, *TURN, 8],
    [*PROMPT, *OTHER_TURN, 5],
    [*PROMPT, *OTHER_TURN],
    PROMPT[:3],
    [9] * 6,
)
FLAT_ROWS = ([1, 2, 3], [4, 5], [6])
CONFIGS = {
    "all": AttentionConfig(0.4),
    "window": AttentionConfig(0.4, window=3),  # answers do not see the prompt
    "wide window": AttentionConfig(0.4, window=7),
    "softcap": AttentionConfig(0.9, softcap=1.5),
    "both": AttentionConfig(0.9, window=4, softcap=1.5),
}


@pytest.fixture(params=fast_cases(1, ["c", "torch"]), scope="module", autouse=True)
def implementation(request: pytest.FixtureRequest) -> Iterator[None]:
    """One C call, and block after block with torch."""
    assert (
        native_attention.native_library_for(CONFIGS["all"], *random_qkv(FLAT_ROWS, 2, 1, 8))
        is not None
    )
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "torch":
            patch.setattr(native_attention, "native_library_for", lambda *_: None)
        yield


def random_qkv(rows: Rows, heads: int, key_heads: int, width: int) -> tuple[Tensor, ...]:
    """Queries (M, H, 8), keys (M, K, 8) and values (M, K, width) of the packed rows."""
    count = len(pack_rows(rows).token)
    shapes = (count, heads, 8), (count, key_heads, 8), (count, key_heads, width)
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


def tree_outputs(
    rows: Rows, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
) -> list[Tensor]:
    """Outputs of tree attention, row by row."""
    packed = pack_rows(rows)
    q, k, v = (x.transpose(0, 1)[None] for x in (q, k, v))
    out = TreeAttention(packed).attend(0, q, k, v, config)[0]
    return [out[index] for index in row_indices(packed, rows)]


def reference_outputs(
    rows: Rows, q: Tensor, k: Tensor, v: Tensor, config: AttentionConfig
) -> list[Tensor]:
    return [
        reference_attention(q[p], k[p], v[p], config) for p in row_indices(pack_rows(rows), rows)
    ]


def gradients(out: list[Tensor], qkv: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gradients for a random weighting of the outputs."""
    flat = torch.cat([x.flatten() for x in out])
    weight = torch.randn(len(flat), generator=torch.Generator().manual_seed(1), dtype=flat.dtype)
    return torch.autograd.grad((flat * weight).sum(), qkv)


def assert_matches_reference(rows: Rows, qkv: tuple[Tensor, ...], config: AttentionConfig) -> None:
    outputs, expected = tree_outputs(rows, *qkv, config), reference_outputs(rows, *qkv, config)
    for x, y in zip(outputs, expected, strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=1e-10)
    for x, y in zip(gradients(outputs, qkv), gradients(expected, qkv), strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=1e-10)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("width", [8, 5], ids=["", "narrow values"])
@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_rows_that_share_prefixes_of_three_lengths(key_heads, width, config):
    assert_matches_reference(DEEP_ROWS, random_qkv(DEEP_ROWS, 4, key_heads, width), config)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("rows", [FLAT_ROWS, ([1, 1, 1, 1, 1],), ([2], [2, 3]), ([1], [])])
def test_rows_that_share_little(rows, config):
    assert_matches_reference(rows, random_qkv(rows, 2, 2, 8), config)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("width", [8, 5], ids=["", "narrow values"])
def test_sinks_take_part_in_the_softmax_of_their_heads(width, config):
    packed = pack_rows(DEEP_ROWS)
    inputs = (*random_qkv(DEEP_ROWS, 4, 2, width), 2 * torch.randn(4, dtype=torch.float64))
    *qkv, sinks = (x.requires_grad_() for x in inputs)
    heads = (x.transpose(0, 1)[None] for x in qkv)
    out = TreeAttention(packed).attend(0, *heads, config, sinks)[0]
    rows = list(row_indices(packed, DEEP_ROWS))
    outputs = [out[row] for row in rows]
    expected = [reference_attention(*(x[row] for x in qkv), config, sinks) for row in rows]
    torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-10)
    gradients_of_both = [gradients(x, inputs) for x in (outputs, expected)]
    torch.testing.assert_close(*gradients_of_both, rtol=0, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 1), max_size=9), min_size=1, max_size=7).filter(any),
    st.sampled_from(list(CONFIGS)),
)
def test_random_rows(rows, config):
    assert_matches_reference(rows, random_qkv(rows, 2, 1, 8), CONFIGS[config])


def test_small_window_hides_some_segments_completely():
    blocks = TreeAttention(pack_rows(DEEP_ROWS)).prefix_blocks(
        *random_qkv(DEEP_ROWS, 2, 2, 8), CONFIGS["window"]
    )
    masks = [block.mask for _, _, block in blocks if block.mask is not None]
    # otherwise the tests above do not cover this case
    assert sum(mask.isneginf().all(-1).any() for mask in masks) > 2


def test_masks_exist_only_if_the_window_is_shorter_than_the_longest_row():
    longest = max(map(len, DEEP_ROWS))
    q, k, v = random_qkv(DEEP_ROWS, 2, 2, 8)
    for window, masked in ((longest, False), (longest - 1, True)):
        blocks = TreeAttention(pack_rows(DEEP_ROWS)).prefix_blocks(
            q, k, v, AttentionConfig(1.0, window=window)
        )
        assert {block.mask is not None for _, _, block in blocks} == {masked}


@pytest.mark.parametrize("config", [CONFIGS["all"], CONFIGS["window"]], ids=["all", "window"])
@pytest.mark.parametrize(
    "kernel", [FusedKernel(0.4), ReferenceKernel(0.4)], ids=["fused", "reference"]
)
def test_every_kernel_gives_the_same_results(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel, config
):
    monkeypatch.setattr(native_attention, "native_library_for", lambda *_: None)
    monkeypatch.setattr(tree_attention, "kernel_for", lambda *_: kernel)
    assert_matches_reference(DEEP_ROWS, random_qkv(DEEP_ROWS, 4, 2, 8), config)


@pytest.mark.parametrize("window", fast_cases(1, [200, inf, 700]), ids=str)
def test_long_rows(window: float):
    prompt = [1 + i % 7 for i in range(600)]  # more than one tile of keys
    rows = ([*prompt, *[8] * 150], [*prompt, 9, 8], [*prompt[:300], 9], [2] * 270)
    assert_matches_reference(rows, random_qkv(rows, 4, 2, 8), AttentionConfig(0.4, window=window))


@pytest.mark.parametrize(
    "config", [CONFIGS["window"], CONFIGS["softcap"]], ids=["window", "softcap"]
)
def test_gradients_match_finite_differences(config):
    rows = ([1, 1, 1, 2], [1, 1, 1, 3, 3])

    def outputs(*qkv: Tensor) -> tuple[Tensor, ...]:
        return tuple(tree_outputs(rows, *qkv, config))

    assert torch.autograd.gradcheck(outputs, random_qkv(rows, 2, 1, 8), fast_mode=True)


@pytest.mark.parametrize("max_pairs", [1, 4, 30])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_limit_of_pairs_changes_neither_outputs_nor_gradients(config, max_pairs, implementation):
    packed = pack_rows(DEEP_ROWS)
    qkv = [x.requires_grad_() for x in random_qkv(DEEP_ROWS, 4, 2, 8)]
    heads = [x.transpose(0, 1)[None] for x in qkv]
    outputs = [
        TreeAttention(packed, limit).attend(0, *heads, config) for limit in (max_pairs, None)
    ]
    weight = torch.randn_like(outputs[0])
    grads = [torch.autograd.grad((x * weight).sum(), qkv) for x in outputs]
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("max_pairs", [1, 4, 30])
def test_no_block_has_more_pairs_than_the_limit(max_pairs):
    rows = [[1] * 40 + [n] * (3 + n) for n in range(2, 9)]
    tree = TreeAttention(pack_rows(rows), max_pairs)
    q, k, v = random_qkv(rows, 2, 1, 8)
    pairs = [block.index.numel() * block.index.shape[1] for block in tree.self_blocks]
    blocks = tree.prefix_blocks(q, k, v, AttentionConfig(0.4))
    pairs += [block.q.shape[2] * block.k.shape[2] for _, _, block in blocks]
    assert max(pairs) <= max_pairs < sum(pairs)


def test_blocks_are_limited_on_devices_other_than_the_cpu():
    packed = pack_rows(DEEP_ROWS)
    assert TreeAttention(packed).pair_limit is None
    on_gpu = TreeAttention(packed.to(torch.device("meta")))
    assert on_gpu.pair_limit == tree_attention.MAX_BLOCK_PAIRS


def test_large_scores_neither_overflow_nor_drop_a_block():
    qkv = random_qkv(DEEP_ROWS, 2, 2, 8)
    assert_matches_reference(DEEP_ROWS, qkv, replace(CONFIGS["all"], scale=60.0))
    large = tree_outputs(DEEP_ROWS, *qkv, replace(CONFIGS["all"], scale=1e4))
    assert all(x.isfinite().all() for x in large)


def test_empty_rows_have_empty_outputs():
    q, k, v = (torch.zeros(1, 2, 0, 8) for _ in range(3))
    assert TreeAttention(pack_rows([[]])).attend(0, q, k, v, CONFIGS["window"]).shape == (
        1,
        0,
        2,
        8,
    )

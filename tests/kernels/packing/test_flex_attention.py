"""Flex attention over packed rows equals tree attention."""

import random
from math import inf

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask
from transformers import Qwen3Config, Qwen3ForCausalLM

from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.flex_attention import FlexLayout
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention
from tests.helpers.dense_flex_attention import plain_flex_attention
from tests.helpers.fast_cases import fast_cases
from tests.helpers.packed_rows import Rows, pack_rows, row_indices

# torch warns that the uncompiled function is slow
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
CONFIGS = [
    AttentionConfig(0.3),
    AttentionConfig(0.3, window=6),
    AttentionConfig(0.3, softcap=2.0),
    AttentionConfig(0.2, window=4, softcap=3.0),
]


@pytest.fixture(autouse=True)
def reset_dynamo() -> None:
    """Traces of other tests count against a limit."""
    torch._dynamo.reset()


def random_tree(count: int, max_new: int, seed: int = 0) -> Rows:
    """Rows that branch off from random positions of earlier rows."""
    rng = random.Random(seed)
    rows = [[rng.randrange(5) for _ in range(8)]]
    while len(rows) < count:
        parent, new = rng.choice(rows), rng.randrange(1, max_new)
        prefix = parent[: rng.randrange(1, len(parent))]
        rows.append(prefix + [rng.randrange(5) for _ in range(new)])
    return rows


ROWS = {
    "small tree": random_tree(12, 12),
    "large tree": random_tree(40, 30, seed=1),  # more tokens than a block has
    "ladder": [[1] * n + [2] for n in range(1, 61)],  # as deep as the number of rows
    "single row": [range(9)],
    "no shared tokens": [[1, 2, 3], [4, 5], [6]],
}


def random_qkv(size: int, heads: int = 4, width: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of so many heads, keys and values of two; values of so many features."""
    q, k = torch.randn(1, heads, size, 8), torch.randn(1, 2, size, 8)
    return q, k, torch.randn(1, 2, size, width)


def flex_and_tree(
    packed: PackedTokens, qkv: tuple[Tensor, Tensor, Tensor], config: AttentionConfig
) -> tuple[Tensor, Tensor]:
    return FlexLayout(packed).attend(0, *qkv, config), TreeAttention(packed).attend(0, *qkv, config)


@pytest.mark.slow
@pytest.mark.parametrize("config", fast_cases(2, CONFIGS), ids=str)
@pytest.mark.parametrize("name", fast_cases(1, ROWS))
def test_outputs_match_tree_attention(name: str, config: AttentionConfig):
    packed = pack_rows(ROWS[name])
    actual, expected = flex_and_tree(packed, random_qkv(len(packed.token)), config)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("heads", [2, 8])
def test_query_heads_share_key_heads(heads: int):
    packed = pack_rows(ROWS["small tree"])
    actual, expected = flex_and_tree(
        packed, random_qkv(len(packed.token), heads), AttentionConfig(0.3)
    )
    assert actual.shape == (1, len(packed.token), heads, 8)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_values_may_be_wider_than_keys():
    packed = pack_rows(ROWS["small tree"])
    actual, expected = flex_and_tree(
        packed, random_qkv(len(packed.token), width=16), AttentionConfig(0.3)
    )
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [inf, 5, 8])  # just too short for a row of 9
@pytest.mark.parametrize("name", ROWS)
def test_mask_shows_the_earlier_tokens_of_a_row(name: str, window: float):
    packed = pack_rows(ROWS[name])
    size, mask_mod = len(packed.token), FlexLayout(packed).block_mask(window).mask_mod
    queries, keys = torch.arange(size)[:, None], torch.arange(size)
    expected = torch.zeros(size, size, dtype=torch.bool)
    for row in row_indices(packed, ROWS[name]):
        for n, index in enumerate(row):
            expected[index, row[max(0, n + 1 - int(min(window, size))) : n + 1]] = True
    none = torch.zeros(())
    assert torch.equal(mask_mod(none, none, queries, keys), expected)


@pytest.mark.slow
def test_block_mask_is_created_once_for_each_window():
    packed = pack_rows(ROWS["small tree"])
    flex, qkv = FlexLayout(packed), random_qkv(len(packed.token))
    flex.attend(0, *qkv, AttentionConfig(0.3))
    first = flex.block_masks[inf]
    flex.attend(1, *qkv, AttentionConfig(0.3, window=3))
    flex.attend(2, *qkv, AttentionConfig(0.3))
    assert flex.block_masks[inf] is first
    assert set(flex.block_masks) == {inf, 3}


def test_blocks_without_visible_keys_are_skipped():
    packed = pack_rows([[n] * 256 for n in range(4)])
    blocks = FlexLayout(packed).block_mask(inf).to_dense()[0, 0]
    assert blocks.sum() == 4 * 3  # of two blocks a row, the second also sees the first


def dense_blocks(mask: BlockMask) -> tuple[Tensor, Tensor]:
    """Whether each block of queries sees a part of each block of keys, and whether all of it."""
    partial, full = (
        [(index[:count]).tolist() for index, count in zip(indices[0, 0], counts[0, 0], strict=True)]
        for counts, indices in (
            (mask.kv_num_blocks, mask.kv_indices),
            (mask.full_kv_num_blocks, mask.full_kv_indices),
        )
    )
    size = range(len(partial))
    return tuple(torch.tensor([[k in row for k in size] for row in x]) for x in (partial, full))


TREES = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=300), min_size=1, max_size=6)


@pytest.mark.slow
@pytest.mark.parametrize("window", fast_cases(1, [inf, 1, 40, 200]))
@settings(max_examples=30, deadline=None)
@given(rows=TREES, shared=st.integers(0, 280))
def test_blocks_of_random_rows_are_those_of_the_dense_mask(rows, shared, window):
    packed = pack_rows([[5] * shared + row for row in rows])
    flex, length = FlexLayout(packed), len(packed.token)
    mask = flex.block_mask(window)
    exact: BlockMask = create_block_mask(mask.mask_mod, None, None, length, length, device="cpu")
    partial, full = dense_blocks(mask)
    exact_partial, exact_full = dense_blocks(exact)
    assert torch.equal(full, exact_full)
    if window == inf:
        assert torch.equal(partial, exact_partial)
    else:  # a block without visible pairs may be computed, but no visible pair may be missing
        assert not (exact_partial & ~partial).any()
        assert not (partial & full).any()


def test_positions_are_those_of_the_rows():
    packed = pack_rows(ROWS["large tree"])
    assert torch.equal(FlexLayout(packed).position, packed.position)


@pytest.mark.parametrize("config", fast_cases(2, CONFIGS), ids=str)
def test_float64_outputs_equal_tree_attention(config: AttentionConfig):
    packed = pack_rows(ROWS["large tree"])
    qkv = random_qkv(len(packed.token))
    q, k, v = (x.double() for x in qkv)
    actual, expected = flex_and_tree(packed, (q, k, v), config)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_gradients_through_the_mask_and_softcap_equal_those_of_tree_attention(config):
    packed = pack_rows(ROWS["large tree"])
    qkv = [x.double().requires_grad_() for x in random_qkv(len(packed.token))]
    weight = torch.randn(1, len(packed.token), 4, 8, dtype=torch.float64)
    layouts = FlexLayout(packed, kernel=plain_flex_attention), TreeAttention(packed)
    outputs = [layout.attend(0, *qkv, config) for layout in layouts]
    actual, expected = (torch.autograd.grad((x * weight).sum(), qkv) for x in outputs)
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_outputs_and_gradients_with_sinks_equal_those_of_tree_attention(config):
    packed = pack_rows(ROWS["large tree"])
    inputs = (*random_qkv(len(packed.token)), 2 * torch.randn(4))
    *qkv, sinks = inputs = [x.double().requires_grad_() for x in inputs]
    weight = torch.randn(1, len(packed.token), 4, 8, dtype=torch.float64)
    layouts = FlexLayout(packed, kernel=plain_flex_attention), TreeAttention(packed)
    outputs = [layout.attend(0, *qkv, config, sinks) for layout in layouts]
    torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-9)
    actual, expected = (torch.autograd.grad((x * weight).sum(), inputs) for x in outputs)
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_float32_outputs_with_sinks_match_tree_attention():
    packed = pack_rows(ROWS["small tree"])
    qkv, sinks = random_qkv(len(packed.token)), torch.randn(4)
    layouts = FlexLayout(packed), TreeAttention(packed)
    outputs = [layout.attend(0, *qkv, CONFIGS[1], sinks) for layout in layouts]
    torch.testing.assert_close(*outputs, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@torch.no_grad()
def test_model_hidden_states_match_tree_attention():
    narrow = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 5}
    model = Qwen3ForCausalLM(Qwen3Config(**size, **narrow)).eval()
    hf_attention.switch_to_packed_attention(model)
    packed = pack_rows(ROWS["large tree"])
    hidden = [
        hf_attention.forward_packed(model, packed.token, packed.position, layout(packed))
        for layout in (FlexLayout, TreeAttention)
    ]
    torch.testing.assert_close(*hidden, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no gradients on a CPU")
@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_gradients_match_tree_attention(name: str, config: AttentionConfig):
    packed = pack_rows(ROWS[name]).to(torch.device("cuda"))
    qkv = [x.cuda().repeat(1, 1, 1, 2).requires_grad_() for x in random_qkv(len(packed.token))]
    weight = torch.randn(1, len(packed.token), 4, 16, device="cuda")
    outputs = [x(packed).attend(0, *qkv, config) for x in (FlexLayout, TreeAttention)]
    actual, expected = (torch.autograd.grad((x * weight).sum(), qkv) for x in outputs)
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)

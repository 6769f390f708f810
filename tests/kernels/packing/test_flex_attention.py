import random
from math import inf

import pytest
import torch
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.flex_attention import FlexLayout
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention
from tests.helpers.packed_rows import Rows, laid, places

# of what runs uncompiled torch says, rightly, that it is slow
pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
HOWS = [
    AttentionConfig(0.3),
    AttentionConfig(0.3, window=6),
    AttentionConfig(0.3, softcap=2.0),
    AttentionConfig(0.2, window=4, softcap=3.0),
]


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """What was traced for another test counts against a limit."""
    torch._dynamo.reset()


def bush(rows: int, most: int, seed: int = 0) -> Rows:
    """Rows that go on from anywhere in earlier ones."""
    drawn = random.Random(seed)
    made = [[drawn.randrange(5) for _ in range(8)]]
    while len(made) < rows:
        old, more = drawn.choice(made), drawn.randrange(1, most)
        made.append(old[: drawn.randrange(1, len(old))] + [drawn.randrange(5) for _ in range(more)])
    return made


ROWS = {
    "a bush": bush(12, 12),
    "a wide bush": bush(40, 30, seed=1),  # more tokens than a block has
    "a ladder": [[1] * n + [2] for n in range(1, 61)],  # as deep as there are rows
    "a single row": [range(9)],
    "rows that share nothing": [[1, 2, 3], [4, 5], [6]],
}


def drawn(size: int, heads: int = 4, wide: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of so many heads, and keys and values of two."""
    q, k = torch.randn(1, heads, size, 8), torch.randn(1, 2, size, 8)
    return q, k, torch.randn(1, 2, size, wide)


def both(
    packed: PackedTokens, qkv: tuple[Tensor, Tensor, Tensor], how: AttentionConfig
) -> tuple[Tensor, Tensor]:
    return FlexLayout(packed).attend(0, *qkv, how), TreeAttention(packed).attend(0, *qkv, how)


@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_outputs_are_those_of_the_tree(name: str, how: AttentionConfig):
    packed = laid(ROWS[name])
    ours, theirs = both(packed, drawn(len(packed.token)), how)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("heads", [2, 8])
def test_so_many_query_heads_share_keys_and_values(heads: int):
    packed = laid(ROWS["a bush"])
    ours, theirs = both(packed, drawn(len(packed.token), heads), AttentionConfig(0.3))
    assert ours.shape == (1, len(packed.token), heads, 8)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_values_may_be_wider_than_keys():
    packed = laid(ROWS["a bush"])
    ours, theirs = both(packed, drawn(len(packed.token), wide=16), AttentionConfig(0.3))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("window", [inf, 5, 8])  # a row of 9 is just too long
@pytest.mark.parametrize("name", ROWS)
def test_a_token_sees_what_stands_before_it_in_each_of_its_rows(name: str, window: float):
    packed = laid(ROWS[name])
    size, sees = len(packed.token), FlexLayout(packed).block_mask(window).mask_mod
    asked, seen = torch.arange(size)[:, None], torch.arange(size)
    expected = torch.zeros(size, size, dtype=torch.bool)
    for row in places(packed, ROWS[name]):
        for n, place in enumerate(row):
            expected[place, row[max(0, n + 1 - int(min(window, size))) : n + 1]] = True
    none = torch.zeros(())
    assert torch.equal(sees(none, none, asked, seen), expected)


def test_blocks_are_found_once_for_each_window():
    packed = laid(ROWS["a bush"])
    flex, qkv = FlexLayout(packed), drawn(len(packed.token))
    flex.attend(0, *qkv, AttentionConfig(0.3))
    first = flex.block_masks[inf]
    flex.attend(1, *qkv, AttentionConfig(0.3, window=3))
    flex.attend(2, *qkv, AttentionConfig(0.3))
    assert flex.block_masks[inf] is first
    assert set(flex.block_masks) == {inf, 3}


def test_blocks_that_nobody_sees_are_left_out():
    packed = laid([[n] * 256 for n in range(4)])
    kept = FlexLayout(packed).block_mask(inf).to_dense()[0, 0]
    assert kept.sum() == 4 * 3  # two blocks a row: each itself, the second also the first


@torch.no_grad()
def test_a_model_says_the_same():
    narrow = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "vocab_size": 5}
    model = Qwen3ForCausalLM(Qwen3Config(**size, **narrow)).eval()
    model.set_attn_implementation(hf_attention.ATTENTION_NAME)
    packed = laid(ROWS["a wide bush"])
    said = [
        hf_attention.forward_packed(model, packed.token, packed.position, x(packed))
        for x in (FlexLayout, TreeAttention)
    ]
    torch.testing.assert_close(*said, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="processors give no gradients")
@pytest.mark.parametrize("how", HOWS, ids=str)
@pytest.mark.parametrize("name", ROWS)
def test_gradients_are_those_of_the_tree(name: str, how: AttentionConfig):
    packed = laid(ROWS[name]).to(torch.device("cuda"))
    qkv = [x.cuda().repeat(1, 1, 1, 2).requires_grad_() for x in drawn(len(packed.token))]
    weight = torch.randn(1, len(packed.token), 4, 16, device="cuda")
    said = [x(packed).attend(0, *qkv, how) for x in (FlexLayout, TreeAttention)]
    ours, theirs = (torch.autograd.grad((x * weight).sum(), qkv) for x in said)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)

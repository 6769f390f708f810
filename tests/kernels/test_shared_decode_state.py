"""Attention of continuations that share one cache, with attention sinks."""

import torch

from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.prefix_cache import PrefixCache
from grupo.kernels.shared_decode_state import SharedDecodeState

HEADS, KV_HEADS, SIZE, PROMPT, ROWS = 4, 2, 8, 3, 2


def test_a_sink_takes_part_in_the_softmax_of_each_head_without_a_value():
    torch.manual_seed(0)
    prompt_k, prompt_v = torch.randn(2, PROMPT, KV_HEADS, SIZE)
    cache = PrefixCache(100)
    slots = torch.tensor(cache.insert((), range(PROMPT)))
    cache.write_kv(0, slots, prompt_k, prompt_v)
    state = SharedDecodeState(cache, slots, ROWS)
    state.append(torch.tensor([PROMPT, PROMPT + 5]))
    q = torch.randn(1, HEADS, ROWS, SIZE)
    k, v = torch.randn(2, 1, KV_HEADS, ROWS, SIZE)
    sinks = torch.randn(HEADS)
    out = state.attend(0, q, k, v, AttentionConfig(scale=0.5), sinks)
    for head in range(HEADS):
        group = head // (HEADS // KV_HEADS)
        for row in range(ROWS):
            keys = torch.cat([prompt_k[:, group], k[0, group, row : row + 1]])
            values = torch.cat([prompt_v[:, group], v[0, group, row : row + 1]])
            scores = torch.cat([0.5 * keys @ q[0, head, row], sinks[head : head + 1]])
            expected = scores.softmax(-1)[:-1] @ values
            torch.testing.assert_close(out[0, row, head], expected)

"""Rows of an update on a GPU, and their forward pass: prefixes packed once, or rows padded."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention
from transformers import PreTrainedModel

from benchmarks.gpu_machine import DEVICE, random_prompts
from benchmarks.gpu_sizes import ModelShape
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.flex_attention import FlexLayout
from grupo.kernels.packing.prefix_trie import PackedTokens, pack
from grupo.kernels.packing.tree_attention import TreeAttention


@dataclass(frozen=True)
class PaddedRows:
    """Right-padded prompts with answers, N rows of at most L tokens.

    Args:
        token: token ids.
        length: tokens of each row, without padding.
        row: the row of every answer token.
        column: the position before every answer token, whose hidden state predicts it.
    """

    token: Tensor  # (N, L)
    length: Tensor
    row: Tensor
    column: Tensor

    @property
    def answer_tokens(self) -> Tensor:
        """Return all answer tokens."""
        return self.token[self.row, self.column + 1].to(DEVICE)


def random_rows(shape: ModelShape, prompts: int, answers: int, length: int, new: int) -> PaddedRows:
    """Return random prompts with random answers.

    Args:
        shape: the model's shape, for its vocabulary.
        prompts: number of prompts.
        answers: answers per prompt.
        length: tokens of a prompt.
        new: tokens of the longest answer; the shortest has half of them.
    """
    generator = torch.Generator().manual_seed(2)
    prompt = torch.tensor(random_prompts(shape, prompts, length)).repeat_interleave(answers, 0)
    answer = torch.randint(2, shape.vocab_size, (len(prompt), new), generator=generator)
    count = torch.randint(new // 2, new + 1, (len(prompt),), generator=generator)
    row, column = (torch.arange(new) < count[:, None]).nonzero(as_tuple=True)
    return PaddedRows(torch.cat([prompt, answer], 1), length + count, row, column + length - 1)


@dataclass(frozen=True)
class ForwardResult:
    """The last hidden states that predict answer tokens, and the cost of computing them."""

    hidden: Tensor
    tokens: int  # evaluated tokens, padding included
    attention_pairs: int  # pairs of a token and one that it attends to
    packing_seconds: float = 0.0


ForwardFunction = Callable[[PreTrainedModel, PaddedRows], ForwardResult]


@cache
def single_length_kernel() -> Callable[..., Any]:
    """Return flex_attention compiled for one static length."""

    def uncached_flex_attention(*qkv: Tensor, **options: Any) -> Any:  # avoids torch's compiled one
        return flex_attention(*qkv, **options)

    return torch.compile(uncached_flex_attention, dynamic=False, fullgraph=True)


def packed_forward(
    layout: Callable[[PackedTokens], hf_attention.AttentionLayout],
) -> ForwardFunction:
    """Return a forward pass over packed rows, which evaluates shared prefixes once."""

    def forward(model: PreTrainedModel, rows: PaddedRows) -> ForwardResult:
        hf_attention.switch_to_packed_attention(model)
        start = time.perf_counter()
        packed = pack(rows.token, rows.length)
        packing_seconds = time.perf_counter() - start
        pairs = int((packed.position + 1).sum())
        packed = packed.to(DEVICE)
        hidden = hf_attention.forward_packed(model, packed.token, packed.position, layout(packed))
        index = packed.token_index[rows.row, rows.column]
        return ForwardResult(hidden[index], len(packed.token), pairs, packing_seconds)

    return forward


def padded_forward(model: PreTrainedModel, rows: PaddedRows) -> ForwardResult:
    """Evaluate padded rows with torch's scaled_dot_product_attention."""
    model.set_attn_implementation("sdpa")
    width = int(rows.length.max())
    token = rows.token[:, :width].to(DEVICE)
    hidden = model.base_model(input_ids=token, use_cache=False).last_hidden_state
    pairs = len(token) * width * (width + 1) // 2
    return ForwardResult(hidden[rows.row, rows.column], token.numel(), pairs)


FORWARDS: dict[str, ForwardFunction] = {
    "packed, blocks": packed_forward(TreeAttention),
    "packed, flex": packed_forward(FlexLayout),
    "dense, sdpa": padded_forward,
}
SINGLE_LENGTH_FORWARD = packed_forward(
    lambda packed: FlexLayout(packed, kernel=single_length_kernel())
)

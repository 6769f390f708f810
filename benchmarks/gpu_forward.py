"""Rows of an update on a GPU, and ways to read them: what they share once, or each padded."""

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
    """Answers to prompts, right-padded, and where the states are that answers were drawn from."""

    token: Tensor  # (N, L)
    length: Tensor
    row: Tensor
    column: Tensor

    @property
    def answer_tokens(self) -> Tensor:
        """Every token of an answer."""
        return self.token[self.row, self.column + 1].to(DEVICE)


def random_rows(shape: ModelShape, prompts: int, answers: int, length: int, new: int) -> PaddedRows:
    """So many answers to each prompt, of half of `new` tokens up to all."""
    made = torch.Generator().manual_seed(2)
    prompt = torch.tensor(random_prompts(shape, prompts, length)).repeat_interleave(answers, 0)
    answer = torch.randint(2, shape.vocab_size, (len(prompt), new), generator=made)
    count = torch.randint(new // 2, new + 1, (len(prompt),), generator=made)
    row, column = (torch.arange(new) < count[:, None]).nonzero(as_tuple=True)
    return PaddedRows(torch.cat([prompt, answer], 1), length + count, row, column + length - 1)


@dataclass(frozen=True)
class ForwardResult:
    """Last hidden states where answers were drawn, and how much was done for them."""

    hidden: Tensor
    tokens: int  # that were read
    attention_pairs: int  # of a token and one that it sees
    packing_seconds: float = 0.0  # seconds that rows took to be laid out


ForwardFunction = Callable[[PreTrainedModel, PaddedRows], ForwardResult]


@cache
def single_length_kernel() -> Callable[..., Any]:
    """flex_attention compiled for each length anew."""

    def alone(*qkv: Tensor, **how: Any) -> Any:  # what is compiled already would be found again
        return flex_attention(*qkv, **how)

    return torch.compile(alone, dynamic=False, fullgraph=True)


def packed_forward(
    layout: Callable[[PackedTokens], hf_attention.AttentionLayout],
) -> ForwardFunction:
    """What rows begin with alike read once."""

    def read(model: PreTrainedModel, rows: PaddedRows) -> ForwardResult:
        model.set_attn_implementation(hf_attention.ATTENTION_NAME)
        began = time.perf_counter()
        one = pack(rows.token, rows.length)
        laying, pairs = time.perf_counter() - began, int((one.position + 1).sum())
        on = one.to(DEVICE)
        hidden = hf_attention.forward_packed(model, on.token, on.position, layout(on))
        return ForwardResult(
            hidden[on.token_index[rows.row, rows.column]], len(one.token), pairs, laying
        )

    return read


def padded_forward(model: PreTrainedModel, rows: PaddedRows) -> ForwardResult:
    """Row by row, padded, by torch's own attention."""
    model.set_attn_implementation("sdpa")
    width = int(rows.length.max())
    token = rows.token[:, :width].to(DEVICE)
    hidden = model.base_model(input_ids=token, use_cache=False).last_hidden_state
    pairs = len(token) * width * (width + 1) // 2
    return ForwardResult(hidden[rows.row, rows.column], token.numel(), pairs)


FORWARDS: dict[str, ForwardFunction] = {
    "packed, parts": packed_forward(TreeAttention),
    "packed, flex": packed_forward(FlexLayout),
    "dense, sdpa": padded_forward,
}
SINGLE_LENGTH_FORWARD = packed_forward(lambda one: FlexLayout(one, kernel=single_length_kernel()))

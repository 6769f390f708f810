"""Which attention updates and scoring use: flex_attention on a GPU where a trial passes."""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf

import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels.float32_precision import full_float32
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.attention_recorder import AttentionRecorder
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.flex_attention import BLOCK, FlexLayout
from grupo.kernels.packing.hf_attention import AttentionLayout
from grupo.kernels.packing.prefix_trie import PackedTokens, pack
from grupo.kernels.packing.tree_attention import TreeAttention

logger = logging.getLogger(__name__)

PackedAttention = Callable[[PackedTokens], AttentionLayout]  # attention over packed rows
TOLERANCE = {torch.bfloat16: 3e-2, torch.float16: 1e-2}  # relative errors; others: 1e-4
TRIAL_WINDOW = BLOCK // 2  # shorter than the rows of a trial


def packed_attention_for(model: PreTrainedModel, dtype: torch.dtype) -> PackedAttention:
    """`FlexLayout` on CUDA if it passes a trial for every layer, otherwise `TreeAttention`.

    Args:
        model: uses packed attention.
        dtype: of its computations.
    """
    if model.device.type != "cuda":
        return TreeAttention
    is_correct = all(
        is_flex_correct(trial, model.device, dtype) for trial in attention_trials(model)
    )
    return FlexLayout if is_correct else TreeAttention


@dataclass(frozen=True)
class AttentionTrial:
    """Attention of one kind of layer: numbers of heads and of their features, and configuration.

    `has_sinks`: each head has a score without a value.
    """

    heads: int
    kv_heads: int
    key_size: int
    value_size: int
    config: AttentionConfig
    has_sinks: bool = False


@torch.no_grad()
def attention_trials(model: PreTrainedModel) -> list[AttentionTrial]:
    """A trial for each kind of layer of a model that uses packed attention."""
    packed = pack(torch.zeros(1, 2, dtype=torch.long), torch.tensor([2])).to(model.device)
    recorder = AttentionRecorder(TreeAttention(packed))
    hf_attention.forward_packed(model, packed.token, packed.position, recorder)
    trials = (
        AttentionTrial(*recorder.shapes[layer], _for_trial(config), recorder.has_sinks[layer])
        for layer, config in recorder.configs.items()
    )
    return list(dict.fromkeys(trials))


def _for_trial(config: AttentionConfig) -> AttentionConfig:
    """The configuration with a window, if there is one, that is shorter than the trial's rows."""
    windowed = config.window < inf
    return replace(config, window=min(config.window, TRIAL_WINDOW)) if windowed else config


@cache
def is_flex_correct(trial: AttentionTrial, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether flex_attention equals tree attention in float32, with its gradients.

    The reason against it is logged once.
    """
    try:
        error = _relative_error(trial, device, dtype)
        is_correct = error < TOLERANCE.get(dtype, 1e-4)
        reason = f"its results differ by {error:.1e}"
    # torch, its compiler, and that of the GPU raise errors of many types
    except Exception as failure:
        is_correct = False
        reason = f"{type(failure).__name__}: {next(iter(str(failure).strip().splitlines()), '')}"
    if not is_correct:
        logger.warning("flex_attention is not used on %s, updates are slower: %s", device, reason)
    return is_correct


@full_float32()
@torch.autocast("cuda", enabled=False)
def _relative_error(trial: AttentionTrial, device: torch.device, dtype: torch.dtype) -> float:
    """The largest relative error of outputs and gradients of flex_attention."""
    packed = _trial_rows().to(device)
    sizes = (trial.heads, trial.key_size), (trial.kv_heads, trial.key_size)
    sizes = *sizes, (trial.kv_heads, trial.value_size), (trial.heads, trial.value_size)
    numbers = torch.Generator().manual_seed(0)
    length = len(packed.token)
    q, k, v, weight = (
        torch.randn(1, heads, length, size, generator=numbers).to(device, dtype)
        for heads, size in sizes
    )
    sinks = torch.randn(trial.heads, generator=numbers).to(device, dtype)
    inputs = (q, k, v, sinks) if trial.has_sinks else (q, k, v)
    flex = FlexLayout(packed)
    with torch.no_grad():  # scoring has a kernel of its own
        scored = flex.attend(0, q, k, v, trial.config, *inputs[3:])
    exact = torch.promote_types(dtype, torch.float32)
    actual = _attend(flex, inputs, weight, trial.config)
    tree = TreeAttention(packed)
    expected = _attend(tree, [x.to(exact) for x in inputs], weight, trial.config)
    pairs = zip([scored, *actual], [expected[0], *expected], strict=True)
    return max(float((a.to(exact) - b).norm() / b.norm()) for a, b in pairs)


def _trial_rows() -> PackedTokens:
    """Answers to two prompts, in several blocks of the mask."""
    rng = random.Random(0)
    rows: list[list[int]] = []
    for _ in range(2):
        prompt = [rng.randrange(9) for _ in range(BLOCK + 9)]
        rows += [[*prompt, *(rng.randrange(9) for _ in range(BLOCK // 2))] for _ in range(3)]
    return pack(torch.tensor(rows), torch.full((len(rows),), len(rows[0])))


def _attend(
    layout: AttentionLayout, inputs: Sequence[Tensor], weight: Tensor, config: AttentionConfig
) -> list[Tensor]:
    """Outputs, and gradients of queries, keys and values, and of sinks if there are any."""
    with torch.enable_grad():
        q, k, v, *sinks = leaves = [x.detach().requires_grad_() for x in inputs]
        out = layout.attend(0, q, k, v, config, *sinks)
        return [out.detach(), *torch.autograd.grad(out, leaves, weight.transpose(1, 2).to(out))]

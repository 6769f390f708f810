"""Tiny mixtures of experts with random weights, of five families, and one that is not packed."""

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    DeepseekV3Config,
    GptOssConfig,
    MixtralConfig,
    OlmoeConfig,
    Qwen3MoeConfig,
    Qwen3NextConfig,
)

from tests.helpers.attention_models import NARROW, RANKS
from tests.helpers.tiny_lm import ENDS, WIDE, tokenizer

ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
SIZES = {"num_experts": 8, "num_experts_per_tok": 2}
ROUTED = {"n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1}
MOE: dict[str, Any] = {
    "qwen3_moe": lambda: Qwen3MoeConfig(**WIDE, **ENDS, **SIZES, moe_intermediate_size=16),
    "mixtral": lambda: MixtralConfig(**WIDE, **ENDS, num_local_experts=4),
    "olmoe": lambda: OlmoeConfig(**NARROW, **ENDS, **SIZES),
    "deepseek_v3": lambda: DeepseekV3Config(
        **{**NARROW, "num_hidden_layers": 3, "first_k_dense_replace": 1, "num_key_value_heads": 4},
        **ENDS,
        **ROUTED,
        **RANKS,
        v_head_dim=8,
        moe_intermediate_size=16,
    ),
    "gpt_oss": lambda: GptOssConfig(
        **WIDE,
        **ENDS,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=8,
        rope_parameters=ROPE,
    ),
}


PADDED: dict[str, Any] = {  # some layers have no attention
    "qwen3_next": lambda: Qwen3NextConfig(
        **WIDE,
        **ENDS,
        **SIZES,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
    ),
}


def save_moe(folder: Path, family: str, deviation: float = 0.4, **changes: int) -> str:
    """Save a random model, and its tokenizer; weights of a large deviation peak its distributions.

    Args:
        folder: Folder of the model.
        family: A family of `MOE` or `PADDED`.
        deviation: Standard deviation of the weights; the family's own one is 0.02.
        changes: Numbers of the configuration, by name.
    """
    torch.manual_seed(1)
    config = {**MOE, **PADDED}[family]()
    config.update(changes)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, deviation)
        for buffer in (b for name, b in model.named_buffers() if name.endswith("correction_bias")):
            buffer.normal_(
                0, 0.1
            )  # of the choice of DeepSeek-V3, which is trained without gradients
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)

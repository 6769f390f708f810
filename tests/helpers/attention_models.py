"""More families than `tiny_lm`: with windows, experts, sinks, values narrower than keys."""

from typing import Any

from transformers import (
    DeepseekV3Config,
    GPTNeoConfig,
    GPTNeoXConfig,
    GptOssConfig,
    MistralConfig,
    MixtralConfig,
)

from tests.helpers.tiny_lm import ENDS, FAMILIES, WIDE

NARROW = {name: WIDE[name] for name in WIDE if name not in ("head_dim", "num_key_value_heads")}
EXPERTS = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
RANKS = {"q_lora_rank": None, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8}
SUPPORTED: dict[str, Any] = {
    **FAMILIES,
    "mistral": lambda: MistralConfig(**WIDE, **ENDS, sliding_window=4),
    "gpt_neox": lambda: GPTNeoXConfig(**NARROW, **ENDS),
    "mixtral": lambda: MixtralConfig(**WIDE, **ENDS, num_local_experts=4),
    "deepseek_v3": lambda: DeepseekV3Config(
        **NARROW, **ENDS, **EXPERTS, **RANKS, v_head_dim=8, moe_intermediate_size=16
    ),
    "gpt_oss": lambda: GptOssConfig(
        **WIDE,
        **ENDS,
        num_local_experts=4,
        sliding_window=4,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    ),
}
# an attention function of its own
UNSUPPORTED: dict[str, Any] = {
    "gpt_neo": lambda: GPTNeoConfig(
        hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global"], 2]], **ENDS
    ),
}

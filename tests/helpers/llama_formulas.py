"""A Llama-style model as papers define it: one row after another, nothing packed.

Linear layers are the model's own, with adapters if there are any.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import silu

from grupo.kernels.packing.block_attention import AttentionConfig
from tests.helpers.packed_rows import reference_attention


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) times the weight. Zhang and Sennrich, 2019, arXiv:1910.07467."""
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotates each pair (x_i, x_{i + d/2}) by its angle. Su et al., 2021, arXiv:2104.09864."""
    a, b = x.chunk(2, -1)
    return x * cos[:, None] + torch.cat([-b, a], -1) * sin[:, None]


def attention(x: Tensor, module: Any, config: Any, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Causal grouped-query attention, in a sliding window if the config has one."""
    heads = (-1, module.head_dim)
    projections = module.q_proj, module.k_proj, module.v_proj
    q, k, v = (project(x).unflatten(-1, heads) for project in projections)
    if hasattr(module, "q_norm"):
        q = norm(q, module.q_norm.weight, config.rms_norm_eps)
        k = norm(k, module.k_norm.weight, config.rms_norm_eps)
    window = getattr(config, "sliding_window", None) or torch.inf
    attention_config = AttentionConfig(module.head_dim**-0.5, window)
    out = reference_attention(rotate(q, *angles), rotate(k, *angles), v, attention_config)
    return module.o_proj(out.flatten(1))


def swiglu(x: Tensor, mlp: Any) -> Tensor:
    """Shazeer, 2020, arXiv:2002.05202, eq. 6."""
    return mlp.down_proj(silu(mlp.gate_proj(x)) * mlp.up_proj(x))


def hidden_states(model: Any, row: list[int]) -> Tensor:
    """Last hidden states (n, h) of a row."""
    base_model, config = model.base_model, model.config
    x = base_model.embed_tokens.weight[row]
    # angles are the model's: transformers rounds them to float32, whatever the dtype
    cos, sin = (part[0] for part in base_model.rotary_emb(x, torch.arange(len(row))[None]))
    for layer in base_model.layers:
        normed = norm(x, layer.input_layernorm.weight, config.rms_norm_eps)
        x = x + attention(normed, layer.self_attn, config, (cos, sin))
        normed = norm(x, layer.post_attention_layernorm.weight, config.rms_norm_eps)
        x = x + swiglu(normed, layer.mlp)
    return norm(x, base_model.norm.weight, config.rms_norm_eps)

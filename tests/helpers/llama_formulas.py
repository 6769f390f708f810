"""A body of the family of Llama as papers write it: one row after another, nothing packed."""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, silu

from grupo.kernels.packing.block_attention import AttentionConfig
from tests.helpers.packed_rows import by_definition


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) times weights. Zhang and Sennrich, 2019, arXiv:1910.07467."""
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * weight


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Each pair of (x_i, x_{i + d/2}) turned by its angle. Su et al., 2021, arXiv:2104.09864."""
    a, b = x.chunk(2, -1)
    return x * cos[:, None] + torch.cat([-b, a], -1) * sin[:, None]


def attended(x: Tensor, own: Any, config: Any, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Causal attention, several heads of queries to one of keys, in a window if there is one."""
    heads = (-1, own.head_dim)
    q, k, v = (linear(x, p.weight, p.bias) for p in (own.q_proj, own.k_proj, own.v_proj))
    q, k, v = (part.unflatten(-1, heads) for part in (q, k, v))
    if hasattr(own, "q_norm"):
        q = norm(q, own.q_norm.weight, config.rms_norm_eps)
        k = norm(k, own.k_norm.weight, config.rms_norm_eps)
    window = getattr(config, "sliding_window", None) or torch.inf
    how = AttentionConfig(own.head_dim**-0.5, window)
    seen = by_definition(turned(q, *angles), turned(k, *angles), v, how)
    return seen.flatten(1) @ own.o_proj.weight.T


def swiglu(x: Tensor, mlp: Any) -> Tensor:
    """Shazeer, 2020, arXiv:2002.05202, eq. 6."""
    return (silu(x @ mlp.gate_proj.weight.T) * (x @ mlp.up_proj.weight.T)) @ mlp.down_proj.weight.T


def hidden(model: Any, row: list[int]) -> Tensor:
    """What the last layer says of every token of a row, (n, h)."""
    body, config = model.base_model, model.config
    x = body.embed_tokens.weight[row]
    # angles are the model's: transformers rounds them to float32, whatever it computes in
    cos, sin = (part[0] for part in body.rotary_emb(x, torch.arange(len(row))[None]))
    for layer in body.layers:
        normed = norm(x, layer.input_layernorm.weight, config.rms_norm_eps)
        x = x + attended(normed, layer.self_attn, config, (cos, sin))
        normed = norm(x, layer.post_attention_layernorm.weight, config.rms_norm_eps)
        x = x + swiglu(normed, layer.mlp)
    return norm(x, body.norm.weight, config.rms_norm_eps)

"""Structure of Llama-style models, with or without adapters, and the types of their weights."""

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from grupo.kernels.llama.low_rank import base_linear, is_plain_linear, low_rank_of
from grupo.kernels.packing.hf_attention import text_decoder

MODULE_NAMES = (
    {"embed_tokens", "layers", "norm", "rotary_emb"},
    {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
    {"gate_proj", "up_proj", "down_proj", "act_fn"},
)
ATTENTION_NAMES = {"q_proj", "k_proj", "v_proj", "o_proj"}
NORM_NAMES = {"q_norm", "k_norm"}
DYNAMIC_ROPE_TYPES = {"dynamic", "longrope"}  # angles that depend on the length of the input


def is_llama(model: PreTrainedModel) -> bool:
    """Whether the model consists of exactly the modules of a Llama, of the plain kinds.

    Linear layers may have adapters of plain LoRA.
    """
    base_model = text_decoder(model)
    if child_names(base_model) != MODULE_NAMES[0] or not len(base_model.layers):
        return False
    rope_type = getattr(base_model.rotary_emb, "rope_type", "default")
    static_rope = isinstance(rope_type, str) and rope_type not in DYNAMIC_ROPE_TYPES
    return (
        static_rope
        and _is_rms_norm(base_model.norm)
        and all(_is_plain_layer(layer) for layer in base_model.layers)
    )


def has_adapters(model: PreTrainedModel) -> bool:
    """Whether any linear layer of a model for which `is_llama` holds has an adapter."""
    layers = text_decoder(model).layers
    return any(low_rank_of(x) for layer in layers for x in projections(layer).values())


def stores_bfloat16(model: PreTrainedModel) -> bool:
    """Whether any weight of the layers is stored in bfloat16."""
    return any(p.dtype == torch.bfloat16 for p in text_decoder(model).parameters())


def activation_dtype(model: PreTrainedModel) -> torch.dtype | None:
    """Type of activations: that of the weights, or float32 above weights in bfloat16.

    None if weights are stored in other types than these.
    """
    dtypes = {p.dtype for p in text_decoder(model).parameters()}
    wide = dtypes - {torch.bfloat16} or {torch.float32}
    is_known = wide == {torch.float32} or dtypes == {torch.float64}
    return wide.pop() if is_known else None


def child_names(module: nn.Module) -> set[str]:
    """Names of the modules directly below a module."""
    return {name for name, _ in module.named_children()}


def projections(layer: Any) -> dict[str, Any]:
    """The linear layers, by the names of their weights in `layer.h`."""
    attention = {name: getattr(layer.self_attn, f"{name}_proj") for name in "qkvo"}
    mlp = {name: getattr(layer.mlp, f"{name}_proj") for name in ("gate", "up", "down")}
    return attention | mlp


def _is_plain_layer(layer: Any) -> bool:
    if child_names(layer) != MODULE_NAMES[1] or child_names(layer.mlp) != MODULE_NAMES[2]:
        return False
    attention = layer.self_attn
    if child_names(attention) - NORM_NAMES != ATTENTION_NAMES:
        return False
    linear = projections(layer)
    return (
        all(map(is_plain_linear, linear.values()))
        and all(base_linear(linear[name]).bias is None for name in ("o", "gate", "up", "down"))
        and isinstance(layer.mlp.act_fn, nn.SiLU | type(_silu()))
        and _is_rms_norm(layer.input_layernorm)
        and _is_rms_norm(layer.post_attention_layernorm)
        and all(p.is_contiguous() for p in layer.parameters())
    )


def _is_rms_norm(norm: nn.Module) -> bool:
    """Whether the module has the parameters of an RMS norm: a weight and an epsilon."""
    names = [name for name, _ in norm.named_parameters()]
    return names == ["weight"] and hasattr(norm, "variance_epsilon")


def _silu() -> nn.Module:
    from transformers.activations import ACT2FN

    return ACT2FN["silu"]

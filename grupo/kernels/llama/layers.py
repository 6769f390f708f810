"""Structure and weights of Llama-style models."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels import native
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.hf_attention import text_decoder

MODULE_NAMES = (
    {"embed_tokens", "layers", "norm", "rotary_emb"},
    {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
    {"gate_proj", "up_proj", "down_proj", "act_fn"},
)
ATTENTION_NAMES = {"q_proj", "k_proj", "v_proj", "o_proj"}
NORM_NAMES = {"q_norm", "k_norm"}
DYNAMIC_ROPE_TYPES = {"dynamic", "longrope"}  # angles that depend on the length of the input


@dataclass(frozen=True)
class LayerWeights:
    """Weights of a layer, by their names in `layer.h`, and its attention configuration."""

    weights: Mapping[str, Tensor]
    attention_config: AttentionConfig

    def __getattr__(self, name: str) -> Tensor:
        return self.weights[name]

    @property
    def pointers(self) -> ctypes_structs.LayerPointers:
        """Addresses of the weights, which may change between calls."""
        addresses = {name: native.data_pointer(x) for name, x in self.weights.items()}
        return ctypes_structs.LayerPointers(
            **addresses, scale=self.attention_config.scale, window=self.attention_config.int_window
        )


def is_llama(model: PreTrainedModel) -> bool:
    """Whether the model consists of exactly the modules of a Llama, of the plain kinds."""
    base_model = text_decoder(model)
    if _child_names(base_model) != MODULE_NAMES[0] or not len(base_model.layers):
        return False
    rope_type = getattr(base_model.rotary_emb, "rope_type", "default")
    static_rope = isinstance(rope_type, str) and rope_type not in DYNAMIC_ROPE_TYPES
    return (
        static_rope
        and _is_rms_norm(base_model.norm)
        and all(_is_plain_layer(layer) for layer in base_model.layers)
    )


def llama_layers(
    model: PreTrainedModel, attention_configs: Mapping[int, AttentionConfig]
) -> tuple[LayerWeights, ...]:
    """The layers of a model for which `is_llama` holds."""
    base_model = text_decoder(model)
    return tuple(
        LayerWeights(dict(_layer_weights(layer)), attention_configs[i])
        for i, layer in enumerate(base_model.layers)
    )


def model_shape(base_model: Any, layers: Sequence[LayerWeights]) -> ctypes_structs.ModelShape:
    """Sizes of a model, as the C functions take them."""
    weights = layers[0].weights
    final_norm = base_model.norm.weight
    head_dim = base_model.layers[0].self_attn.head_dim
    calls = native.gemm_address(final_norm.dtype), native.set_threads_address()
    heads = len(weights["q"]) // head_dim, len(weights["k"]) // head_dim
    sizes = len(layers), len(final_norm), *heads, head_dim, len(weights["gate"])
    return ctypes_structs.ModelShape(
        *calls, torch.get_num_threads(), *sizes, base_model.norm.variance_epsilon
    )


def _child_names(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


def _is_plain_layer(layer: Any) -> bool:
    if _child_names(layer) != MODULE_NAMES[1] or _child_names(layer.mlp) != MODULE_NAMES[2]:
        return False
    attention = layer.self_attn
    mlp = layer.mlp
    linear = [x for part in (attention, mlp) for x in part.children() if type(x) is nn.Linear]
    unbiased = attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj
    return (
        _child_names(attention) - NORM_NAMES == ATTENTION_NAMES
        and len(linear) == 7
        and all(x.bias is None for x in linear if x in unbiased)
        and isinstance(mlp.act_fn, nn.SiLU | type(_silu()))
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


def _layer_weights(layer: Any) -> Iterator[tuple[str, Tensor]]:
    attention = layer.self_attn
    mlp = layer.mlp
    yield "norm", layer.input_layernorm.weight
    for name in "qkv":
        linear = getattr(attention, f"{name}_proj")
        yield name, linear.weight
        if linear.bias is not None:
            yield f"{name}b", linear.bias
    for name in sorted(NORM_NAMES & _child_names(attention)):
        yield f"{name[0]}n", getattr(attention, name).weight
    yield "o", attention.o_proj.weight
    yield "norm2", layer.post_attention_layernorm.weight
    for name in ("gate", "up", "down"):
        yield name, getattr(mlp, f"{name}_proj").weight

"""What is in a body of the family of Llama, if it is one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels import native
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.packing.block_attention import AttentionConfig

MODULE_NAMES = (
    {"embed_tokens", "layers", "norm", "rotary_emb"},
    {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
    {"gate_proj", "up_proj", "down_proj", "act_fn"},
)
ATTENTION_NAMES = {"q_proj", "k_proj", "v_proj", "o_proj"}
NORM_NAMES = {"q_norm", "k_norm"}
DYNAMIC_ROPE_TYPES = {"dynamic", "longrope"}  # kinds of angles that change as rows grow


@dataclass(frozen=True)
class LayerWeights:
    """The weights of a layer by the names that C has for them, and how it attends."""

    weights: Mapping[str, Tensor]
    attention_config: AttentionConfig

    def __getattr__(self, name: str) -> Tensor:
        return self.weights[name]

    @property
    def pointers(self) -> ctypes_structs.LayerPointers:
        """What C is told of it; where its weights are may change."""
        places = {name: native.data_pointer(x) for name, x in self.weights.items()}
        return ctypes_structs.LayerPointers(
            **places, scale=self.attention_config.scale, window=self.attention_config.int_window
        )


def is_llama(model: PreTrainedModel) -> bool:
    """Has the model the parts of a Llama, and nothing but plain ones?"""
    body: Any = model.base_model
    if _child_names(body) != MODULE_NAMES[0] or not len(body.layers):
        return False
    kind = getattr(body.rotary_emb, "rope_type", "default")
    steady = isinstance(kind, str) and kind not in DYNAMIC_ROPE_TYPES
    return (
        steady and _is_rms_norm(body.norm) and all(_is_plain_layer(layer) for layer in body.layers)
    )


def llama_layers(
    model: PreTrainedModel, attention_configs: Mapping[int, AttentionConfig]
) -> tuple[LayerWeights, ...]:
    """The layers of a body that is `is_llama`."""
    body: Any = model.base_model
    return tuple(
        LayerWeights(dict(_layer_weights(x)), attention_configs[i])
        for i, x in enumerate(body.layers)
    )


def model_shape(base_model: Any, layers: Sequence[LayerWeights]) -> ctypes_structs.ModelShape:
    """What C is told of a body."""
    first, final, size = (
        layers[0].weights,
        base_model.norm.weight,
        base_model.layers[0].self_attn.head_dim,
    )
    calls = native.gemm_address(final.dtype), native.set_threads_address()
    heads = len(first["q"]) // size, len(first["k"]) // size
    sizes = len(layers), len(final), *heads, size, len(first["gate"])
    return ctypes_structs.ModelShape(
        *calls, torch.get_num_threads(), *sizes, base_model.norm.variance_epsilon
    )


def _child_names(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


def _is_plain_layer(layer: Any) -> bool:
    if _child_names(layer) != MODULE_NAMES[1] or _child_names(layer.mlp) != MODULE_NAMES[2]:
        return False
    own, mlp = layer.self_attn, layer.mlp
    linear = [x for part in (own, mlp) for x in part.children() if type(x) is nn.Linear]
    unbiased = own.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj
    return (
        _child_names(own) - NORM_NAMES == ATTENTION_NAMES
        and len(linear) == 7
        and all(x.bias is None for x in linear if x in unbiased)
        and isinstance(mlp.act_fn, nn.SiLU | type(_silu()))
        and _is_rms_norm(layer.input_layernorm)
        and _is_rms_norm(layer.post_attention_layernorm)
        and all(p.is_contiguous() for p in layer.parameters())
    )


def _is_rms_norm(norm: nn.Module) -> bool:
    """Is it by the root of the mean square, times weights, and nothing more?"""
    named = [name for name, _ in norm.named_parameters()]
    return named == ["weight"] and hasattr(norm, "variance_epsilon")


def _silu() -> nn.Module:
    from transformers.activations import ACT2FN

    return ACT2FN["silu"]


def _layer_weights(layer: Any) -> Iterator[tuple[str, Tensor]]:
    own, mlp = layer.self_attn, layer.mlp
    yield "norm", layer.input_layernorm.weight
    for name in "qkv":
        linear = getattr(own, f"{name}_proj")
        yield name, linear.weight
        if linear.bias is not None:
            yield f"{name}b", linear.bias
    yield from (
        (f"{name[0]}n", getattr(own, name).weight)
        for name in sorted(NORM_NAMES & _child_names(own))
    )
    yield "o", own.o_proj.weight
    yield "norm2", layer.post_attention_layernorm.weight
    yield from ((name, getattr(mlp, f"{name}_proj").weight) for name in ("gate", "up", "down"))

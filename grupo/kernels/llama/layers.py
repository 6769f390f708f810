"""What is in a body of the family of Llama, if it is one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels import native
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.packing.block_attention import How

PARTS = (
    {"embed_tokens", "layers", "norm", "rotary_emb"},
    {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"},
    {"gate_proj", "up_proj", "down_proj", "act_fn"},
)
ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}
NORMS = {"q_norm", "k_norm"}
MOVING = {"dynamic", "longrope"}  # kinds of angles that change as rows grow


@dataclass(frozen=True)
class Layer:
    """The weights of a layer by the names that C has for them, and how it attends."""

    weights: Mapping[str, Tensor]
    how: How

    def __getattr__(self, name: str) -> Tensor:
        return self.weights[name]

    @property
    def told(self) -> ctypes_structs.Layer:
        """What C is told of it; where its weights are may change."""
        places = {name: native.at(x) for name, x in self.weights.items()}
        return ctypes_structs.Layer(**places, scale=self.how.scale, window=self.how.reach)


def of_llama(model: PreTrainedModel) -> bool:
    """Has the model the parts of a Llama, and nothing but plain ones?"""
    body: Any = model.base_model
    if _names(body) != PARTS[0] or not len(body.layers):
        return False
    kind = getattr(body.rotary_emb, "rope_type", "default")
    steady = isinstance(kind, str) and kind not in MOVING
    return steady and _rms(body.norm) and all(_plain(layer) for layer in body.layers)


def layers_of(model: PreTrainedModel, hows: Mapping[int, How]) -> tuple[Layer, ...]:
    """The layers of a body that is `of_llama`."""
    body: Any = model.base_model
    return tuple(Layer(dict(_weights(x)), hows[i]) for i, x in enumerate(body.layers))


def shape_of(body: Any, layers: Sequence[Layer]) -> ctypes_structs.Shape:
    """What C is told of a body."""
    first, final, size = layers[0].weights, body.norm.weight, body.layers[0].self_attn.head_dim
    calls = native.gemm(final.dtype), native.alone()
    heads = len(first["q"]) // size, len(first["k"]) // size
    sizes = len(layers), len(final), *heads, size, len(first["gate"])
    return ctypes_structs.Shape(*calls, torch.get_num_threads(), *sizes, body.norm.variance_epsilon)


def _names(module: nn.Module) -> set[str]:
    return {name for name, _ in module.named_children()}


def _plain(layer: Any) -> bool:
    if _names(layer) != PARTS[1] or _names(layer.mlp) != PARTS[2]:
        return False
    own, mlp = layer.self_attn, layer.mlp
    linear = [x for part in (own, mlp) for x in part.children() if type(x) is nn.Linear]
    unbiased = own.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj
    return (
        _names(own) - NORMS == ATTENTION
        and len(linear) == 7
        and all(x.bias is None for x in linear if x in unbiased)
        and isinstance(mlp.act_fn, nn.SiLU | type(_silu()))
        and _rms(layer.input_layernorm)
        and _rms(layer.post_attention_layernorm)
        and all(p.is_contiguous() for p in layer.parameters())
    )


def _rms(norm: nn.Module) -> bool:
    """Is it by the root of the mean square, times weights, and nothing more?"""
    named = [name for name, _ in norm.named_parameters()]
    return named == ["weight"] and hasattr(norm, "variance_epsilon")


def _silu() -> nn.Module:
    from transformers.activations import ACT2FN

    return ACT2FN["silu"]


def _weights(layer: Any) -> Iterator[tuple[str, Tensor]]:
    own, mlp = layer.self_attn, layer.mlp
    yield "norm", layer.input_layernorm.weight
    for name in "qkv":
        linear = getattr(own, f"{name}_proj")
        yield name, linear.weight
        if linear.bias is not None:
            yield f"{name}b", linear.bias
    yield from ((f"{name[0]}n", getattr(own, name).weight) for name in sorted(NORMS & _names(own)))
    yield "o", own.o_proj.weight
    yield "norm2", layer.post_attention_layernorm.weight
    yield from ((name, getattr(mlp, f"{name}_proj").weight) for name in ("gate", "up", "down"))

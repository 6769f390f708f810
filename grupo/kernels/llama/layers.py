"""Weights of Llama-style models, layer by layer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels import native
from grupo.kernels.llama import ctypes_structs
from grupo.kernels.llama.low_rank import LowRank, base_linear, low_rank_of
from grupo.kernels.llama.structure import NORM_NAMES, child_names, projections
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.hf_attention import text_decoder


class Upcasts:
    """Copies of weights in the type of activations, where they are stored in another one.

    Args:
        dtype: type of activations.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.pairs: list[tuple[Tensor, Tensor]] = []  # each copy, and the stored weight

    def of(self, weight: Tensor) -> Tensor:
        """The weight itself, or a copy that `refresh` keeps up to date."""
        if weight.dtype == self.dtype:
            return weight
        self.pairs.append((weight.detach().to(self.dtype), weight))
        return self.pairs[-1][0]

    def refresh(self) -> None:
        """Bring the copies up to date."""
        for copy, weight in self.pairs:
            copy.copy_(weight.detach())


@dataclass(frozen=True)
class LayerWeights:
    """Weights of a layer, by their names in `layer.h`, and its attention configuration.

    Args:
        stored: the weights as the model stores them.
        weights: the same; of vectors, which C reads, those in the type of activations.
        attention_config: configuration of the attention.
        low_rank: adapters of projections, by the projection's name.
    """

    stored: Mapping[str, Tensor]
    weights: Mapping[str, Tensor]
    attention_config: AttentionConfig
    low_rank: Mapping[str, LowRank] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Tensor:
        return self.weights[name]

    @property
    def pointers(self) -> ctypes_structs.LayerPointers:
        """Addresses of the weights, which may change between calls."""
        addresses = {name: native.data_pointer(x) for name, x in self.weights.items()}
        return ctypes_structs.LayerPointers(
            **addresses, scale=self.attention_config.scale, window=self.attention_config.int_window
        )

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """The stored weights, and the matrices of enabled adapters as "q.a", "q.b"."""
        enabled = {name: x for name, x in self.low_rank.items() if x.is_enabled}
        first = {f"{name}.a": low_rank.a for name, low_rank in enabled.items()}
        second = {f"{name}.b": low_rank.b for name, low_rank in enabled.items()}
        return {**self.stored, **first, **second}

    def adapter(self, name: str) -> LowRank | None:
        """The low-rank term of a projection, if there is one that is enabled."""
        low_rank = self.low_rank.get(name)
        return low_rank if low_rank and low_rank.is_enabled else None

    def is_trained(self, *names: str) -> bool:
        """Whether any of the stored weights with these names needs a gradient."""
        return any(self.stored[name].requires_grad for name in names if name in self.stored)

    @torch.no_grad()
    def effective_weight(self, name: str) -> Tensor:
        """The weight of a projection with its adapter merged, in the type of activations."""
        weight = self.weights[name].to(self.norm.dtype)
        low_rank = self.adapter(name)
        return low_rank.merged_into(weight) if low_rank else weight


def llama_layers(
    model: PreTrainedModel, attention_configs: Mapping[int, AttentionConfig], upcasts: Upcasts
) -> tuple[LayerWeights, ...]:
    """The layers of a model for which `is_llama` holds."""
    layers = enumerate(text_decoder(model).layers)
    return tuple(_layer_weights(layer, attention_configs[i], upcasts) for i, layer in layers)


def model_shape(base_model: Any, layers: Sequence[LayerWeights]) -> ctypes_structs.ModelShape:
    """Sizes of a model, as the C functions take them."""
    weights = layers[0].weights
    head_dim = base_model.layers[0].self_attn.head_dim
    calls = native.gemm_address(weights["norm"].dtype), native.set_threads_address()
    heads = len(weights["q"]) // head_dim, len(weights["k"]) // head_dim
    sizes = len(layers), len(weights["norm"]), *heads, head_dim, len(weights["gate"])
    return ctypes_structs.ModelShape(
        *calls, torch.get_num_threads(), *sizes, base_model.norm.variance_epsilon
    )


def _layer_weights(layer: Any, config: AttentionConfig, upcasts: Upcasts) -> LayerWeights:
    stored = dict(_stored_weights(layer))
    weights = {name: x if x.ndim > 1 else upcasts.of(x) for name, x in stored.items()}
    terms = {name: low_rank_of(linear) for name, linear in projections(layer).items()}
    low_rank = {name: term for name, term in terms.items() if term}
    return LayerWeights(stored, weights, config, low_rank)


def _stored_weights(layer: Any) -> Iterator[tuple[str, Tensor]]:
    attention = layer.self_attn
    linear = {name: base_linear(x) for name, x in projections(layer).items()}
    yield "norm", layer.input_layernorm.weight
    for name in "qkv":
        yield name, linear[name].weight
        if linear[name].bias is not None:
            yield f"{name}b", linear[name].bias
    for name in sorted(NORM_NAMES & child_names(attention)):
        yield f"{name[0]}n", getattr(attention, name).weight
    yield "o", linear["o"].weight
    yield "norm2", layer.post_attention_layernorm.weight
    for name in ("gate", "up", "down"):
        yield name, linear[name].weight

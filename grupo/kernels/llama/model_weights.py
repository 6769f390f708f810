"""Weights of a whole Llama-style model, their versions, and the products with them."""

import ctypes
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels import native
from grupo.kernels.llama.layers import Upcasts, llama_layers, model_shape
from grupo.kernels.llama.products import BFloat16Products, FullProducts, Products
from grupo.kernels.llama.structure import stores_bfloat16
from grupo.kernels.llama.weights_version import WeightsVersion
from grupo.kernels.lm_head import AutocastHead, LMHead, LogitsHead
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.hf_attention import text_decoder


class LlamaWeights:
    """Weights of a Llama-style model, and how matrices are multiplied with them.

    Args:
        model: the model, for which `is_llama` holds.
        library: the compiled C functions for `dtype`.
        dtype: type of activations: that of the weights, or float32 above weights in bfloat16.
        attention_configs: configuration of each layer's attention.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        library: ctypes.CDLL,
        dtype: torch.dtype,
        attention_configs: dict[int, AttentionConfig],
    ) -> None:
        self.model = model
        self.base_model = text_decoder(model)
        self.upcasts = Upcasts(dtype)
        self.layers = llama_layers(model, attention_configs, self.upcasts)
        self.adapters = [term for layer in self.layers for term in layer.low_rank.values()]
        self.final_norm_weight = self.upcasts.of(self.base_model.norm.weight)
        modules = [self.base_model, *self.base_model.layers.modules(), self.base_model.norm]
        self.hooks = [hooks for module in modules for hooks in _hooks(module)]
        self.checkpointed_modules = [m for m in modules if hasattr(m, "gradient_checkpointing")]
        self.shape = model_shape(self.base_model, self.layers)
        self.multiplies_bfloat16 = bool(native.call(library, "has_bfloat16", self.shape))
        self.stores_bfloat16 = stores_bfloat16(model)
        self.full_products = FullProducts(dtype)
        # weights rounded to bfloat16, and their version
        self.rounded: tuple[WeightsVersion, Products] | None = None

    @property
    def parameters(self) -> list[Tensor]:
        """Weights of the layers and matrices of enabled adapters, and the weight of the norm."""
        layers = [x for layer in self.layers for x in layer.parameters.values()]
        return [*layers, self.base_model.norm.weight]

    @property
    def is_plain(self) -> bool:
        """Whether C code and products would compute what the modules compute.

        Modules may have hooks or checkpointing, autocast another type, and adapters may be changed.
        """
        checkpointing = any(m.gradient_checkpointing for m in self.checkpointed_modules)
        is_changed = any(self.hooks) or checkpointing
        return not is_changed and self._has_products() and all(x.is_current for x in self.adapters)

    def _has_products(self) -> bool:
        """Whether there are products in the type in which the modules would multiply."""
        if self.dtype == torch.bfloat16:
            return self.full_products.dtype == torch.float32 and self.multiplies_bfloat16
        return self.dtype == self.full_products.dtype

    @property
    def dtype(self) -> torch.dtype:
        """Type in which matrices are multiplied here: that of autocast, or that of the weights."""
        if torch.is_autocast_enabled("cpu"):
            return torch.get_autocast_dtype("cpu")
        return torch.bfloat16 if self.stores_bfloat16 else self.full_products.dtype

    def products(self, version: WeightsVersion) -> Products:
        """How to multiply with weights of that version."""
        if version.dtype != torch.bfloat16:
            return self.full_products
        if self.rounded is None or self.rounded[0] != version:
            self.rounded = version, BFloat16Products()
            self.upcasts.refresh()
        return self.rounded[1]

    def decode_products(self, products: Products) -> Products:
        """Products of decode steps, in which adapters are merged into the weights.

        Merged weights are not rounded: the first updates of an adapter change weights by less than
        half the distance to the next number in bfloat16, and would be lost.
        """
        return self.full_products if any(x.is_enabled for x in self.adapters) else products

    def version(self, dtype: torch.dtype) -> WeightsVersion:
        """Version of all weights that cached activations and logits depend on.

        `dtype`: type in which they are multiplied.
        """
        head: Any = self.model.get_output_embeddings()
        embeddings = self.base_model.embed_tokens.parameters()
        weights = *self.parameters, *embeddings, *(head.parameters() if head else ())
        return WeightsVersion.of(dict.fromkeys(weights), dtype)  # the head may be the embedding

    def embed(self, token: Tensor) -> Tensor:
        """Embeddings of tokens, in the type of activations."""
        return self.base_model.embed_tokens(token).to(self.full_products.dtype)

    def plain_weight(self, head: LogitsHead) -> Tensor | None:
        """The head's weight if the head is a plain product without hooks, otherwise None."""
        inner = head.head if isinstance(head, AutocastHead) else head
        if not isinstance(inner, LMHead) or not self.is_plain or any(_hooks(inner.output)):
            return None
        return inner.weight


def _hooks(module: nn.Module) -> Iterator[Mapping[int, Any]]:
    """The module's hook registries; hooks that are added later appear in them."""
    yield from (module._forward_hooks, module._forward_pre_hooks)
    yield from (module._backward_hooks, module._backward_pre_hooks)

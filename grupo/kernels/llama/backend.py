"""Native backend for Llama-style models: decodes in C and reuses activations in the update."""

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels.backend import HFBackend, PrefillLayout, RowSet
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.hidden_states import HiddenStates
from grupo.kernels.llama.activation_cache import (
    MAX_RECOMPUTED,
    ActivationCache,
    ActivationLayout,
    ScratchBuffers,
    cached_tokens,
)
from grupo.kernels.llama.autograd import CachedForward
from grupo.kernels.llama.cached_rows import cached_rows, has_cached_rows, unique_index
from grupo.kernels.llama.decode_step import PANELS, LayerArray, decode_step, prepare_layers
from grupo.kernels.llama.forward_backward import LayerOps, OutputIndex
from grupo.kernels.llama.hidden_states import NativeHiddenStates
from grupo.kernels.llama.logit_cache import LogitCache
from grupo.kernels.llama.model_weights import LlamaWeights
from grupo.kernels.llama.products import Products
from grupo.kernels.llama.weights_version import WeightsVersion
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.hf_attention import AttentionWithLSE
from grupo.kernels.packing.positions import RowPositions, position_ids_of
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.kernels.prefix_cache import PrefixCache
from grupo.kernels.routing import RouterPass


class NativeLlamaBackend:
    """Computes what the modules of a Llama-style model compute, on a CPU.

    Args:
        model: the model, for which `is_llama` holds.
        library: the compiled C functions for `dtype`.
        dtype: type of activations: that of the weights, or float32 above weights in bfloat16.
        attention_configs: configuration of each layer's attention.
        positions: positions of tokens. Default: their indices in their rows.
    """

    records_routes = False  # a Llama has no routers

    def __init__(
        self,
        model: PreTrainedModel,
        library: ctypes.CDLL,
        dtype: torch.dtype,
        attention_configs: dict[int, AttentionConfig],
        positions: RowPositions | None = None,
    ) -> None:
        self.model = model
        self.library = library
        self.hf_backend = HFBackend(model, positions=positions)
        self.positions = positions
        self.weights = LlamaWeights(model, library, dtype, attention_configs)
        vocab_size = len(self.weights.base_model.embed_tokens.weight)
        self.activation_layout = ActivationLayout.from_shape(self.weights.shape)
        hidden_size = len(self.weights.final_norm_weight)
        sizes = len(self.weights.layers), self.activation_layout.width, hidden_size
        self.activation_cache = ActivationCache(*sizes, cached_tokens(*sizes, vocab_size))
        self.max_recomputed_tokens = MAX_RECOMPUTED // (sizes[0] * sizes[1] + sizes[2])
        self.scratch = ScratchBuffers()
        self.prefix_cache = PrefixCache(0)
        self.keeps_activations = True
        self.logit_cache = LogitCache(
            library, self.weights.shape, self.scratch, self.activation_cache.capacity
        )
        self.decode_layers: LayerArray | None = None

    def reset(self, prefix_cache: PrefixCache, *, trained_on: bool) -> None:
        self.prefix_cache = prefix_cache
        self.keeps_activations = trained_on
        self.prefix_cache.activation_index.clear()
        version = self.weights.version(self.weights.dtype)
        # the version does not name the scale of an adapter, nor whether it is enabled
        if self.weights.adapters or version != self.activation_cache.weights_version:
            self.decode_layers = None
        self.activation_cache.clear(version)
        self.logit_cache.clear(version, self.weights.products(version))
        if not self.keeps_activations:  # an evaluation may need the memory
            self.activation_cache.release()
            self.logit_cache.release()

    def _release_panels(self) -> None:
        """Frees the copies of weights that only generation needs: it makes them again."""
        self.decode_layers = None
        self.scratch.release(PANELS)
        self.logit_cache.release_panels()

    def prefill(
        self,
        token: Tensor,
        position: Tensor,
        layout: PrefillLayout,
        last_index: Tensor,
        lm_head: LMHead,
    ) -> Tensor:
        if not self.weights.is_plain:
            return self.hf_backend.prefill(token, position, layout, last_index, lm_head)
        products = self._generation_products()
        with without_autocast():
            x = self.weights.embed(token)
            first, activations = self._allocate_activations(x)
            if first is not None:
                # outside `last_index` gradients are 0, but 0 times uninitialised memory may be nan
                activations[-1].zero_()
                activations[-2][:, self.activation_layout.residual.start :] = 0
            hidden = self.forward(x, position, layout, activations, last_index, products)
            if first is None:
                return self._logits(lm_head, hidden, None)
            self.activation_cache.has_output[first + last_index] = True
            layout.store_activation_index(first)
            return self._logits(lm_head, hidden, first + last_index)

    def decode(
        self, token: Tensor, position: Tensor, decode_state: DecodeState, lm_head: LMHead
    ) -> Tensor:
        if not self.weights.is_plain:
            return self.hf_backend.decode(token, position, decode_state, lm_head)
        products = self._generation_products()
        with without_autocast():
            x = self.weights.embed(token)
            first, activations = self._allocate_activations(x)
            ops = self.layer_ops(x, position, self.weights.decode_products(products))
            layers = self.weights.layers
            self.decode_layers = self.decode_layers or prepare_layers(ops, layers)
            decode_step(ops, self.decode_layers, x, decode_state, activations[: len(layers)])
            hidden = ops.norm(x, self.weights.final_norm_weight)
            if first is None:
                return self._logits(lm_head, hidden, None)
            activations[-1][:] = x
            self.activation_cache.has_output[first : first + len(x)] = True
            decode_state.store_activation_index(first)
            return self._logits(lm_head, hidden, torch.arange(first, first + len(x)))

    def row_sets(self, token: Tensor, length: Tensor) -> Sequence[RowSet]:
        """Rows with cached activations, and the others, whose activations need memory.

        The logits of the last token of a row are not needed, so that it need not be cached.
        """
        if not self.weights.is_plain:
            return self.hf_backend.row_sets(token, length)
        index = torch.arange(len(token))
        is_cached = torch.zeros(len(token), dtype=torch.bool)
        cache = self.activation_cache
        if cache.used and self.weights.version(self.weights.dtype) == cache.weights_version:
            pairs = zip(token.tolist(), length.tolist(), strict=True)
            cached = [has_cached_rows(row[: n - 1], self.prefix_cache) for row, n in pairs]
            is_cached = torch.tensor(cached, dtype=torch.bool)
        sets = (
            RowSet(index[is_cached]),
            RowSet(index[~is_cached], self.max_recomputed_tokens),
        )
        return [row_set for row_set in sets if len(row_set.rows)]

    def evaluate(
        self, packed: PackedTokens, index: Tensor, routing: RouterPass | None = None
    ) -> HiddenStates:
        if not self.weights.is_plain:
            return self.hf_backend.evaluate(packed, index)
        version = self.weights.version(self.weights.dtype)
        with without_autocast():
            return self._evaluate(packed, index, version)

    def _evaluate(
        self, packed: PackedTokens, index: Tensor, version: WeightsVersion
    ) -> HiddenStates:
        x = self.weights.embed(packed.token)
        output_index, inverse = unique_index(index, len(packed.token))
        if not torch.is_grad_enabled():
            layout = TreeAttention(packed)
            args = packed.position, layout, self._scratch_activations(x), output_index
            hidden = self.forward(x, *args, self.weights.products(version))
            return self._hidden_states(hidden.index_select(0, inverse), None, version.dtype)
        self._release_panels()
        cached = self._cached_activation_index(packed, index, version)
        hidden: Any = CachedForward.apply(
            self, packed, version, cached, output_index, x, *self.weights.parameters
        )
        # the gradient of hidden[inverse] would be summed in an order that depends on the threads
        hidden = hidden.index_select(0, inverse)
        rows = None if cached is None else cached[index]
        return self._hidden_states(hidden, rows, version.dtype)

    def _generation_products(self) -> Products:
        """Products with the weights of the last `reset`."""
        products = self.logit_cache.products
        if products.dtype == self.weights.dtype:
            return products
        return self.weights.products(self.weights.version(self.weights.dtype))

    def current_logit_cache(self, dtype: torch.dtype) -> LogitCache:
        """The logit cache, cleared if the weights or the type of products have changed."""
        version = self.weights.version(dtype)
        if self.logit_cache.weights_version != version:
            self.logit_cache.clear(version, self.weights.products(version))
        return self.logit_cache

    def forward(
        self,
        x: Tensor,
        position: Tensor,
        attention: AttentionWithLSE,
        activations: Sequence[Tensor],
        output_index: OutputIndex,
        products: Products,
    ) -> Tensor:
        """Evaluates all layers and the final norm on embeddings x (M, h).

        Args:
            x: embeddings of the tokens.
            position: of the tokens in their rows.
            attention: among the tokens, and to cached prefixes.
            activations: buffer of each layer, filled in, and optionally one for the output.
            output_index: tokens of which the output is returned; None: all.
            products: how matrices are multiplied.
        """
        ops = self.layer_ops(x, position, products)
        layers = self.weights.layers
        for i, layer in enumerate(layers):
            index = output_index if i + 1 == len(layers) else None
            x = ops.forward(i, layer, activations[i], x, attention, index)
        if len(activations) > len(layers):
            activations[-1][slice(None) if output_index is None else output_index] = x
        return ops.norm(x, self.weights.final_norm_weight)

    def layer_ops(self, like: Tensor, position: Tensor, products: Products) -> LayerOps:
        """Operations for tokens at the given positions, in the dtype of `like`."""
        position_ids = position_ids_of(self.model, position)
        cos, sin = self.weights.base_model.rotary_emb(like, position_ids)
        angles = cos[0].contiguous(), sin[0].contiguous()
        shape = self.weights.shape
        shape.threads = torch.get_num_threads()
        return LayerOps(
            self.library, shape, self.activation_layout, self.scratch, *angles, products
        )

    def _logits(self, lm_head: LMHead, hidden: Tensor, activation_index: Tensor | None) -> Tensor:
        """Logits of sampled tokens, cached for their rows in the activation cache."""
        weight = self.weights.plain_weight(lm_head)
        if weight is None:
            is_rounded = self.logit_cache.products.dtype == torch.bfloat16
            with torch.autocast("cpu", torch.bfloat16, enabled=is_rounded):
                return lm_head(hidden)
        return self.logit_cache.logits(weight, hidden, activation_index)

    def _hidden_states(
        self, values: Tensor, activation_index: Tensor | None, dtype: torch.dtype
    ) -> HiddenStates:
        generation = self.activation_cache.generation
        return NativeHiddenStates(values, self, activation_index, generation, dtype)

    def _allocate_activations(self, x: Tensor) -> tuple[int | None, tuple[Tensor, ...]]:
        """First row and buffers in the activation cache; None and scratch memory without room.

        Activations of answers that are not trained on are not kept, either.
        """
        kept = self.activation_cache.allocate(len(x), x) if self.keeps_activations else None
        return kept or (None, self._scratch_activations(x))

    def _scratch_activations(self, x: Tensor) -> tuple[Tensor, ...]:
        """One buffer for all layers, for a forward pass whose activations are not needed."""
        buffer = self.scratch.get("activations", len(x), self.activation_layout.width, x)
        return (buffer,) * len(self.weights.layers)

    def _cached_activation_index(
        self, packed: PackedTokens, index: Tensor, weights_version: WeightsVersion
    ) -> Tensor | None:
        """Rows of the packed tokens in the activation cache.

        None unless all tokens, and the outputs at `index`, were computed with the given weights.
        """
        cache = self.activation_cache
        if not cache.used or weights_version != cache.weights_version:
            return None
        rows = cached_rows(packed, self.prefix_cache)
        return rows if rows is not None and cache.has_output[rows[index]].all() else None


def without_autocast() -> AbstractContextManager[Any]:
    """Context manager in which products have the types of their operands."""
    return torch.autocast("cpu", enabled=False)

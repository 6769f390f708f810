"""Native backend for Llama-style models: decodes in C and reuses activations in the update."""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels import native
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
from grupo.kernels.llama.decode_step import PANELS, LayerArray, decode_step, prepare_layers
from grupo.kernels.llama.forward_backward import LayerOps, OutputIndex
from grupo.kernels.llama.hidden_states import NativeHiddenStates
from grupo.kernels.llama.layers import Upcasts, llama_layers, model_shape
from grupo.kernels.llama.logit_cache import LogitCache
from grupo.kernels.llama.products import BFloat16Products, FullProducts, Products
from grupo.kernels.llama.structure import stores_bfloat16
from grupo.kernels.llama.weights_version import WeightsVersion
from grupo.kernels.lm_head import AutocastHead, LMHead, LogitsHead
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.hf_attention import AttentionWithLSE, text_decoder
from grupo.kernels.packing.positions import RowPositions, position_ids_of
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.kernels.prefix_cache import NOT_CACHED, ROOT, PrefixCache


class NativeLlamaBackend:
    """Computes what the modules of a Llama-style model compute, on a CPU.

    Args:
        model: the model, for which `is_llama` holds.
        library: the compiled C functions for `dtype`.
        dtype: type of activations: that of the weights, or float32 above weights in bfloat16.
        attention_configs: configuration of each layer's attention.
        positions: positions of tokens. Default: their indices in their rows.
    """

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
        self.base_model = text_decoder(model)
        self.positions = positions
        self.upcasts = Upcasts(dtype)
        self.layers = llama_layers(model, attention_configs, self.upcasts)
        self.adapters = [term for layer in self.layers for term in layer.low_rank.values()]
        self.final_norm_weight = self.upcasts.of(self.base_model.norm.weight)
        modules = [self.base_model, *self.base_model.layers.modules(), self.base_model.norm]
        self.hooks = [hooks for module in modules for hooks in _hooks(module)]
        self.checkpointed_modules = [m for m in modules if hasattr(m, "gradient_checkpointing")]
        self.shape = model_shape(self.base_model, self.layers)
        self.activation_layout = ActivationLayout.from_shape(self.shape)
        sizes = len(self.layers), self.activation_layout.width, len(self.final_norm_weight)
        self.activation_cache = ActivationCache(
            *sizes, cached_tokens(*sizes, len(self.base_model.embed_tokens.weight))
        )
        self.max_recomputed_tokens = MAX_RECOMPUTED // (sizes[0] * sizes[1] + sizes[2])
        self.scratch = ScratchBuffers()
        self.prefix_cache = PrefixCache(0)
        self.keeps_activations = True
        self.logit_cache = LogitCache(
            library, self.shape, self.scratch, self.activation_cache.capacity
        )
        self.decode_layers: LayerArray | None = None
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

    def weights_version(self, dtype: torch.dtype) -> WeightsVersion:
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

    def reset(self, prefix_cache: PrefixCache, *, trained_on: bool) -> None:
        self.prefix_cache = prefix_cache
        self.keeps_activations = trained_on
        self.decode_layers = None
        self.prefix_cache.activation_index.clear()
        version = self.weights_version(self.dtype)
        self.activation_cache.clear(version)
        self.logit_cache.clear(version, self.products(version))
        if not self.keeps_activations:  # an evaluation may need the memory
            self.activation_cache.release()
            self.logit_cache.release()

    def _release_panels(self) -> None:
        """Frees the copy of the layers' weights that only generation needs: it makes it again."""
        self.decode_layers = None
        self.scratch.release(PANELS)

    def prefill(
        self,
        token: Tensor,
        position: Tensor,
        layout: PrefillLayout,
        last_index: Tensor,
        lm_head: LMHead,
    ) -> Tensor:
        if not self.is_plain:
            return self.hf_backend.prefill(token, position, layout, last_index, lm_head)
        products = self._generation_products()
        with without_autocast():
            x = self.embed(token)
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
        if not self.is_plain:
            return self.hf_backend.decode(token, position, decode_state, lm_head)
        products = self._generation_products()
        with without_autocast():
            x = self.embed(token)
            first, activations = self._allocate_activations(x)
            ops = self.layer_ops(x, position, self._decode_products(products))
            self.decode_layers = self.decode_layers or prepare_layers(ops, self.layers)
            decode_step(ops, self.decode_layers, x, decode_state, activations[: len(self.layers)])
            hidden = ops.norm(x, self.final_norm_weight)
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
        if not self.is_plain:
            return self.hf_backend.row_sets(token, length)
        index = torch.arange(len(token))
        is_cached = torch.zeros(len(token), dtype=torch.bool)
        cache = self.activation_cache
        if cache.used and self.weights_version(self.dtype) == cache.weights_version:
            pairs = zip(token.tolist(), length.tolist(), strict=True)
            cached = [self._is_cached(row[: n - 1]) for row, n in pairs]
            is_cached = torch.tensor(cached, dtype=torch.bool)
        sets = (
            RowSet(index[is_cached]),
            RowSet(index[~is_cached], self.max_recomputed_tokens),
        )
        return [row_set for row_set in sets if len(row_set.rows)]

    def _is_cached(self, tokens: Sequence[int]) -> bool:
        """Whether the activations of all tokens are in the cache."""
        slots = self.prefix_cache.lookup(tokens)
        index = self.prefix_cache.activation_index
        return len(slots) == len(tokens) and all(slot in index for slot in slots)

    def evaluate(self, packed: PackedTokens, index: Tensor) -> HiddenStates:
        if not self.is_plain:
            return self.hf_backend.evaluate(packed, index)
        version = self.weights_version(self.dtype)
        with without_autocast():
            return self._evaluate(packed, index, version)

    def _evaluate(
        self, packed: PackedTokens, index: Tensor, version: WeightsVersion
    ) -> HiddenStates:
        x = self.embed(packed.token)
        output_index, inverse = _unique_index(index, len(packed.token))
        if not torch.is_grad_enabled():
            layout = TreeAttention(packed)
            args = packed.position, layout, self._scratch_activations(x), output_index
            hidden = self.forward(x, *args, self.products(version))
            return self._hidden_states(hidden.index_select(0, inverse), None, version.dtype)
        self._release_panels()
        cached = self._cached_activation_index(packed, index, version)
        hidden: Any = CachedForward.apply(
            self, packed, version, cached, output_index, x, *self.parameters
        )
        # the gradient of hidden[inverse] would be summed in an order that depends on the threads
        hidden = hidden.index_select(0, inverse)
        rows = None if cached is None else cached[index]
        return self._hidden_states(hidden, rows, version.dtype)

    def _generation_products(self) -> Products:
        """Products with the weights of the last `reset`."""
        products = self.logit_cache.products
        if products.dtype == self.dtype:
            return products
        return self.products(self.weights_version(self.dtype))

    def _decode_products(self, products: Products) -> Products:
        """Products of decode steps, in which adapters are merged into the weights.

        Merged weights are not rounded: the first updates of an adapter change weights by less than
        half the distance to the next number in bfloat16, and would be lost.
        """
        return self.full_products if any(x.is_enabled for x in self.adapters) else products

    def plain_weight(self, head: LogitsHead) -> Tensor | None:
        """The head's weight if the head is a plain product without hooks, otherwise None."""
        inner = head.head if isinstance(head, AutocastHead) else head
        if not isinstance(inner, LMHead) or not self.is_plain or any(_hooks(inner.output)):
            return None
        return inner.weight

    def current_logit_cache(self, dtype: torch.dtype) -> LogitCache:
        """The logit cache, cleared if the weights or the type of products have changed."""
        version = self.weights_version(dtype)
        if self.logit_cache.weights_version != version:
            self.logit_cache.clear(version, self.products(version))
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
        for i, layer in enumerate(self.layers):
            index = output_index if i + 1 == len(self.layers) else None
            x = ops.forward(i, layer, activations[i], x, attention, index)
        if len(activations) > len(self.layers):
            activations[-1][slice(None) if output_index is None else output_index] = x
        return ops.norm(x, self.final_norm_weight)

    def layer_ops(self, like: Tensor, position: Tensor, products: Products) -> LayerOps:
        """Operations for tokens at the given positions, in the dtype of `like`."""
        cos, sin = self.base_model.rotary_emb(like, position_ids_of(self.model, position))
        angles = cos[0].contiguous(), sin[0].contiguous()
        self.shape.threads = torch.get_num_threads()
        return LayerOps(
            self.library, self.shape, self.activation_layout, self.scratch, *angles, products
        )

    def _logits(self, lm_head: LMHead, hidden: Tensor, activation_index: Tensor | None) -> Tensor:
        """Logits of sampled tokens, cached for their rows in the activation cache."""
        weight = self.plain_weight(lm_head)
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
        return (buffer,) * len(self.layers)

    def _cached_activation_index(
        self, packed: PackedTokens, index: Tensor, weights_version: WeightsVersion
    ) -> Tensor | None:
        """Rows of the packed tokens in the activation cache.

        None unless all tokens, and the outputs at `index`, were computed with the given weights.
        """
        cache = self.activation_cache
        if not cache.used or weights_version != cache.weights_version:
            return None
        tokens = packed.token.tolist()
        rows: list[int] = []
        ancestors = [(len(tokens), ROOT)]  # end of the subtree and last slot of open segments
        for segment in packed.segments:
            while ancestors[-1][0] <= segment.begin:
                ancestors.pop()
            before = ancestors[-1][1]
            slots = self.prefix_cache.lookup(tokens[segment.begin : segment.end], before)
            rows += [self.prefix_cache.activation_index.get(slot, NOT_CACHED) for slot in slots]
            if len(rows) < segment.end or NOT_CACHED in rows[segment.begin :]:
                return None
            ancestors.append((segment.subtree_end, slots[-1] if slots else before))
        found = torch.tensor(rows, dtype=torch.long)
        return found if cache.has_output[found[index]].all() else None


def without_autocast() -> AbstractContextManager[Any]:
    """Context manager in which products have the types of their operands."""
    return torch.autocast("cpu", enabled=False)


def _unique_index(index: Tensor, count: int) -> tuple[OutputIndex, Tensor]:
    """The distinct tokens of `index` among `count`, and for each entry its place among them.

    Returns (None, index) if these are most tokens, because then selecting costs more.
    """
    unique, inverse = index.unique(return_inverse=True)
    return (unique, inverse) if len(unique) * 4 < count * 3 else (None, index)


def _hooks(module: nn.Module) -> Iterator[Mapping[int, Any]]:
    """The module's hook registries; hooks that are added later appear in them."""
    yield from (module._forward_hooks, module._forward_pre_hooks)
    yield from (module._backward_hooks, module._backward_pre_hooks)

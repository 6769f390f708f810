"""A body of the family of Llama: it decodes in C, and need not read again what it has read."""

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from grupo.kernels.backend import HFBackend, PrefillLayout
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.llama.activation_cache import ActivationCache, ActivationLayout, ScratchBuffers
from grupo.kernels.llama.autograd import CachedForward
from grupo.kernels.llama.decode_step import LayerArray, decode_step, prepare_layers
from grupo.kernels.llama.forward_backward import LayerOps, OutputIndex
from grupo.kernels.llama.layers import llama_layers, model_shape
from grupo.kernels.llama.logit_cache import CachedTokenScorer, LogitCache
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing.block_attention import AttentionConfig
from grupo.kernels.packing.hf_attention import AttentionWithLSE
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.kernels.prefix_cache import NOT_CACHED, ROOT, PrefixCache


class NativeLlamaBackend:
    """Works out what the model's modules do, of which `configs` says how they attend."""

    def __init__(
        self,
        model: PreTrainedModel,
        library: ctypes.CDLL,
        attention_configs: dict[int, AttentionConfig],
    ) -> None:
        self.model, self.library, self.hf_backend = model, library, HFBackend(model)
        self.base_model: Any = model.base_model
        self.layers = llama_layers(model, attention_configs)
        self.final_norm_weight: Tensor = self.base_model.norm.weight
        self.weights = [w for layer in self.layers for w in layer.weights.values()] + [
            self.final_norm_weight
        ]
        passed = [self.base_model, *self.base_model.layers.modules(), self.base_model.norm]
        self.hooks = [hooks for module in passed for hooks in _hooks(module)]
        self.checkpointed_modules = [m for m in passed if hasattr(m, "gradient_checkpointing")]
        self.shape = model_shape(self.base_model, self.layers)
        self.activation_layout = ActivationLayout.from_shape(self.shape)
        self.activation_cache = ActivationCache(
            len(self.layers), self.activation_layout.width, len(self.final_norm_weight)
        )
        self.scratch, self.prefix_cache = ScratchBuffers(), PrefixCache(0)
        self.logit_cache = LogitCache(
            library, self.shape, self.scratch, self.activation_cache.capacity
        )
        self.decode_layers: LayerArray | None = None

    @property
    def is_plain(self) -> bool:
        """Is there nothing about the modules that would be passed by?"""
        saves = any(m.gradient_checkpointing for m in self.checkpointed_modules)
        return not (any(self.hooks) or saves or torch.is_autocast_enabled("cpu"))

    @property
    def weights_version(self) -> object:
        """Of the weights as they are now; torch does not count what is done to their `.data`."""
        head: Any = self.model.get_output_embeddings()
        weights = *self.weights, self.embedding_weight, *(head.parameters() if head else ())
        return [(w.data_ptr(), w._version) for w in weights]

    @property
    def embedding_weight(self) -> Tensor:
        return self.base_model.embed_tokens.weight

    def reset(self, prefix_cache: PrefixCache) -> None:
        self.prefix_cache, self.decode_layers = prefix_cache, None
        self.prefix_cache.activation_index.clear()
        self.activation_cache.clear(self.weights_version)
        self.logit_cache.clear(self.weights_version)

    def prefill(
        self, token: Tensor, position: Tensor, layout: PrefillLayout, last_index: Tensor
    ) -> Tensor:
        if not self.is_plain:
            return self.hf_backend.prefill(token, position, layout, last_index)
        x = self.base_model.embed_tokens(token)
        first, records = self._allocate_activations(x)
        if first is not None:  # what nobody asks for has slopes of 0, and must be numbers
            records[-1].zero_()
            records[-2][:, self.activation_layout.residual.start :] = 0
        hidden = self.forward(x, position, layout, records, last_index)
        if first is not None:
            self.activation_cache.has_output[first + last_index] = True
            layout.store_activation_index(first)
        return hidden

    def decode(self, token: Tensor, position: Tensor, decode_state: DecodeState) -> Tensor:
        if not self.is_plain:
            return self.hf_backend.decode(token, position, decode_state)
        x = self.base_model.embed_tokens(token)
        first, records = self._allocate_activations(x)
        lines = self.layer_ops(x, position)
        self.decode_layers = self.decode_layers or prepare_layers(lines, self.layers)
        decode_step(lines, self.decode_layers, x, decode_state, records[: len(self.layers)])
        if first is not None:
            records[-1][:] = x
            self.activation_cache.has_output[first : first + len(x)] = True
            decode_state.store_activation_index(first)
        return lines.norm(x, self.final_norm_weight)

    def forward_with_grad(
        self, packed: PackedTokens, index: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        if not self.is_plain:
            return self.hf_backend.forward_with_grad(packed, index)
        x, (asked, back) = (
            self.base_model.embed_tokens(packed.token),
            _unique_index(index, len(packed.token)),
        )
        if not torch.is_grad_enabled():
            hidden = self.forward(
                x, packed.position, TreeAttention(packed), self._scratch_activations(x), asked
            )
            return hidden.index_select(0, back), None
        found = self._cached_activation_index(packed, index)
        hidden: Any = CachedForward.apply(self, packed, found, asked, x, *self.weights)
        # the way back of hidden[back] adds in whatever order threads come
        hidden = hidden.index_select(0, back)
        return hidden, None if found is None else found[index]

    def logits(self, lm_head: LMHead, hidden: Tensor, activation_index: Tensor) -> Tensor:
        weight = self._plain_head_weight(lm_head)
        return (
            lm_head(hidden)
            if weight is None
            else self.logit_cache.logits(weight, hidden, activation_index)
        )

    def token_scorer(
        self, lm_head: LMHead, activation_index: Tensor | None
    ) -> CachedTokenScorer | None:
        weight = self._plain_head_weight(lm_head)
        if weight is None:
            return None
        if self.logit_cache.weights_version != self.weights_version:
            self.logit_cache.clear(self.weights_version)
        return CachedTokenScorer(self.logit_cache, weight, activation_index)

    def forward(
        self,
        x: Tensor,
        position: Tensor,
        attention: AttentionWithLSE,
        activations: Sequence[Tensor],
        output_index: OutputIndex,
    ) -> Tensor:
        """Fill in records of every layer, and of what came out of the last, if asked; its norm."""
        lines = self.layer_ops(x, position)
        for i, layer in enumerate(self.layers):
            last = i + 1 == len(self.layers)
            x = lines.forward(
                i, layer, activations[i], x, attention, output_index if last else None
            )
        if len(activations) > len(self.layers):
            activations[-1][slice(None) if output_index is None else output_index] = x
        return lines.norm(x, self.final_norm_weight)

    def layer_ops(self, like: Tensor, position: Tensor) -> LayerOps:
        """Tokens at some positions."""
        cos, sin = self.base_model.rotary_emb(like, position[None])
        angles = cos[0].contiguous(), sin[0].contiguous()
        self.shape.threads = torch.get_num_threads()
        return LayerOps(self.library, self.shape, self.activation_layout, self.scratch, *angles)

    def _plain_head_weight(self, lm_head: LMHead) -> Tensor | None:
        """The head's weights, if they are all that there is to it."""
        return lm_head.weight if self.is_plain and not any(_hooks(lm_head.output)) else None

    def _allocate_activations(self, x: Tensor) -> tuple[int | None, tuple[Tensor, ...]]:
        """For records, and where they are kept; not at all if there is no room left."""
        return self.activation_cache.allocate(len(x), x) or (None, self._scratch_activations(x))

    def _scratch_activations(self, x: Tensor) -> tuple[Tensor, ...]:
        return (self.scratch.get("record", len(x), self.activation_layout.width, x),) * len(
            self.layers
        )

    def _cached_activation_index(self, packed: PackedTokens, index: Tensor) -> Tensor | None:
        """Where the records of the line's tokens are, if these weights have read them all, and
        those at some places to the end.
        """
        if (
            not self.activation_cache.used
            or self.weights_version != self.activation_cache.weights_version
        ):
            return None
        tokens, at, open_ = packed.token.tolist(), list[int](), [(len(packed.token), ROOT)]
        for stretch in packed.segments:
            while open_[-1][0] <= stretch.begin:  # nothing more goes on from it
                open_.pop()
            before = open_[-1][1]
            slots = self.prefix_cache.lookup(tokens[stretch.begin : stretch.end], before)
            at += [self.prefix_cache.activation_index.get(slot, NOT_CACHED) for slot in slots]
            if len(at) < stretch.end or NOT_CACHED in at[stretch.begin :]:
                return None
            open_.append((stretch.subtree_end, [before, *slots][-1]))
        found = torch.tensor(at, dtype=torch.long)
        return found if self.activation_cache.has_output[found[index]].all() else None


def _unique_index(index: Tensor, count: int) -> tuple[OutputIndex, Tensor]:
    """The places of so many that are asked for, and where among them each is; None: all of them,
    for where it is most of them picking costs more.
    """
    asked, back = index.unique(return_inverse=True)
    return (asked, back) if len(asked) * 4 < count * 3 else (None, index)


def _hooks(module: nn.Module) -> Iterator[Mapping[int, Any]]:
    """Whoever wants to be called when it works, now or later."""
    yield from (module._forward_hooks, module._forward_pre_hooks)
    yield from (module._backward_hooks, module._backward_pre_hooks)

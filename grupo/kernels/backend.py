"""Transformer backends: the Hugging Face modules, or a numerically equivalent fast path."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels.decode_state import DecodeState
from grupo.kernels.hidden_states import HiddenStates, select_rows
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.attention_choice import PackedAttention
from grupo.kernels.packing.hf_attention import AttentionLayout, AttentionWithLSE
from grupo.kernels.packing.positions import RowPositions
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.kernels.prefix_cache import PrefixCache
from grupo.kernels.routing import RouterPass


@dataclass(frozen=True)
class RowSet:
    """Rows of a batch that may be evaluated together.

    Args:
        rows: their indices.
        max_tokens: the most tokens of a micro-batch, for which the backend has memory.
    """

    rows: Int[Tensor, "n"]
    max_tokens: int = 1 << 62


class RouteRecorder(AttentionLayout, Protocol):
    """Attention of tokens whose keys and values are kept, and the experts chosen for them."""

    def store_routes(self, routes: Int[Tensor, "M layers*k"]) -> None:
        """Keeps the experts that routers chose for the tokens."""
        ...


class PrefillLayout(RouteRecorder, AttentionWithLSE, Protocol):
    """Attention over packed prompts whose keys and values go into the prefix cache."""

    def store_activation_index(self, first: int) -> None:
        """Records that the activations of the packed tokens are cached from row `first` on."""
        ...


class Backend(Protocol):
    """Evaluates a model's transformer layers and its head: prefill, decode and forward pass.

    A backend may keep activations and logits of prefilled and decoded tokens and reuse them in
    `evaluate`. Its callers cannot notice that, except by the time it takes.
    """

    @property
    def model(self) -> PreTrainedModel: ...

    @property
    def positions(self) -> RowPositions | None:
        """Positions of tokens; None if they are their indices in their rows."""
        ...

    @property
    def records_routes(self) -> bool:
        """Whether the layouts of prefill and decode steps keep the experts that routers chose."""
        ...

    def reset(self, prefix_cache: PrefixCache, *, trained_on: bool) -> None:
        """Use `prefix_cache` from now on; the weights stay constant until the next reset.

        Args:
            prefix_cache: keys and values of prefixes.
            trained_on: whether an update may be computed from the answers that are generated.
        """
        ...

    def prefill(
        self,
        token: Int[Tensor, "M"],
        position: Int[Tensor, "M"],
        layout: PrefillLayout,
        last_index: Int[Tensor, "P"],
        lm_head: LMHead,
    ) -> Float[Tensor, "P V"]:
        """Logits of packed prompts at `last_index`, without a gradient."""
        ...

    def decode(
        self,
        token: Int[Tensor, "R"],
        position: Int[Tensor, "R"],
        decode_state: DecodeState,
        lm_head: LMHead,
    ) -> Float[Tensor, "R V"]:
        """Logits of one more token in every row, without a gradient."""
        ...

    def row_sets(self, token: Int[Tensor, "N L"], length: Int[Tensor, "N"]) -> Sequence[RowSet]:
        """Divides right-padded rows into sets; no micro-batch holds rows of two sets."""
        ...

    def evaluate(
        self, packed: PackedTokens, index: Int[Tensor, "m"], routing: RouterPass | None = None
    ) -> HiddenStates:
        """Last hidden states of the packed tokens at `index`, differentiable.

        Args:
            packed: the tokens.
            index: those whose hidden states are returned.
            routing: of the model's routers, if it has any.
        """
        ...


@dataclass(frozen=True)
class HFBackend:
    """The model's own modules with packed attention.

    Args:
        model: the model.
        attention: attention of `evaluate`.
        positions: positions of tokens. Default: their indices in their rows.
        records_routes: whether the layouts of prefill and decode steps keep the chosen experts.
    """

    model: PreTrainedModel
    attention: PackedAttention = TreeAttention
    positions: RowPositions | None = None
    records_routes: bool = False

    def reset(self, prefix_cache: PrefixCache, *, trained_on: bool) -> None:
        pass

    def prefill(
        self,
        token: Tensor,
        position: Tensor,
        layout: RouteRecorder,
        last_index: Tensor,
        lm_head: LMHead,
    ) -> Tensor:
        return lm_head(self._generating(token, position, layout)[last_index])

    def decode(
        self, token: Tensor, position: Tensor, decode_state: DecodeState, lm_head: LMHead
    ) -> Tensor:
        return lm_head(self._generating(token, position, decode_state))

    def _generating(self, token: Tensor, position: Tensor, layout: RouteRecorder) -> Tensor:
        """Last hidden states in a step of generation."""
        routing = RouterPass() if self.records_routes else None
        hidden = hf_attention.forward_packed(self.model, token, position, layout, routing)
        if routing:
            layout.store_routes(routing.routes())
        return hidden

    def row_sets(self, token: Tensor, length: Tensor) -> Sequence[RowSet]:
        return [RowSet(torch.arange(len(token)))]

    def evaluate(
        self, packed: PackedTokens, index: Tensor, routing: RouterPass | None = None
    ) -> HiddenStates:
        layout = self.attention(packed)
        hidden = hf_attention.forward_packed(
            self.model, packed.token, packed.position, layout, routing
        )
        return HiddenStates(select_rows(hidden, index))

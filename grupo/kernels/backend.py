"""Transformer backends: the Hugging Face modules, or a numerically equivalent fast path."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels.decode_state import DecodeState
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.hf_attention import AttentionLayout, AttentionWithLSE
from grupo.kernels.packing.prefix_trie import PackedTokens
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.kernels.prefix_cache import PrefixCache

Hidden = Float[Tensor, "M h"]  # last hidden states

# (hidden states, tokens, temperature) -> (log-probabilities, entropies), differentiable
TokenScorer = Callable[[Hidden, Tensor, float], tuple[Tensor, Tensor]]


class PrefillLayout(AttentionLayout, AttentionWithLSE, Protocol):
    """Attention over packed prompts whose keys and values go into the prefix cache."""

    def store_activation_index(self, first: int) -> None:
        """Records that the activations of the packed tokens are cached from row `first` on."""
        ...


class Backend(Protocol):
    """Evaluates a model's transformer layers and its head: prefill, decode and forward pass."""

    @property
    def model(self) -> PreTrainedModel: ...

    def reset(self, prefix_cache: PrefixCache) -> None:
        """Use `prefix_cache` from now on; the weights stay constant until the next reset."""
        ...

    def prefill(
        self, token: Tensor, position: Tensor, layout: PrefillLayout, last_index: Tensor
    ) -> Hidden:
        """Last hidden states, at `last_index`, of packed prompts, without a gradient."""
        ...

    def decode(self, token: Tensor, position: Tensor, decode_state: DecodeState) -> Hidden:
        """Last hidden states of one more token in every row, without a gradient."""
        ...

    def logits(
        self, lm_head: LMHead, hidden: Hidden, activation_index: Int[Tensor, "M"]
    ) -> Float[Tensor, "M V"]:
        """Logits of prefilled or decoded tokens; a backend may cache them by activation row."""
        ...

    def forward_with_grad(
        self, packed: PackedTokens, index: Int[Tensor, "m"]
    ) -> tuple[Hidden, Tensor | None]:
        """Last hidden states (m, h) of some of the packed tokens, differentiable.

        Also returns the rows (m,) of these tokens in the activation cache, or None if they are not
        cached.
        """
        ...

    def token_scorer(
        self, lm_head: LMHead, activation_index: Int[Tensor, "m"] | None
    ) -> TokenScorer | None:
        """A differentiable `(hidden, tokens, temperature) -> (logp, entropy)`.

        Returns None if the caller must compute the logits.
        """
        ...


@dataclass(frozen=True)
class HFBackend:
    """The model's own modules with packed attention."""

    model: PreTrainedModel

    def reset(self, prefix_cache: PrefixCache) -> None:
        pass

    def prefill(
        self, token: Tensor, position: Tensor, layout: AttentionLayout, last_index: Tensor
    ) -> Hidden:
        return hf_attention.forward_packed(self.model, token, position, layout)[last_index]

    def decode(self, token: Tensor, position: Tensor, decode_state: DecodeState) -> Hidden:
        return hf_attention.forward_packed(self.model, token, position, decode_state)

    def logits(self, lm_head: LMHead, hidden: Hidden, activation_index: Tensor) -> Tensor:
        return lm_head(hidden)

    def forward_with_grad(self, packed: PackedTokens, index: Tensor) -> tuple[Hidden, None]:
        layout = TreeAttention(packed)
        hidden = hf_attention.forward_packed(self.model, packed.token, packed.position, layout)
        # the gradient of hidden[index] would be summed in an order that depends on the threads
        return hidden.index_select(0, index), None

    def token_scorer(self, lm_head: LMHead, activation_index: Tensor | None) -> None:
        return None

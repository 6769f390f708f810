"""What reads for a language model: its own modules, or what works out the same."""

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
TokenScorer = Callable[[Hidden, Tensor, float], tuple[Tensor, Tensor]]


class PrefillLayout(AttentionLayout, AttentionWithLSE, Protocol):
    """A line whose tokens are remembered."""

    def store_activation_index(self, first: int) -> None:
        """What was worked out of its tokens is kept, from that place on."""
        ...


class Backend(Protocol):
    """Reads tokens, in three ways: what the last layer makes of each, and what the head does."""

    @property
    def model(self) -> PreTrainedModel: ...

    def reset(self, prefix_cache: PrefixCache) -> None:
        """The weights stay as they are, and `memory` is that of who samples, until told again."""
        ...

    def prefill(
        self, token: Tensor, position: Tensor, layout: PrefillLayout, last_index: Tensor
    ) -> Hidden:
        """Prompts, as one line, without a gradient: what is made of the `last` of each."""
        ...

    def decode(self, token: Tensor, position: Tensor, decode_state: DecodeState) -> Hidden:
        """One more token in every row, without a gradient."""
        ...

    def logits(
        self, lm_head: LMHead, hidden: Hidden, activation_index: Int[Tensor, "M"]
    ) -> Float[Tensor, "M V"]:
        """Logits of tokens that were read; what was worked out of them is kept there, if it is."""
        ...

    def forward_with_grad(
        self, packed: PackedTokens, index: Int[Tensor, "m"]
    ) -> tuple[Hidden, Tensor | None]:
        """Rows, whole, with a gradient: what is made of the tokens at some places (m, h), and where
        what was worked out of them is (m,), if it is.
        """
        ...

    def token_scorer(
        self, lm_head: LMHead, activation_index: Int[Tensor, "m"] | None
    ) -> TokenScorer | None:
        """What says, of hidden states and tokens and at a temperature, log-probabilities and
        entropies, with a gradient; nothing where logits are to be looked at.
        """
        ...


@dataclass(frozen=True)
class HFBackend:
    """The model's own, with an attention of ours."""

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
        hidden = hf_attention.forward_packed(
            self.model, packed.token, packed.position, TreeAttention(packed)
        )
        # the way back of hidden[place] adds in whatever order threads come
        return hidden.index_select(0, index), None

    def token_scorer(self, lm_head: LMHead, activation_index: Tensor | None) -> None:
        return None

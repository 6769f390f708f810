"""What reads for a language model: its own modules, or what works out the same."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel

from grupo.kernels.decode_state import Decoding
from grupo.kernels.lm_head import Head
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.hf_attention import Layout, Sees
from grupo.kernels.packing.prefix_trie import Line
from grupo.kernels.packing.tree_attention import Tree
from grupo.kernels.prefix_cache import Memory

Hidden = Float[Tensor, "M h"]  # last hidden states
Chosen = Callable[[Hidden, Tensor, float], tuple[Tensor, Tensor]]


class Reading(Layout, Sees, Protocol):
    """A line whose tokens are remembered."""

    def note(self, first: int) -> None:
        """What was worked out of its tokens is kept, from that place on."""
        ...


class Body(Protocol):
    """Reads tokens, in three ways: what the last layer makes of each, and what the head does."""

    @property
    def model(self) -> PreTrainedModel: ...

    def begin(self, memory: Memory) -> None:
        """The weights stay as they are, and `memory` is that of who samples, until told again."""
        ...

    def read(self, token: Tensor, position: Tensor, reading: Reading, last: Tensor) -> Hidden:
        """Prompts, as one line, without a gradient: what is made of the `last` of each."""
        ...

    def go_on(self, token: Tensor, position: Tensor, decoding: Decoding) -> Hidden:
        """One more token in every row, without a gradient."""
        ...

    def say(self, head: Head, hidden: Hidden, record: Int[Tensor, "M"]) -> Float[Tensor, "M V"]:
        """Logits of tokens that were read; what was worked out of them is kept there, if it is."""
        ...

    def again(self, line: Line, place: Int[Tensor, "m"]) -> tuple[Hidden, Tensor | None]:
        """Rows, whole, with a gradient: what is made of the tokens at some places (m, h), and where
        what was worked out of them is (m,), if it is.
        """
        ...

    def chosen(self, head: Head, record: Int[Tensor, "m"] | None) -> Chosen | None:
        """What says, of hidden states and tokens and at a temperature, log-probabilities and
        entropies, with a gradient; nothing where logits are to be looked at.
        """
        ...


@dataclass(frozen=True)
class Modules:
    """The model's own, with an attention of ours."""

    model: PreTrainedModel

    def begin(self, memory: Memory) -> None:
        pass

    def read(self, token: Tensor, position: Tensor, reading: Layout, last: Tensor) -> Hidden:
        return hf_attention.read(self.model, token, position, reading)[last]

    def go_on(self, token: Tensor, position: Tensor, decoding: Decoding) -> Hidden:
        return hf_attention.read(self.model, token, position, decoding)

    def say(self, head: Head, hidden: Hidden, record: Tensor) -> Tensor:
        return head(hidden)

    def again(self, line: Line, place: Tensor) -> tuple[Hidden, None]:
        hidden = hf_attention.read(self.model, line.token, line.position, Tree(line))
        # the way back of hidden[place] adds in whatever order threads come
        return hidden.index_select(0, place), None

    def chosen(self, head: Head, record: Tensor | None) -> None:
        return None

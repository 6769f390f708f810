"""What reads for a language model, below its head: its own modules, or what works out the same."""

from dataclasses import dataclass
from typing import Protocol

from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from grupo.engines.decoding import Decoding
from grupo.engines.memory import Memory
from grupo.packing import attention
from grupo.packing.attention import Layout, Sees
from grupo.packing.tree import Tree
from grupo.packing.trie import Line

Hidden = Float[Tensor, "M h"]  # last hidden states


class Reading(Layout, Sees, Protocol):
    """A line whose tokens are remembered."""

    def note(self, first: int) -> None:
        """What was worked out of its tokens is kept, from that place on."""
        ...


class Body(Protocol):
    """Reads tokens, in three ways; of each it says what the last layer makes of it."""

    @property
    def model(self) -> PreTrainedModel: ...

    def begin(self, memory: Memory) -> None:
        """The weights stay as they are, and `memory` is that of who samples, until told again."""
        ...

    def read(self, token: Tensor, position: Tensor, reading: Reading) -> Hidden:
        """Prompts, as one line, without a gradient."""
        ...

    def go_on(self, token: Tensor, position: Tensor, decoding: Decoding) -> Hidden:
        """One more token in every row, without a gradient."""
        ...

    def again(self, line: Line) -> Hidden:
        """Rows, whole, with a gradient."""
        ...


@dataclass(frozen=True)
class Modules:
    """The model's own, with an attention of ours."""

    model: PreTrainedModel

    def begin(self, memory: Memory) -> None:
        pass

    def read(self, token: Tensor, position: Tensor, reading: Layout) -> Hidden:
        return attention.read(self.model, token, position, reading)

    def go_on(self, token: Tensor, position: Tensor, decoding: Decoding) -> Hidden:
        return attention.read(self.model, token, position, decoding)

    def again(self, line: Line) -> Hidden:
        return attention.read(self.model, line.token, line.position, Tree(line))

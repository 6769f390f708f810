"""Last hidden states of tokens, as the opaque result of a backend's forward pass."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from grupo.kernels.lm_head import LogitsHead

# log-probabilities of tokens, and entropies of their distributions, in nats
Scores = tuple[Float[Tensor, "M"], Float[Tensor, "M"]]


def select_rows(x: Float[Tensor, "n H"], index: Int[Tensor, "m"]) -> Float[Tensor, "m H"]:
    """The rows x[index]; gradients of a row that is selected repeatedly are added in order.

    On a CPU this is true of `index_select` only, on CUDA of indexing only.
    """
    return x[index] if x.is_cuda else x.index_select(0, index)


@dataclass(frozen=True)
class HiddenStates:
    """Last hidden states of M tokens.

    A backend that keeps further results of its forward pass, such as cached logits, returns a
    subclass; its callers use these methods only.

    Args:
        values: the hidden states, differentiable if gradients are enabled.
    """

    values: Float[Tensor, "M H"]

    def score(self, head: LogitsHead, token: Int[Tensor, "M"], temperature: float) -> Scores | None:
        """Log-probabilities and entropies of one token at each hidden state, in one fused pass.

        Returns None if there is no fused pass for this head: the caller then computes the logits.
        The result is differentiable.

        Args:
            head: computes logits of hidden states.
            token: index of the sampled token at each hidden state.
            temperature: divides the logits.
        """
        return None

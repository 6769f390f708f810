"""Auxiliary heads of a policy: value heads on its hidden states, and learned scalars."""

from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor, nn

from grupo.core.aux_heads import AuxHead, LinearHead


class AuxHeads(nn.Module):
    """Linear heads on detached hidden states, and scalar parameters, by name.

    Args:
        aux_heads: the heads to create; a `LinearHead` starts with weight 0 and its initial value
            as bias.
        hidden_size: width of the policy's hidden states.
        device: where the parameters live.
    """

    def __init__(
        self, aux_heads: Collection[AuxHead], hidden_size: int, device: torch.device
    ) -> None:
        super().__init__()
        self.heads = nn.ModuleDict()
        self.scalars = nn.ParameterDict()
        for aux_head in aux_heads:
            if isinstance(aux_head, LinearHead):
                linear = nn.Linear(hidden_size, 1, device=device)
                nn.init.zeros_(linear.weight)
                nn.init.constant_(linear.bias, aux_head.initial_value)
                self.heads[aux_head.name] = linear
            else:
                initial_value = torch.tensor(aux_head.initial_value, device=device)
                self.scalars[aux_head.name] = nn.Parameter(initial_value)

    @property
    def names(self) -> frozenset[str]:
        """Names of all heads and scalars."""
        return frozenset(self.heads) | frozenset(self.scalars)

    def predict(self, name: str, hidden: Float[Tensor, "m H"]) -> Float[Tensor, "m"]:
        """Value of one head for each hidden state; gradients stop at the hidden states."""
        if name in self.scalars:
            return self.scalars[name].expand(len(hidden))
        return self.heads[name](hidden.detach().float())[:, 0]

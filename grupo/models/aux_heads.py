"""Helpers of a policy: heads on its features, and numbers, learned beside it."""

from collections.abc import Collection

import torch
from jaxtyping import Float
from torch import Tensor, nn

from grupo.core.aux_heads import AuxHead, LinearHead


class AuxHeads(nn.Module):
    """What helpers say of states; gradients end at the features."""

    def __init__(
        self, aux_heads: Collection[AuxHead], hidden_size: int, device: torch.device
    ) -> None:
        super().__init__()
        self.heads = nn.ModuleDict()
        self.scalars = nn.ParameterDict()
        for helper in aux_heads:
            if isinstance(helper, LinearHead):
                head = nn.Linear(hidden_size, 1, device=device)
                nn.init.zeros_(head.weight)
                nn.init.constant_(head.bias, helper.initial_value)
                self.heads[helper.name] = head
            else:
                self.scalars[helper.name] = nn.Parameter(
                    torch.tensor(helper.initial_value, device=device)
                )

    @property
    def names(self) -> frozenset[str]:
        """What can be asked for."""
        return frozenset(self.heads) | frozenset(self.scalars)

    def predict(self, name: str, hidden: Float[Tensor, "m H"]) -> Float[Tensor, "m"]:
        """One helper's number for each state."""
        if name in self.scalars:
            return self.scalars[name].expand(len(hidden))
        return self.heads[name](hidden.detach().float())[:, 0]

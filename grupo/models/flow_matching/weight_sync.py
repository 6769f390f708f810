"""With which weights a flow model draws: its own, or a copy of theirs."""

import copy
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from grupo.models.flow_matching.backbone import Field


class Own:
    """The policy's own model: it has the weights already."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def take(self) -> Mapping[str, Tensor]:
        return {}

    def load(self, weights: Mapping[str, Tensor]) -> None:
        pass

    def close(self) -> None:
        pass


class Apart(Own):
    """A copy of the model, which the policy may learn beside."""

    def __init__(self, field: Field) -> None:
        self.learned = field.module
        module = copy.deepcopy(field.module).requires_grad_(False)
        super().__init__(replace(field, module=module))

    def take(self) -> Mapping[str, Tensor]:
        changing = (item for item in self.learned.named_parameters() if item[1].requires_grad)
        return {name: x.detach().clone() for name, x in changing}

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        parameters = dict(self.field.module.named_parameters())
        for name, x in weights.items():
            parameters[name].copy_(x)

"""With which weights a flow model draws: its own, or a copy of theirs."""

import copy
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from grupo.models.flow_matching.backbone import VelocityField


class SharedFlowWeights:
    """The policy's own model: it has the weights already."""

    def __init__(self, velocity_field: VelocityField) -> None:
        self.velocity_field = velocity_field

    def snapshot(self) -> Mapping[str, Tensor]:
        return {}

    def load(self, weights: Mapping[str, Tensor]) -> None:
        pass

    def close(self) -> None:
        pass


class CopiedFlowWeights(SharedFlowWeights):
    """A copy of the model, which the policy may learn beside."""

    def __init__(self, velocity_field: VelocityField) -> None:
        self.trained_module = velocity_field.module
        module = copy.deepcopy(velocity_field.module).requires_grad_(False)
        super().__init__(replace(velocity_field, module=module))

    def snapshot(self) -> Mapping[str, Tensor]:
        changing = (
            item for item in self.trained_module.named_parameters() if item[1].requires_grad
        )
        return {name: x.detach().clone() for name, x in changing}

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        parameters = dict(self.velocity_field.module.named_parameters())
        for name, x in weights.items():
            parameters[name].copy_(x)

"""Weight sync of a flow model: generation from the trained weights, or from a copy of them."""

import copy
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from grupo.inference.server_sharing import ServerSharing
from grupo.models.flow_matching.backbone import VelocityField
from grupo.models.generation_stream import GenerationStream


class SharedFlowWeights:
    """Generation from the trained model itself: snapshots are empty."""

    def __init__(self, velocity_field: VelocityField) -> None:
        self.velocity_field = velocity_field

    def snapshot(self) -> Mapping[str, Tensor]:
        return {}

    def load(self, weights: Mapping[str, Tensor]) -> None:
        pass

    def context(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def share_servers(self, sharing: ServerSharing) -> None:
        pass

    def release_memory(self) -> None:
        pass

    def close(self) -> None:
        pass


class CopiedFlowWeights(SharedFlowWeights):
    """Generation from a copy of the model, so that training can run at the same time."""

    def __init__(self, velocity_field: VelocityField) -> None:
        self.trained_module = velocity_field.module
        module = copy.deepcopy(velocity_field.module).requires_grad_(False)
        super().__init__(replace(velocity_field, module=module))
        self.stream = GenerationStream(next(module.parameters()).device)

    def snapshot(self) -> Mapping[str, Tensor]:
        parameters = self.trained_module.named_parameters()
        copies = {name: x.detach().clone() for name, x in parameters if x.requires_grad}
        self.stream.wait()
        return copies

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        parameters = dict(self.velocity_field.module.named_parameters())
        with self.stream():
            for name, x in weights.items():
                parameters[name].copy_(x)
            self.stream.wait()  # the snapshot may be deleted afterwards

    def context(self) -> AbstractContextManager[Any]:
        return self.stream()

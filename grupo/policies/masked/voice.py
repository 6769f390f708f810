"""With which weights a denoiser speaks: the policy's own, or a copy of them."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from transformers import PreTrainedModel

from grupo.engines.base import Engine
from grupo.policies.voice import Weights

Sampling = Callable[[PreTrainedModel], Engine]  # how to sample from a model


class Own:
    """The policy's own model: it has the weights already."""

    def __init__(self, model: PreTrainedModel, sampling: Sampling) -> None:
        self.model, self.sampling = model, sampling

    def take(self) -> Weights:
        return {}

    def load(self, weights: Weights) -> None:
        pass

    def engine(self) -> Engine:
        return self.sampling(self.model)

    def close(self) -> None:
        pass


class Apart(Own):
    """A copy of the model, which the policy may learn beside."""

    def __init__(self, model: PreTrainedModel, sampling: Sampling) -> None:
        self.policy = model
        apart: Any = copy.deepcopy(model).requires_grad_(False)
        super().__init__(apart, sampling)

    def take(self) -> Weights:
        return {name: x.detach().clone() for name, x in self.policy.named_parameters()}

    @torch.no_grad()
    def load(self, weights: Weights) -> None:
        for name, x in self.model.named_parameters():
            x.copy_(weights[name])

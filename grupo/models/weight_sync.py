"""With which weights a policy speaks: its own, a copy of theirs, or those that a server was given.

Before rollouts are sampled, weights are taken from the policy and loaded where it speaks. Who
learns while others are sampled takes them before, and loads them when it is their turn.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from grupo.inference.base import Engine
from grupo.inference.vllm import VllmEngine
from grupo.models.trainable import TrainablePolicy

Weights = Mapping[str, Tensor]
EngineFactory = Callable[[PreTrainedModel], Engine]  # how to sample from a model


class WeightSync(Protocol):
    """Where a policy speaks."""

    def snapshot(self) -> Weights:
        """The policy's weights as they are now, for `load`."""
        ...

    def load(self, weights: Weights) -> None:
        """Speak with these from now on."""
        ...

    def close(self) -> None:
        """Nothing is to be said any more."""
        ...


class LMWeightSync(WeightSync, Protocol):
    """Where a language model speaks."""

    def engine(self) -> Engine:
        """Who answers until other weights are loaded."""
        ...


class SharedWeights:
    """The policy's own model: it has the weights already."""

    def __init__(self, model: PreTrainedModel, engine_factory: EngineFactory) -> None:
        self.model, self.engine_factory = model, engine_factory

    def snapshot(self) -> Weights:
        return {}

    def load(self, weights: Weights) -> None:
        pass

    def engine(self) -> Engine:
        return self.engine_factory(self.model)

    def close(self) -> None:
        pass


class CopiedWeights(SharedWeights):
    """A copy of the model, which the policy may learn beside."""

    def __init__(self, model: PreTrainedModel, engine_factory: EngineFactory) -> None:
        self.trained_model = model
        apart: Any = copy.deepcopy(model).requires_grad_(False)
        super().__init__(apart, engine_factory)

    def snapshot(self) -> Weights:
        return {name: x.detach().clone() for name, x in self.trained_model.named_parameters()}

    @torch.no_grad()
    def load(self, weights: Weights) -> None:
        for name, x in self.model.named_parameters():
            x.copy_(weights[name])


class ServerWeights:
    """A server's model, which is given the weights as transformers names them."""

    def __init__(self, policy: TrainablePolicy, server: VllmEngine) -> None:
        self.policy, self.server = policy, server

    def snapshot(self) -> Weights:
        return {name: x.clone() for name, x in self.policy.merged_model().state_dict().items()}

    def load(self, weights: Weights) -> None:
        self.server.load(weights)

    def engine(self) -> Engine:
        return self.server

    def close(self) -> None:
        self.server.close()

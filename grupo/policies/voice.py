"""With which weights a policy speaks: its own, a copy of theirs, or those that a server was given.

Before rollouts are sampled, weights are taken from the policy and loaded where it speaks. Who
learns while others are sampled takes them before, and loads them when it is their turn.
"""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grupo.engines.base import Bounds, Engine
from grupo.engines.vllm import VllmEngine
from grupo.policies.head import Head
from grupo.policies.reading import Reader
from grupo.policies.trained import Trained

Weights = Mapping[str, Tensor]


class Voice(Protocol):
    """Where a policy speaks."""

    def take(self) -> Weights:
        """The policy's weights as they are now, for `load`."""
        ...

    def load(self, weights: Weights) -> None:
        """Speak with these from now on."""
        ...

    def close(self) -> None:
        """Nothing is to be said any more."""
        ...


class Speaking(Voice, Protocol):
    """Where a language model speaks."""

    def engine(self) -> Engine:
        """Who answers until other weights are loaded."""
        ...


class Own:
    """The policy's own model: it has the weights already."""

    def __init__(
        self, reader: Reader, head: Head, tokenizer: PreTrainedTokenizerBase, bounds: Bounds
    ) -> None:
        self.reader, self.head, self.tokenizer, self.bounds = reader, head, tokenizer, bounds

    def take(self) -> Weights:
        return {}

    def load(self, weights: Weights) -> None:
        pass

    def engine(self) -> Engine:
        return self.reader.engine(self.head, self.tokenizer, self.bounds)

    def close(self) -> None:
        pass


class Apart(Own):
    """A copy of the model, which the policy may learn beside."""

    def __init__(
        self, reader: Reader, head: Head, tokenizer: PreTrainedTokenizerBase, bounds: Bounds
    ) -> None:
        self.policy = reader.model
        model: Any = copy.deepcopy(reader.model).requires_grad_(False)
        ours = replace(head, output=model.get_output_embeddings())
        super().__init__(reader.of(model), ours, tokenizer, bounds)

    def take(self) -> Weights:
        return {name: x.detach().clone() for name, x in self.policy.named_parameters()}

    @torch.no_grad()
    def load(self, weights: Weights) -> None:
        for name, x in self.reader.model.named_parameters():
            x.copy_(weights[name])


class Remote:
    """A server's model, which is given the weights as transformers names them."""

    def __init__(self, policy: Trained, server: VllmEngine) -> None:
        self.policy, self.server = policy, server

    def take(self) -> Weights:
        return {name: x.clone() for name, x in self.policy.merged().state_dict().items()}

    def load(self, weights: Weights) -> None:
        self.server.load(weights)

    def engine(self) -> Engine:
        return self.server

    def close(self) -> None:
        self.server.close()

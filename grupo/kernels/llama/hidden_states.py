"""Hidden states of the native Llama backend, whose logits may be cached from sampling."""

from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Int
from torch import Tensor

from grupo.kernels.hidden_states import HiddenStates, Scores
from grupo.kernels.llama.activation_cache import ActivationCache
from grupo.kernels.llama.logit_cache import CachedTokenScorer, LogitCache
from grupo.kernels.llama.model_weights import LlamaWeights
from grupo.kernels.lm_head import LogitsHead


class CachedHead(Protocol):
    """The parts of the native backend that score tokens."""

    weights: LlamaWeights
    activation_cache: ActivationCache

    def current_logit_cache(self, dtype: torch.dtype) -> LogitCache:
        """The logit cache, cleared if the weights or the type of products have changed."""
        ...


@dataclass(frozen=True)
class NativeHiddenStates(HiddenStates):
    """Hidden states, and the rows of their tokens in the activation cache.

    Args:
        backend: the backend that computed the hidden states.
        activation_index: row of each token in the activation cache; None if any is not cached.
        generation: of the activation cache that the rows belong to.
        dtype: type in which matrices were multiplied.
    """

    backend: CachedHead
    activation_index: Int[Tensor, "M"] | None
    generation: int
    dtype: torch.dtype

    def score(self, head: LogitsHead, token: Int[Tensor, "M"], temperature: float) -> Scores | None:
        weight = self.backend.weights.plain_weight(head)
        if weight is None:
            return None
        is_current = self.backend.activation_cache.generation == self.generation
        rows = self.activation_index if is_current else None
        scorer = CachedTokenScorer(self.backend.current_logit_cache(self.dtype), weight, rows)
        return scorer(self.values, token, temperature)

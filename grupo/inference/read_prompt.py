"""A prompt that the engine has read, and forward passes of single tokens behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grupo.inference.base import Request, StopConditions
from grupo.inference.stop_conditions import StopChecker
from grupo.kernels.backend import Backend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing.hf_attention import forward_packed
from grupo.kernels.prefix_cache import PrefixCache
from grupo.kernels.shared_decode_state import SharedDecodeState
from grupo.util.errors import ConfigError


class PromptReader(Protocol):
    """An engine with a prefix cache, into which it reads prompts."""

    @property
    def backend(self) -> Backend: ...

    @property
    def lm_head(self) -> LMHead: ...

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase: ...

    @property
    def stop_conditions(self) -> StopConditions: ...

    @property
    def prefix_cache(self) -> PrefixCache: ...

    def prefill(
        self, lm_head: LMHead, prompts: Sequence[tuple[int, ...]]
    ) -> tuple[Tensor, list[list[int]]]: ...


@dataclass(frozen=True)
class ReadPrompt:
    """The prompt of a request, whose keys and values are in the prefix cache.

    The model's own modules evaluate the tokens behind it, with the attention of a
    `SharedDecodeState`.

    Args:
        reader: The engine that has read it.
        request: The request.
        logits: Logits of the token behind the prompt.
        slots: Slots of its tokens in the prefix cache.
        num_cached: Number of its tokens that were in the cache before.
    """

    reader: PromptReader
    request: Request
    logits: Float[Tensor, "1 V"]
    slots: Int[Tensor, "P"]
    num_cached: int

    @classmethod
    def of(cls, reader: PromptReader, request: Request) -> "ReadPrompt":
        """Reads the prompt of a request.

        Raises:
            ConfigError: The model reads pictures.
        """
        if reader.backend.positions:
            raise ConfigError(
                "turn_strategy: it acts inside the model, and"
                f" {type(reader.backend.model).__name__} reads pictures. Allowed: a language model"
                " of text alone."
            )
        num_cached = len(reader.prefix_cache.lookup(request.tokens[:-1]))
        logits, (slots,) = reader.prefill(reader.lm_head, [request.tokens])
        index = torch.tensor(slots, device=logits.device)
        # a backend may write the next logits to the same memory
        return cls(reader, request, logits.clone(), index, num_cached)

    @property
    def stop_checker(self) -> StopChecker:
        """Applies the stop conditions of the request."""
        conditions = self.reader.stop_conditions.for_request(self.request)
        return StopChecker(conditions, self.reader.tokenizer)

    @property
    def last_layer(self) -> int:
        """Number of the model's last layer."""
        return self.reader.backend.model.config.get_text_config().num_hidden_layers - 1

    def decode_state(self, capacity: int) -> SharedDecodeState:
        """A state without tokens behind the prompt, of which it holds at most `capacity`."""
        return SharedDecodeState(self.reader.prefix_cache, self.slots, capacity)

    def evaluate(self, tokens: Sequence[int], state: SharedDecodeState) -> Float[Tensor, "R V"]:
        """Logits behind the tokens of the state's newest step."""
        token = torch.tensor(tokens, device=self.slots.device)
        position = state.key_position[state.num_cached : state.num_tokens]
        hidden = forward_packed(self.reader.backend.model, token, position, state)
        return self.reader.lm_head(hidden)


def num_read(slots: Sequence[Sequence[int]], first_new: int) -> list[int]:
    """How many tokens of each prompt were computed: a beginning that prompts share, for the first.

    The last token of a prompt is computed even if it is cached.

    Args:
        slots: for each prompt, the slots of its tokens in the prefix cache.
        first_new: the first slot that was not in the cache before.

    >>> num_read([[0, 1, 5], [0, 1, 5, 6], [0, 1]], first_new=5)
    [1, 1, 1]
    """
    known = set[int]()
    counts = []
    for prompt in slots:
        new = {slot for slot in prompt if slot >= first_new} - known
        known |= new
        counts.append(max(1, len(new)))
    return counts

"""How a language model reads rows of tokens again: what they share once, or row by row."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.inference.base import Engine, StopConditions
from grupo.inference.hf_generate import HFGenerateEngine
from grupo.inference.local import LocalEngine
from grupo.kernels import native
from grupo.kernels.backend import Backend, HFBackend, TokenScorer
from grupo.kernels.llama.detect import native_backend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.prefix_trie import common_prefix_lengths, pack
from grupo.models.prompt_logprobs import ForwardOutput, HiddenStateReader, PromptLogprobEngine

NO_COMPILER_WARNING = (
    "No C compiler works here (CC, else cc): on a processor all is about half as fast."
)


class Evaluator(HiddenStateReader, Protocol):
    """Reads a model, and knows how to sample from it."""

    def with_model(self, model: PreTrainedModel) -> "Evaluator":
        """The same way of reading another model."""
        ...

    def engine(
        self, head: LMHead, tokenizer: PreTrainedTokenizerBase, stop_conditions: StopConditions
    ) -> Engine:
        """How to sample from the model."""
        ...

    def token_scorer(self, head: LMHead, activation_index: Tensor | None) -> TokenScorer | None:
        """What says how likely tokens were that the head chose, if logits need not be looked at."""
        ...

    @property
    def warning(self) -> str:
        """What is to be said of it beforehand, if anything."""
        ...


def evaluator_for(model: PreTrainedModel) -> Evaluator:
    """The best that the model takes; it is told to use our attention where it can."""
    return (
        PackedEvaluator(backend_for(model))
        if hf_attention.try_packed_attention(model)
        else PaddedEvaluator(model)
    )


def backend_for(model: PreTrainedModel) -> Backend:
    """The fastest that works out what the model, told to use our attention, does."""
    return native_backend(model) or HFBackend(model)


@dataclass(frozen=True)
class PackedEvaluator:
    """Rows in one line without padding, what they begin with alike read once."""

    backend: Backend

    @property
    def model(self) -> PreTrainedModel:
        return self.backend.model

    def with_model(self, model: PreTrainedModel) -> Evaluator:
        return self if model is self.model else PackedEvaluator(backend_for(model))

    def hidden_states(
        self, token: Tensor, length: Tensor, row: Tensor, column: Tensor
    ) -> ForwardOutput:
        # nothing is asked of what comes after the last of a row's places
        length = torch.zeros_like(length).scatter_reduce(0, row, column + 1, "amax")
        packed = pack(token, length).to(self.model.device)
        return self.backend.forward_with_grad(packed, packed.token_index[row, column])

    def token_scorer(self, head: LMHead, activation_index: Tensor | None) -> TokenScorer | None:
        return self.backend.token_scorer(head, activation_index)

    def microbatches(self, token: Tensor, length: Tensor, max_tokens: int) -> Iterator[Tensor]:
        rows = [tuple(r[:n]) for r, n in zip(token.tolist(), length.tolist(), strict=True)]
        order = torch.tensor(sorted(range(len(rows)), key=rows.__getitem__))
        new = [
            len(rows[i]) - n
            for i, n in zip(order, common_prefix_lengths([rows[i] for i in order]), strict=True)
        ]
        while len(order):
            begun = len(rows[order[0]]) - new[0]
            take = max(1, int((torch.tensor(new).cumsum(0) + begun <= max_tokens).sum()))
            # what is too short to be shared was counted as shared
            while (
                take > 1 and (size := _num_packed_tokens(token, length, order[:take])) > max_tokens
            ):
                take = min(take - 1, take * max_tokens // size)
            yield order[:take].sort().values
            order, new = order[take:], new[take:]

    def engine(
        self, head: LMHead, tokenizer: PreTrainedTokenizerBase, stop_conditions: StopConditions
    ) -> Engine:
        engine = LocalEngine(self.backend, head, tokenizer, stop_conditions)
        return PromptLogprobEngine(engine, self, head, stop_conditions)

    @property
    def warning(self) -> str:
        wanted = self.model.device.type == "cpu" and native.library(torch.float32) is None
        return NO_COMPILER_WARNING * wanted


def _num_packed_tokens(token: Tensor, length: Tensor, rows: Tensor) -> int:
    return len(pack(token[rows], length[rows]).token)


@dataclass(frozen=True)
class PaddedEvaluator:
    """Row by row, padded on the right, which a causal model never sees."""

    model: PreTrainedModel

    def with_model(self, model: PreTrainedModel) -> Evaluator:
        return replace(self, model=model)

    def hidden_states(
        self, token: Tensor, length: Tensor, row: Tensor, column: Tensor
    ) -> ForwardOutput:
        token = token[:, : int(length.max())].to(self.model.device)
        hidden = self.model.base_model(input_ids=token, use_cache=False).last_hidden_state
        return hidden[row, column], None

    def token_scorer(self, head: LMHead, activation_index: Tensor | None) -> None:
        return None

    def microbatches(self, token: Tensor, length: Tensor, max_tokens: int) -> Iterator[Tensor]:
        order = length.argsort(descending=True, stable=True)
        while len(order):
            take = max(1, max_tokens // max(1, int(length[order[0]])))
            yield order[:take].sort().values
            order = order[take:]

    def engine(
        self, head: LMHead, tokenizer: PreTrainedTokenizerBase, stop_conditions: StopConditions
    ) -> Engine:
        engine = HFGenerateEngine(self.model, tokenizer, stop_conditions)
        return PromptLogprobEngine(engine, self, head, stop_conditions)

    @property
    def warning(self) -> str:
        name = type(self.model).__name__
        return f"{name} does not take our attention: rows are read one by one, and slowly sampled."

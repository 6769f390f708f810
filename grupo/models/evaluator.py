"""How a language model reads rows of tokens again: what they share once, or row by row."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.inference.base import Bounds, Engine
from grupo.inference.hf_generate import Generating
from grupo.inference.local import Local
from grupo.kernels import native
from grupo.kernels.backend import Body, Chosen, Modules
from grupo.kernels.llama.detect import lean
from grupo.kernels.lm_head import Head
from grupo.kernels.packing import hf_attention
from grupo.kernels.packing.prefix_trie import line, shared
from grupo.models.prompt_logprobs import Measuring, Read, Reads

UNCOMPILED = "No C compiler works here (CC, else cc): on a processor all is about half as fast."


class Reader(Reads, Protocol):
    """Reads a model, and knows how to sample from it."""

    def of(self, model: PreTrainedModel) -> "Reader":
        """The same way of reading another model."""
        ...

    def engine(self, head: Head, tokenizer: PreTrainedTokenizerBase, bounds: Bounds) -> Engine:
        """How to sample from the model."""
        ...

    def chosen(self, head: Head, record: Tensor | None) -> Chosen | None:
        """What says how likely tokens were that the head chose, if logits need not be looked at."""
        ...

    @property
    def remark(self) -> str:
        """What is to be said of it beforehand, if anything."""
        ...


def reader_of(model: PreTrainedModel) -> Reader:
    """The best that the model takes; it is told to use our attention where it can."""
    return Packed(body_of(model)) if hf_attention.takes(model) else Padded(model)


def body_of(model: PreTrainedModel) -> Body:
    """The fastest that works out what the model, told to use our attention, does."""
    return lean(model) or Modules(model)


@dataclass(frozen=True)
class Packed:
    """Rows in one line without padding, what they begin with alike read once."""

    body: Body

    @property
    def model(self) -> PreTrainedModel:
        return self.body.model

    def of(self, model: PreTrainedModel) -> Reader:
        return self if model is self.model else Packed(body_of(model))

    def states(self, token: Tensor, length: Tensor, row: Tensor, column: Tensor) -> Read:
        # nothing is asked of what comes after the last of a row's places
        length = torch.zeros_like(length).scatter_reduce(0, row, column + 1, "amax")
        packed = line(token, length).to(self.model.device)
        return self.body.again(packed, packed.place[row, column])

    def chosen(self, head: Head, record: Tensor | None) -> Chosen | None:
        return self.body.chosen(head, record)

    def together(self, token: Tensor, length: Tensor, budget: int) -> Iterator[Tensor]:
        rows = [tuple(r[:n]) for r, n in zip(token.tolist(), length.tolist(), strict=True)]
        order = torch.tensor(sorted(range(len(rows)), key=rows.__getitem__))
        new = [
            len(rows[i]) - n for i, n in zip(order, shared([rows[i] for i in order]), strict=True)
        ]
        while len(order):
            begun = len(rows[order[0]]) - new[0]
            take = max(1, int((torch.tensor(new).cumsum(0) + begun <= budget).sum()))
            # what is too short to be shared was counted as shared
            while take > 1 and (size := _size(token, length, order[:take])) > budget:
                take = min(take - 1, take * budget // size)
            yield order[:take].sort().values
            order, new = order[take:], new[take:]

    def engine(self, head: Head, tokenizer: PreTrainedTokenizerBase, bounds: Bounds) -> Engine:
        engine = Local(self.body, head, tokenizer, bounds)
        return Measuring(engine, self, head, bounds)

    @property
    def remark(self) -> str:
        wanted = self.model.device.type == "cpu" and native.library(torch.float32) is None
        return UNCOMPILED * wanted


def _size(token: Tensor, length: Tensor, rows: Tensor) -> int:
    return len(line(token[rows], length[rows]).token)


@dataclass(frozen=True)
class Padded:
    """Row by row, padded on the right, which a causal model never sees."""

    model: PreTrainedModel

    def of(self, model: PreTrainedModel) -> Reader:
        return replace(self, model=model)

    def states(self, token: Tensor, length: Tensor, row: Tensor, column: Tensor) -> Read:
        token = token[:, : int(length.max())].to(self.model.device)
        hidden = self.model.base_model(input_ids=token, use_cache=False).last_hidden_state
        return hidden[row, column], None

    def chosen(self, head: Head, record: Tensor | None) -> None:
        return None

    def together(self, token: Tensor, length: Tensor, budget: int) -> Iterator[Tensor]:
        order = length.argsort(descending=True, stable=True)
        while len(order):
            take = max(1, budget // max(1, int(length[order[0]])))
            yield order[:take].sort().values
            order = order[take:]

    def engine(self, head: Head, tokenizer: PreTrainedTokenizerBase, bounds: Bounds) -> Engine:
        engine = Generating(self.model, tokenizer, bounds)
        return Measuring(engine, self, head, bounds)

    @property
    def remark(self) -> str:
        name = type(self.model).__name__
        return f"{name} does not take our attention: rows are read one by one, and slowly sampled."

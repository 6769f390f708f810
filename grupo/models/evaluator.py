"""Evaluators: forward passes of a language model over rows of tokens, packed or padded."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.inference.base import Engine, StopConditions
from grupo.inference.hf_generate import HFGenerateEngine
from grupo.inference.local import LocalEngine
from grupo.inference.memory_limits import MemoryLimits
from grupo.inference.static_rows import StaticDecoding, capture_switch_for
from grupo.kernels.backend import Backend, HFBackend
from grupo.kernels.cuda_graphs import CaptureSwitch
from grupo.kernels.hidden_states import HiddenStates
from grupo.kernels.llama.detect import native_backend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing.attention_choice import PackedAttention, packed_attention_for
from grupo.kernels.packing.hf_attention import PackedAttentionError, use_packed_attention
from grupo.kernels.packing.positions import RowPositions
from grupo.kernels.packing.prefix_trie import SortedRows, pack
from grupo.kernels.packing.tree_attention import TreeAttention
from grupo.kernels.prefix_cache import PrefixCache
from grupo.kernels.routing import routing_argument
from grupo.models.engine_memory import engine_limits
from grupo.models.prompt_logprobs import HiddenStateReader, PromptLogprobEngine
from grupo.models.row_routing import RowRouting
from grupo.util.device_copies import to_device


class Evaluator(HiddenStateReader, Protocol):
    """Computes hidden states of a model, and makes an inference engine for it."""

    def hidden_states(
        self,
        token: Int[Tensor, "N L"],
        length: Int[Tensor, "N"],
        row: Int[Tensor, "m"],
        column: Int[Tensor, "m"],
        routing: RowRouting | None = None,
    ) -> HiddenStates:
        """Hidden states at the m positions (row, column).

        Args:
            token: right-padded rows.
            length: of each row.
            row: of each position.
            column: of each position.
            routing: of the model's routers, if it has any.
        """
        ...

    def with_model(self, model: PreTrainedModel) -> "Evaluator":
        """The same kind of evaluator for another model."""
        ...

    def with_module_calls(self, model: PreTrainedModel) -> "Evaluator":
        """The same kind of evaluator that calls the modules of a model, without compiled kernels.

        The model is a copy of the evaluator's own one.
        """
        ...

    def engine(
        self, head: LMHead, tokenizer: PreTrainedTokenizerBase, stop_conditions: StopConditions
    ) -> Engine:
        """Inference engine that generates from the model."""
        ...

    @property
    def warning(self) -> str:
        """Reason why this evaluator is slow, or ""."""
        ...


def evaluator_for(
    model: PreTrainedModel, dtype: torch.dtype, *, records_routes: bool = False
) -> Evaluator:
    """The fastest evaluator for a model; switches the model to packed attention if it can.

    Args:
        model: the model.
        dtype: of its computations.
        records_routes: whether engines of packed rows record the experts that routers choose.
    """
    try:
        return packed_evaluator_for(model, dtype, records_routes=records_routes)
    except PackedAttentionError as error:
        return PaddedEvaluator(model, reason=str(error))


def packed_evaluator_for(
    model: PreTrainedModel,
    dtype: torch.dtype,
    positions: RowPositions | None = None,
    *,
    records_routes: bool = False,
) -> "PackedEvaluator":
    """An evaluator of packed rows.

    Args:
        model: the model, which is switched to packed attention.
        dtype: of its computations.
        positions: positions of tokens. Default: their indices in their rows.
        records_routes: whether engines record the experts that routers choose.

    Raises:
        PackedAttentionError: the model's hidden states would differ.
    """
    use_packed_attention(model)
    attention = packed_attention_for(model, dtype)
    backend = backend_for(model, attention, positions, records_routes=records_routes)
    capture = capture_switch_for(backend)
    return PackedEvaluator(backend, engine_limits(model, dtype), attention, capture)


def backend_for(
    model: PreTrainedModel,
    attention: PackedAttention = TreeAttention,
    positions: RowPositions | None = None,
    *,
    records_routes: bool = False,
) -> Backend:
    """The fastest backend that reproduces a model which uses packed attention."""
    hf_backend = HFBackend(model, attention, positions, records_routes)
    return native_backend(model, positions) or hf_backend


@dataclass(frozen=True)
class PackedEvaluator:
    """Evaluates rows as one packed sequence without padding; shared prefixes are computed once.

    Args:
        backend: evaluates the model.
        limits: of the memory of its engines.
        attention: of backends that call the model's modules.
        capture: captures decode steps of fixed shapes. Default: shapes follow the rows.
    """

    backend: Backend
    limits: MemoryLimits = field(default_factory=MemoryLimits, compare=False)
    attention: PackedAttention = TreeAttention
    capture: CaptureSwitch | None = field(default=None, compare=False)

    @property
    def model(self) -> PreTrainedModel:
        return self.backend.model

    def with_model(self, model: PreTrainedModel) -> Evaluator:
        if model is self.model:
            return self
        records = self.backend.records_routes
        backend = backend_for(model, self.attention, self.backend.positions, records_routes=records)
        return replace(self, backend=backend)

    def with_module_calls(self, model: PreTrainedModel) -> Evaluator:
        return replace(self, backend=HFBackend(model, self.attention, self.backend.positions))

    def hidden_states(
        self,
        token: Tensor,
        length: Tensor,
        row: Tensor,
        column: Tensor,
        routing: RowRouting | None = None,
    ) -> HiddenStates:
        length = _needed_length(length, row, column)
        if not len(row):  # models cannot evaluate an empty sequence
            length[:1] = 1
        packed = pack(token, length)
        if positions := self.backend.positions:
            for i, n in enumerate(length.tolist()):
                packed.position[packed.token_index[i, :n]] = positions(token[i, :n].tolist())[:-1]
        device = self.model.device
        index = to_device(packed.token_index[row, column], device)
        router_pass = None
        if routing:
            count = len(packed.token)
            router_pass = routing.start(packed.token_index, length, count, device)
        return self.backend.evaluate(packed.to(device), index, router_pass)

    def microbatches(self, token: Tensor, length: Tensor, max_tokens: int) -> Iterator[Tensor]:
        for row_set in self.backend.row_sets(token, length):
            rows = row_set.rows
            limit = min(max_tokens, row_set.max_tokens)
            for part in _microbatches(token[rows], length[rows], limit):
                yield rows[part]

    def engine(
        self, head: LMHead, tokenizer: PreTrainedTokenizerBase, stop_conditions: StopConditions
    ) -> Engine:
        static = StaticDecoding(self.capture) if self.capture else None
        cache = PrefixCache(self.limits.context_tokens)
        engine = LocalEngine(
            self.backend, head, tokenizer, stop_conditions, self.limits, cache, static
        )
        return PromptLogprobEngine(engine, self, head, stop_conditions)

    @property
    def warning(self) -> str:
        return ""


def _needed_length(length: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Length of each row without the tokens after its last requested column."""
    return torch.zeros_like(length).scatter_reduce(0, row, column + 1, "amax")


def _microbatches(token: Tensor, length: Tensor, max_tokens: int) -> Iterator[Tensor]:
    """Row indices of micro-batches with at most `max_tokens` packed tokens, or of one long row."""
    rows = SortedRows.of(token, length)
    number = torch.from_numpy(rows.row_number)
    order = number.argsort(stable=True)
    shared = torch.from_numpy(rows.prefix_lengths)[number[order]]
    is_repeated = number[order].diff(prepend=torch.tensor([-1])) == 0
    shared = torch.where(is_repeated, length[order], shared)
    num_new = length[order] - shared
    while len(order):
        num_tokens = num_new.cumsum(0) + length[order[0]] - num_new[0]
        take = max(1, int((num_tokens <= max_tokens).sum()))
        # prefixes that are too short to be packed were counted as shared
        while take > 1:
            size = _num_packed_tokens(token, length, order[:take])
            if size <= max_tokens:
                break
            take = min(take - 1, take * max_tokens // size)
        yield order[:take].sort().values
        order = order[take:]
        num_new = num_new[take:]


def _num_packed_tokens(token: Tensor, length: Tensor, rows: Tensor) -> int:
    return len(pack(token[rows], length[rows]).token)


@dataclass(frozen=True)
class PaddedEvaluator:
    """Evaluates right-padded rows with the model's own attention.

    Args:
        model: the model.
        reason: why its rows are not packed, in a sentence that packed attention begins.
    """

    model: PreTrainedModel
    reason: str = field(default="is not used", kw_only=True)

    def with_model(self, model: PreTrainedModel) -> Evaluator:
        return replace(self, model=model)

    def with_module_calls(self, model: PreTrainedModel) -> Evaluator:
        return self.with_model(model)

    def hidden_states(
        self,
        token: Tensor,
        length: Tensor,
        row: Tensor,
        column: Tensor,
        routing: RowRouting | None = None,
    ) -> HiddenStates:
        token = token[:, : int(length.max())]
        router_pass = None
        if routing:
            index = torch.arange(token.numel()).view(token.shape)
            needed = _needed_length(length, row, column)
            router_pass = routing.start(index, needed, token.numel(), self.model.device)
        arguments = {**self.model_arguments(token), **routing_argument(router_pass)}
        hidden = self.model.base_model(**arguments, use_cache=False).last_hidden_state
        return HiddenStates(hidden[row, column])

    def model_arguments(self, token: Tensor) -> dict[str, Any]:
        """Arguments of the model's forward pass for padded rows (N, L)."""
        return {"input_ids": to_device(token, self.model.device)}

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
        cause = f"packed attention of {name} {self.reason}"
        return f"{cause}: rows are padded, and generation is slow."

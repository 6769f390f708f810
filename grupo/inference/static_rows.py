"""Decode steps of fixed shapes, which a GPU captures once and launches as a whole.

An eager decode step launches some thirty small kernels for each layer, and launching them takes
longer than computing them. A captured step is one launch.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from grupo.inference.decode_rows import DecodeConfig, RowTensors, sampled_rows
from grupo.kernels.backend import Backend
from grupo.kernels.cuda_graphs import CapturedWork, CaptureSwitch, CUDACapture
from grupo.kernels.kv_tensors import enlarged
from grupo.kernels.llama.structure import has_adapters, is_llama
from grupo.kernels.static_decode_state import Capacity, StaticDecodeState


def capture_switch_for(backend: Backend) -> CaptureSwitch | None:
    """Captures the decode steps of Llama-style models on CUDA; None if no steps are captured.

    On a CPU, steps of fixed shapes only compute more. The modules of other families, and those of
    adapters, may read numbers of the device.
    """
    model = backend.model
    is_captured = model.device.type == "cuda" and is_llama(model) and not has_adapters(model)
    return CaptureSwitch(CUDACapture(model.device)) if is_captured else None


class StaticRows:
    """Rows in tensors that keep their places; a step depends on numbers on the device only.

    Args:
        config: of the batch.
        capture: captures steps. Default: steps are computed as they are.
    """

    def __init__(self, config: DecodeConfig, capture: CaptureSwitch | None) -> None:
        self.config = config
        device = config.backend.model.device
        self.state = StaticDecodeState(config.prefix_cache, device)
        none = torch.zeros(0, dtype=torch.long, device=device)
        self.tensors = RowTensors(none, none, none, none, none.double())
        self.captured = CapturedWork(capture)
        # what captured steps depend on: the places of the weights and of the tensors
        self.weights: tuple[int, ...] = ()
        self.num_allocations = 0

    def restart(self, max_new_tokens: int) -> None:
        """Removes all rows, for another batch of the same engine."""
        self.state.restart(max_new_tokens)
        model = self.config.backend.model
        weights = tuple(x.data_ptr() for x in model.parameters())
        # casts of weights are deleted when autocast ends
        if weights != self.weights or torch.is_autocast_enabled(model.device.type):
            self.captured.forget()
            self.weights = weights

    def append(
        self, slots: Sequence[Sequence[int]], prefixes: Sequence[int], new: RowTensors
    ) -> None:
        before = len(self.state.prefix_of_row)
        self.state.add_rows(slots, prefixes)
        size = self.state.allocated.rows
        if size > len(self.tensors.token):
            self.tensors = RowTensors(*(enlarged(x, [size]) for x in vars(self.tensors).values()))
        for x, added in zip(vars(self.tensors).values(), vars(new).values(), strict=True):
            x[before : before + len(prefixes)] = added

    def select(self, rows: Sequence[int]) -> None:
        index = torch.tensor(rows, dtype=torch.long, device=self.tensors.token.device)
        for x in vars(self.tensors).values():
            x[: len(rows)] = x[index]
        self.state.select_rows(rows)

    def step(self) -> None:
        capacity = self.state.begin_step()
        if self.state.num_allocations != self.num_allocations:
            self.captured.forget()
            self.num_allocations = self.state.num_allocations
        self.captured(capacity, lambda: self._evaluate(capacity))
        self.state.advance()

    def read(self) -> tuple[list[float], list[float]]:
        rows = len(self.state.prefix_of_row)
        x = self.tensors
        # float64 holds both without rounding
        token, logp = torch.stack([x.token[:rows].double(), x.logp[:rows]]).tolist()
        return token, logp

    def _evaluate(self, capacity: Capacity) -> None:
        """The step: operations of fixed shapes on tensors that keep their places."""
        config, state = self.config, self.state
        rows = RowTensors(*(x[: capacity.rows] for x in vars(self.tensors).values()))
        state.masks = {}
        # a finished row may have reached the end of the context
        position = rows.first_position + state.num_generated
        position = position.clamp(max=config.context_length - 1)
        logits = config.backend.decode(rows.token, position, state, config.lm_head)
        state.count_tokens()
        lengths = rows.prompt_length, rows.first_position, state.num_generated
        sampled = sampled_rows(config.sampling, logits, rows.rng_key, *lengths)
        rows.token.copy_(sampled.token)
        rows.logp.copy_(sampled.logp.float())


class StaticDecoding:
    """The static rows of an engine, whose tensors and captured steps are kept for later batches.

    Args:
        capture: captures steps. Default: steps are computed as they are.
    """

    def __init__(self, capture: CaptureSwitch | None = None) -> None:
        self.capture = capture
        self.kept: StaticRows | None = None

    @property
    def is_enabled(self) -> bool:
        """False after a capture has failed: without captures, fixed shapes only compute more."""
        return not (self.capture and self.capture.failure)

    def rows(self, config: DecodeConfig) -> StaticRows:
        """Rows for a batch: those of the last one without its answers, if they sample alike."""
        any_length = replace(config, max_new_tokens=0)
        if self.kept is None or replace(self.kept.config, max_new_tokens=0) != any_length:
            self.kept = None  # before others are allocated
            self.kept = StaticRows(config, self.capture)
        self.kept.restart(config.max_new_tokens)
        return self.kept

    def clear(self) -> None:
        """Releases all memory."""
        self.kept = None

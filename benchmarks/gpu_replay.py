"""Experiment with grupo's engine: decode steps of fixed shapes, captured as CUDA graphs.

All rows start together and generate the same number of tokens; all prompts have the same length and
the same number of rows. The random numbers are the engine's, so the tokens must be equal as well.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.gpu_machine import capture_graph, graph_pool, side_stream
from grupo.core.rng import uniform
from grupo.inference.base import Request
from grupo.kernels.backend import HFBackend
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.kv_tensors import LayerKV
from grupo.kernels.lm_head import LMHead
from grupo.kernels.packing import hf_attention
from grupo.kernels.prefill import prefill
from grupo.kernels.prefix_cache import PrefixCache


class StaticDecodeState(DecodeState):
    """Decode state of fixed shapes: attends to the first `width` cells, with later ones masked.

    Args:
        room: cells per row, which is the number of new tokens.
        device: the device of the keys and values.
    """

    def __init__(self, room: int, device: torch.device) -> None:
        super().__init__(PrefixCache(1 << 30), room, device)
        self.width = room
        self.cell = torch.zeros(1, dtype=torch.long, device=device)  # of the current token

    def _append_kv(self, layer: int, k: Tensor, v: Tensor) -> LayerKV:
        if layer not in self.suffix_kv:
            blank = k.new_zeros(k.shape[0], k.shape[1], self.max_new_tokens, k.shape[2])
            self.suffix_kv[layer] = blank, torch.zeros_like(blank)
        for cache, new in zip(self.suffix_kv[layer], (k, v), strict=True):
            cache.index_copy_(2, self.cell, new[:, :, None])
        keys, values = self.suffix_kv[layer]
        return keys[:, :, : self.width], values[:, :, : self.width]

    def _masked_positions(self, window: float) -> Tensor:
        later = torch.arange(self.width, device=self.cell.device) > self.cell
        return torch.cat([later.new_zeros(len(self.prefix_slots[0])), later])[None]


class GraphSampler:
    """Generates rows by replaying captured decode steps, one launch each.

    Args:
        model: the model, with grupo's packed attention.
        requests: one request per row.
        new: tokens to generate per row.
    """

    def __init__(self, model: PreTrainedModel, requests: Sequence[Request], new: int) -> None:
        self.model = model
        self.new = new
        self.forward = hf_attention.forward_packed
        self.head = LMHead(model.get_output_embeddings())
        self.sampling = requests[0].sampling
        self.prompts = list(dict.fromkeys(request.tokens for request in requests))
        self.length = len(self.prompts[0])
        index = {prompt: i for i, prompt in enumerate(self.prompts)}
        self.prompt_of_row = [index[r.tokens] for r in requests]
        self.prompt_index = torch.tensor(self.prompt_of_row, device=model.device)
        self.key = torch.tensor([r.rng_key for r in requests], device=model.device)
        self.token = torch.zeros_like(self.key)  # the latest token of each row
        self.tokens = self.key.new_zeros(len(requests), new)
        self.logp = torch.zeros(len(requests), new, device=model.device)
        self.pool = graph_pool()
        self.step_functions: list[Callable[[], Any]] = []

    @torch.no_grad()
    def start(self) -> None:
        """Prefill the prompts and sample every row's first token."""
        self.decoding = StaticDecodeState(self.new, self.key.device)
        backend, prefix_cache = HFBackend(self.model), self.decoding.prefix_cache
        logits, slots = prefill(backend, self.head, prefix_cache, self.prompts)
        self.decoding.add_rows(slots, self.prompt_of_row)
        assert self.decoding.is_dense, "prompts differ in their number of rows"
        assert not self.decoding.ragged_prefixes, "prompts differ in length"
        self._sample_tokens(logits[self.prompt_index], self.decoding.cell)

    @torch.no_grad()
    def capture_steps(self, stride: int, transform: Callable[..., Any]) -> None:
        """Capture decode steps, a wider one per `stride` tokens; `transform` wraps the forward."""
        first = self.token.clone()
        self._step()  # allocates the cells of every layer
        self.forward = transform(hf_attention.forward_packed)
        widths = [min(n + stride, self.new) for n in range(0, self.new, stride)]
        step_by_width = {width: self._capture_step(width) for width in widths}
        self.step_functions = [step_by_width[widths[n // stride]] for n in range(self.new)]
        self.token.copy_(first)
        self.decoding.cell.zero_()

    @torch.no_grad()
    def generate(self) -> None:
        """Generate all tokens after the first ones."""
        for step in self.step_functions[: self.new - 1]:
            step()

    def _step(self) -> None:
        self.decoding.masks = {}  # computed once per step, shared by the layers
        cell = self.decoding.cell
        position = (self.length + cell).expand(len(self.key))
        hidden = self.forward(self.model, self.token, position, self.decoding)
        cell += 1
        self._sample_tokens(self.head(hidden), cell)

    def _sample_tokens(self, logits: Tensor, cell: Tensor) -> None:
        position = (self.length + cell).expand(len(self.key))
        token, logp = self.sampling.sample(logits, uniform(self.key, position))
        self.token.copy_(token)
        self.tokens.index_copy_(1, cell, token[:, None])
        self.logp.index_copy_(1, cell, logp[:, None].to(self.logp))

    def _capture_step(self, width: int) -> Callable[[], Any]:
        """Capture a step that attends to the first `width` cells."""
        with side_stream():
            for _ in range(2):  # warm-up: the first calls allocate and compile
                self._step_with_width(width)
                self.decoding.cell.zero_()
        return capture_graph(lambda: self._step_with_width(width), self.pool)

    def _step_with_width(self, width: int) -> None:
        self.decoding.width = width
        self._step()

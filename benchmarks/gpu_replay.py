"""An experiment on top of grupo's engine: steps of fixed shapes, captured and replayed on CUDA.

It is for rows that all start together, as many to each prompt, all prompts as long as each other,
and all saying equally many tokens. Its random numbers are the engine's: so must its tokens be.
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
    """Decoding whose shapes do not change: it looks at `width` cells, and hides those to come."""

    def __init__(self, room: int, device: torch.device) -> None:
        super().__init__(PrefixCache(1 << 30), room, device)
        self.width = room
        self.cell = torch.zeros(1, dtype=torch.long, device=device)  # the cell of what is read now

    def _append_kv(self, layer: int, k: Tensor, v: Tensor) -> LayerKV:
        if layer not in self.suffix_kv:
            blank = k.new_zeros(k.shape[0], k.shape[1], self.max_new_tokens, k.shape[2])
            self.suffix_kv[layer] = blank, torch.zeros_like(blank)
        for kept, new in zip(self.suffix_kv[layer], (k, v), strict=True):
            kept.index_copy_(2, self.cell, new[:, :, None])
        keys, values = self.suffix_kv[layer]
        return keys[:, :, : self.width], values[:, :, : self.width]

    def _hidden_mask(self, window: float) -> Tensor:
        later = torch.arange(self.width, device=self.cell.device) > self.cell
        return torch.cat([later.new_zeros(len(self.prefix_slots[0])), later])[None]


class GraphSampler:
    """Rows that speak in steps of which each is one launch."""

    def __init__(self, model: PreTrainedModel, requests: Sequence[Request], new: int) -> None:
        self.model, self.new, self.forward = model, new, hf_attention.forward_packed
        self.head, self.sampling = LMHead(model.get_output_embeddings()), requests[0].sampling
        prompts = list(dict.fromkeys(r.tokens for r in requests))
        self.prompts, self.length = prompts, len(prompts[0])
        place = {prompt: i for i, prompt in enumerate(prompts)}
        self.prompt_index = torch.tensor([place[r.tokens] for r in requests], device=model.device)
        self.key = torch.tensor([r.rng_key for r in requests], device=model.device)
        self.token = torch.zeros_like(self.key)  # the newest of each row
        self.tokens = self.key.new_zeros(len(requests), new)
        self.logp = torch.zeros(len(requests), new, device=model.device)
        self.pool, self.step_functions = graph_pool(), list[Callable[[], Any]]()

    @torch.no_grad()
    def start(self) -> None:
        """Read the prompts and draw every row's first token."""
        self.decoding = StaticDecodeState(self.new, self.key.device)
        hidden, slots = prefill(HFBackend(self.model), self.decoding.prefix_cache, self.prompts)
        self.decoding.add_rows(slots, self.prompt_index)
        assert (self.decoding.is_dense, self.decoding.ragged_prefixes) == (True, False), (
            "as said above"
        )
        self._sample_tokens(self.head(hidden)[self.prompt_index], self.decoding.cell)

    @torch.no_grad()
    def capture_steps(self, stride: int, transform: Callable[..., Any]) -> None:
        """Capture decode steps, a wider one per `stride` tokens; `transform` wraps the forward."""
        first = self.token.clone()
        self._step()  # every layer has its cells from now on
        self.forward = transform(hf_attention.forward_packed)
        widths = [min(n + stride, self.new) for n in range(0, self.new, stride)]
        ready = {width: self._capture_step(width) for width in widths}
        self.step_functions = [
            ready[min(n // stride * stride + stride, self.new)] for n in range(self.new)
        ]
        self.token.copy_(first)
        self.decoding.cell.zero_()

    @torch.no_grad()
    def generate(self) -> None:
        """Everything after the first tokens."""
        for step in self.step_functions[: self.new - 1]:
            step()

    def _step(self) -> None:
        at = self.decoding.cell
        position = (self.length + at).expand(len(self.key))
        hidden = self.forward(self.model, self.token, position, self.decoding)
        at += 1
        self._sample_tokens(self.head(hidden), at)

    def _sample_tokens(self, logits: Tensor, at: Tensor) -> None:
        token, logp = self.sampling.sample(logits, uniform(self.key, self.length + at))
        self.token.copy_(token)
        self.tokens.index_copy_(1, at, token[:, None])
        self.logp.index_copy_(1, at, logp[:, None].to(self.logp))

    def _capture_step(self, width: int) -> Callable[[], Any]:
        """A step that looks at so many cells."""
        with side_stream():
            for _ in range(2):  # what is done first allocates, and compiles
                self._step_with_width(width)
                self.decoding.cell.zero_()
        return capture_graph(lambda: self._step_with_width(width), self.pool)

    def _step_with_width(self, width: int) -> None:
        self.decoding.width = width
        self._step()

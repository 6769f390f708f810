"""An experiment on top of grupo's engine: steps of fixed shapes, captured and replayed on CUDA.

It is for rows that all start together, as many to each prompt, all prompts as long as each other,
and all saying equally many tokens. Its random numbers are the engine's: so must its tokens be.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.gpu_machine import beside, captured, pool
from grupo.core.rng import uniform
from grupo.inference.base import Request
from grupo.kernels.backend import Modules
from grupo.kernels.decode_state import Decoding
from grupo.kernels.kv_tensors import State
from grupo.kernels.lm_head import Head
from grupo.kernels.packing import hf_attention
from grupo.kernels.prefill import prefill
from grupo.kernels.prefix_cache import Memory


class Still(Decoding):
    """Decoding whose shapes do not change: it looks at `width` cells, and hides those to come."""

    def __init__(self, room: int, device: torch.device) -> None:
        super().__init__(Memory(1 << 30), room, device)
        self.width = room
        self.at = torch.zeros(1, dtype=torch.long, device=device)  # the cell of what is read now

    def _say(self, layer: int, k: Tensor, v: Tensor) -> State:
        if layer not in self.own:
            blank = k.new_zeros(k.shape[0], k.shape[1], self.room, k.shape[2])
            self.own[layer] = blank, torch.zeros_like(blank)
        for kept, new in zip(self.own[layer], (k, v), strict=True):
            kept.index_copy_(2, self.at, new[:, :, None])
        keys, values = self.own[layer]
        return keys[:, :, : self.width], values[:, :, : self.width]

    def _unseen(self, window: float) -> Tensor:
        later = torch.arange(self.width, device=self.at.device) > self.at
        return torch.cat([later.new_zeros(len(self.slots[0])), later])[None]


class Replayed:
    """Rows that speak in steps of which each is one launch."""

    def __init__(self, model: PreTrainedModel, requests: Sequence[Request], new: int) -> None:
        self.model, self.new, self.read = model, new, hf_attention.read
        self.head, self.sampling = Head(model.get_output_embeddings()), requests[0].sampling
        prompts = list(dict.fromkeys(r.tokens for r in requests))
        self.prompts, self.length = prompts, len(prompts[0])
        place = {prompt: i for i, prompt in enumerate(prompts)}
        self.trunk = torch.tensor([place[r.tokens] for r in requests], device=model.device)
        self.key = torch.tensor([r.key for r in requests], device=model.device)
        self.token = torch.zeros_like(self.key)  # the newest of each row
        self.tokens = self.key.new_zeros(len(requests), new)
        self.logp = torch.zeros(len(requests), new, device=model.device)
        self.pool, self.steps = pool(), list[Callable[[], Any]]()

    @torch.no_grad()
    def start(self) -> None:
        """Read the prompts and draw every row's first token."""
        self.decoding = Still(self.new, self.key.device)
        hidden, slots = prefill(Modules(self.model), self.decoding.memory, self.prompts)
        self.decoding.add(slots, self.trunk)
        assert (self.decoding.even, self.decoding.ragged) == (True, False), "as said above"
        self._draw(self.head(hidden)[self.trunk], self.decoding.at)

    @torch.no_grad()
    def prepare(self, stride: int, made: Callable[..., Any]) -> None:
        """Capture steps, a wider one for every `stride` tokens; `made` makes of reading another."""
        first = self.token.clone()
        self._step()  # every layer has its cells from now on
        self.read = made(hf_attention.read)
        widths = [min(n + stride, self.new) for n in range(0, self.new, stride)]
        ready = {width: self._captured(width) for width in widths}
        self.steps = [ready[min(n // stride * stride + stride, self.new)] for n in range(self.new)]
        self.token.copy_(first)
        self.decoding.at.zero_()

    @torch.no_grad()
    def say(self) -> None:
        """Everything after the first tokens."""
        for step in self.steps[: self.new - 1]:
            step()

    def _step(self) -> None:
        at = self.decoding.at
        position = (self.length + at).expand(len(self.key))
        hidden = self.read(self.model, self.token, position, self.decoding)
        at += 1
        self._draw(self.head(hidden), at)

    def _draw(self, logits: Tensor, at: Tensor) -> None:
        token, logp = self.sampling.draw(logits, uniform(self.key, self.length + at))
        self.token.copy_(token)
        self.tokens.index_copy_(1, at, token[:, None])
        self.logp.index_copy_(1, at, logp[:, None].to(self.logp))

    def _captured(self, width: int) -> Callable[[], Any]:
        """A step that looks at so many cells."""
        with beside():
            for _ in range(2):  # what is done first allocates, and compiles
                self._wide(width)
                self.decoding.at.zero_()
        return captured(lambda: self._wide(width), self.pool)

    def _wide(self, width: int) -> None:
        self.decoding.width = width
        self._step()

"""Sampling answers that begin with soft thoughts, by transformers' own attention and cache."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from grupo.core.rng import derive_key, uniform
from grupo.inference.base import (
    Reply,
    Request,
    StopConditions,
    batchable_groups,
    check_generate_only,
)
from grupo.inference.soft_tokens import (
    SoftThinkingConfig,
    TokenOrMixture,
    gumbel,
    pad_soft_tokens,
    soft_logp_and_entropy,
)
from grupo.inference.stop_conditions import StopChecker
from grupo.kernels.lm_head import LMHead


@dataclass(frozen=True)
class SoftThinkingEngine:
    """Answers requests, among whose tokens may be thoughts, with thoughts and then tokens."""

    model: PreTrainedModel
    lm_head: LMHead
    tokenizer: PreTrainedTokenizerBase
    stop_conditions: StopConditions
    soft_thinking: SoftThinkingConfig

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request, those together that are drawn alike; without room, with nothing."""
        check_generate_only(requests, "a model that thinks softly")
        self.model.eval()
        yield from (
            (i, Reply())
            for i, r in enumerate(requests)
            if self.stop_conditions.remaining_tokens(r) <= 0
        )
        for some in batchable_groups(requests):
            now = [i for i in some if self.stop_conditions.remaining_tokens(requests[i]) > 0]
            if now:
                yield from zip(
                    now, _SoftThinkingBatch(self, [requests[i] for i in now])(), strict=True
                )


@dataclass
class _RowState:
    """What one request was answered until now."""

    max_new_tokens: int
    is_thinking: bool = True
    items: list[Any] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    finish_reason: str = ""

    def append(self, item: TokenOrMixture, logp: float) -> None:
        """One part more; the last for which there is room ends the answer."""
        self.items.append(item)
        self.logp.append(logp)
        self.finish_reason = "length" if len(self.items) >= self.max_new_tokens else ""


class _SoftThinkingBatch:
    """Requests being answered together, padded on the left."""

    def __init__(self, engine: SoftThinkingEngine, requests: Sequence[Request]) -> None:
        self.engine, self.sampling = engine, requests[0].sampling
        self.stop_checker = StopChecker(
            engine.stop_conditions.for_request(requests[0]), engine.tokenizer
        )
        self.end_token = engine.tokenizer.convert_tokens_to_ids(engine.soft_thinking.end_token)
        self.rows = [_RowState(engine.stop_conditions.remaining_tokens(r)) for r in requests]
        device = engine.model.device
        self.position = torch.tensor([len(r.tokens) for r in requests], device=device)
        self.rng_key = torch.tensor([r.rng_key for r in requests], device=device)
        self.noise_key = torch.tensor(
            [derive_key(r.rng_key, "thought") for r in requests], device=device
        )
        self.cache = DynamicCache(config=engine.model.config)
        width = int(self.position.max())
        self.attention_mask = torch.arange(width, device=device) >= width - self.position[:, None]
        self.pending_items = [[0] * (width - len(r.tokens)) + list(r.tokens) for r in requests]

    def __call__(self) -> list[Reply]:
        """Go on until all are over."""
        while not all(row.finish_reason for row in self.rows):
            self._sample(self._logits())
            self.position = self.position + 1
            self.attention_mask = torch.cat(
                [self.attention_mask, torch.ones_like(self.attention_mask[:, :1])], 1
            )
            self.pending_items = [row.items[-1:] for row in self.rows]
        return [Reply(tuple(row.items), tuple(row.logp), row.finish_reason) for row in self.rows]

    def _logits(self) -> Tensor:
        model, thoughts = self.engine.model, self.engine.soft_thinking
        mixed, score = (
            x.to(model.device) for x in pad_soft_tokens(self.pending_items, thoughts.top_k)
        )
        position = (self.attention_mask.long().cumsum(-1) - 1).clamp(min=0)
        said = model.base_model(
            inputs_embeds=thoughts.mix_embeddings(model.get_input_embeddings(), mixed, score),
            attention_mask=self.attention_mask.long(),
            position_ids=position[:, -mixed.shape[1] :],
            past_key_values=self.cache,
            use_cache=True,
        )
        return self.engine.lm_head(said.last_hidden_state[:, -1]).float()

    def _sample(self, logits: Tensor) -> None:
        token, logp = self.sampling.sample(logits, uniform(self.rng_key, self.position))
        mixed, score = self.engine.soft_thinking.sample(logits, self._gumbel_noise())
        density, _ = soft_logp_and_entropy(logits, mixed, score)
        top = mixed.gather(1, score.argmax(-1, keepdim=True))[:, 0]
        words = zip(token.tolist(), logp.tolist(), strict=True)
        soft = zip(mixed.tolist(), score.tolist(), density.tolist(), top.tolist(), strict=True)
        for row, word, (tokens, scores, said, best) in zip(self.rows, words, soft, strict=True):
            if row.finish_reason:
                continue
            if row.is_thinking:
                row.append((tuple(tokens), tuple(scores)), said)
                enough = len(row.items) >= self.engine.soft_thinking.max_soft_steps
                row.is_thinking = best != self.end_token and not enough
            else:
                row.append(*word)
                row.finish_reason = self._finish_reason(row) or row.finish_reason

    def _finish_reason(self, row: _RowState) -> str:
        if row.items[-1] in self.stop_checker.stop_conditions.eos_token_ids:
            return "end"
        words = [part for part in row.items if isinstance(part, int)]
        return "stop" if self.stop_checker.by_text([words], self.attention_mask.device)[0] else ""

    def _gumbel_noise(self) -> Tensor:
        """Noise of a step, (R, k); 0 where the greedy choice is asked for."""
        kept = self.engine.soft_thinking.top_k
        at = self.position[:, None] * kept + torch.arange(kept, device=self.position.device)
        u = uniform(self.noise_key.repeat_interleave(kept), at.flatten()).view_as(at)
        return gumbel(u).float() * (self.sampling.top_k != 1)

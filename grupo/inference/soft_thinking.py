"""Generation of answers that begin with soft thinking, with transformers' own KV cache."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

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
from grupo.util.rng import derive_key, uniform


@dataclass(frozen=True)
class SoftThinkingEngine:
    """Generates soft steps and then tokens; prompts may contain soft steps.

    Args:
        model: the model.
        lm_head: the model's head.
        tokenizer: decodes answers in the search for stop strings.
        stop_conditions: of all answers; soft steps count as tokens.
        soft_thinking: limits and temperature of the soft steps.
    """

    model: PreTrainedModel
    lm_head: LMHead
    tokenizer: PreTrainedTokenizerBase
    stop_conditions: StopConditions
    soft_thinking: SoftThinkingConfig

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answers every request; an empty reply if the context is full."""
        check_generate_only(requests, "a soft-thinking model")
        self.model.eval()
        remaining = [self.stop_conditions.remaining_tokens(request) for request in requests]
        yield from ((i, Reply()) for i, tokens in enumerate(remaining) if tokens <= 0)
        for group in batchable_groups(requests):
            indices = [i for i in group if remaining[i] > 0]
            if indices:
                batch = _SoftThinkingBatch(self, [requests[i] for i in indices])
                yield from zip(indices, batch(), strict=True)


@dataclass
class _RowState:
    """The answer to one request so far."""

    max_new_tokens: int
    is_thinking: bool = True
    items: list[Any] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    finish_reason: str = ""

    def append(self, item: TokenOrMixture, logp: float) -> None:
        """Appends a soft step or a token; the last one that fits ends the answer."""
        self.items.append(item)
        self.logp.append(logp)
        self.finish_reason = "length" if len(self.items) >= self.max_new_tokens else ""


class _SoftThinkingBatch:
    """Left-padded requests that are answered together."""

    def __init__(self, engine: SoftThinkingEngine, requests: Sequence[Request]) -> None:
        self.engine = engine
        self.sampling = requests[0].sampling
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
        """Generates until all answers have ended."""
        while not all(row.finish_reason for row in self.rows):
            self._sample(self._logits())
            self.position = self.position + 1
            self.attention_mask = torch.cat(
                [self.attention_mask, torch.ones_like(self.attention_mask[:, :1])], 1
            )
            self.pending_items = [row.items[-1:] for row in self.rows]
        return [Reply(tuple(row.items), tuple(row.logp), row.finish_reason) for row in self.rows]

    def _logits(self) -> Tensor:
        model = self.engine.model
        config = self.engine.soft_thinking
        token, score = pad_soft_tokens(self.pending_items, config.top_k)
        token = token.to(model.device)
        score = score.to(model.device)
        position = (self.attention_mask.long().cumsum(-1) - 1).clamp(min=0)
        output = model.base_model(
            inputs_embeds=config.mix_embeddings(model.get_input_embeddings(), token, score),
            attention_mask=self.attention_mask.long(),
            position_ids=position[:, -token.shape[1] :],
            past_key_values=self.cache,
            use_cache=True,
        )
        return self.engine.lm_head(output.last_hidden_state[:, -1]).float()

    def _sample(self, logits: Tensor) -> None:
        token, logp = self.sampling.sample(logits, uniform(self.rng_key, self.position))
        config = self.engine.soft_thinking
        soft_token, score = config.sample(logits, self._gumbel_noise())
        soft_logp, _ = soft_logp_and_entropy(logits, soft_token, score)
        top = soft_token.gather(1, score.argmax(-1, keepdim=True))[:, 0]
        for i, row in enumerate(self.rows):
            if row.finish_reason:
                continue
            if row.is_thinking:
                mixture = tuple(soft_token[i].tolist()), tuple(score[i].tolist())
                row.append(mixture, float(soft_logp[i]))
                exhausted = len(row.items) >= config.max_soft_steps
                row.is_thinking = int(top[i]) != self.end_token and not exhausted
            else:
                row.append(int(token[i]), float(logp[i]))
                row.finish_reason = self._finish_reason(row) or row.finish_reason

    def _finish_reason(self, row: _RowState) -> str:
        if row.items[-1] in self.stop_checker.stop_conditions.eos_token_ids:
            return "end"
        tokens = [item for item in row.items if isinstance(item, int)]
        stopped = self.stop_checker.by_text([tokens], self.attention_mask.device)[0]
        return "stop" if stopped else ""

    def _gumbel_noise(self) -> Tensor:
        """Noise (R, k) of a step; 0 for greedy decoding."""
        k = self.engine.soft_thinking.top_k
        index = self.position[:, None] * k + torch.arange(k, device=self.position.device)
        u = uniform(self.noise_key.repeat_interleave(k), index.flatten()).view_as(index)
        return gumbel(u).float() * (self.sampling.top_k != 1)

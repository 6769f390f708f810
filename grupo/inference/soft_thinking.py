"""Sampling answers that begin with soft thoughts, by transformers' own attention and cache."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from grupo.core.rng import derive, uniform
from grupo.inference.base import Bounds, Reply, Request, alike, check_drawn
from grupo.inference.soft_tokens import Part, Thoughts, gumbel, lay, likelihood
from grupo.inference.stop_conditions import Ending
from grupo.kernels.lm_head import Head


@dataclass(frozen=True)
class Thinking:
    """Answers requests, among whose tokens may be thoughts, with thoughts and then tokens."""

    model: PreTrainedModel
    head: Head
    tokenizer: PreTrainedTokenizerBase
    bounds: Bounds
    thoughts: Thoughts

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request, those together that are drawn alike; without room, with nothing."""
        check_drawn(requests, "a model that thinks softly")
        self.model.eval()
        yield from ((i, Reply()) for i, r in enumerate(requests) if self.bounds.room(r) <= 0)
        for some in alike(requests):
            now = [i for i in some if self.bounds.room(requests[i]) > 0]
            if now:
                yield from zip(now, _Rows(self, [requests[i] for i in now])(), strict=True)


@dataclass
class _Row:
    """What one request was answered until now."""

    room: int
    thinking: bool = True
    parts: list[Any] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    over: str = ""

    def say(self, part: Part, logp: float) -> None:
        """One part more; the last for which there is room ends the answer."""
        self.parts.append(part)
        self.logp.append(logp)
        self.over = "length" if len(self.parts) >= self.room else ""


class _Rows:
    """Requests being answered together, padded on the left."""

    def __init__(self, engine: Thinking, requests: Sequence[Request]) -> None:
        self.engine, self.sampling = engine, requests[0].sampling
        self.ending = Ending(engine.bounds.of(requests[0]), engine.tokenizer)
        self.end = engine.tokenizer.convert_tokens_to_ids(engine.thoughts.end)
        self.rows = [_Row(engine.bounds.room(r)) for r in requests]
        device = engine.model.device
        self.place = torch.tensor([len(r.tokens) for r in requests], device=device)
        self.key = torch.tensor([r.key for r in requests], device=device)
        self.noise = torch.tensor([derive(r.key, "thought") for r in requests], device=device)
        self.cache = DynamicCache(config=engine.model.config)
        width = int(self.place.max())
        self.mask = torch.arange(width, device=device) >= width - self.place[:, None]
        self.read = [[0] * (width - len(r.tokens)) + list(r.tokens) for r in requests]

    def __call__(self) -> list[Reply]:
        """Go on until all are over."""
        while not all(row.over for row in self.rows):
            self._say(self._logits())
            self.place = self.place + 1
            self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], 1)
            self.read = [row.parts[-1:] for row in self.rows]
        return [Reply(tuple(row.parts), tuple(row.logp), row.over) for row in self.rows]

    def _logits(self) -> Tensor:
        model, thoughts = self.engine.model, self.engine.thoughts
        mixed, score = (x.to(model.device) for x in lay(self.read, thoughts.kept))
        position = (self.mask.long().cumsum(-1) - 1).clamp(min=0)
        said = model.base_model(
            inputs_embeds=thoughts.embedded(model.get_input_embeddings(), mixed, score),
            attention_mask=self.mask.long(),
            position_ids=position[:, -mixed.shape[1] :],
            past_key_values=self.cache,
            use_cache=True,
        )
        return self.engine.head(said.last_hidden_state[:, -1]).float()

    def _say(self, logits: Tensor) -> None:
        token, logp = self.sampling.draw(logits, uniform(self.key, self.place))
        mixed, score = self.engine.thoughts.draw(logits, self._gumbel())
        density, _ = likelihood(logits, mixed, score)
        top = mixed.gather(1, score.argmax(-1, keepdim=True))[:, 0]
        words = zip(token.tolist(), logp.tolist(), strict=True)
        soft = zip(mixed.tolist(), score.tolist(), density.tolist(), top.tolist(), strict=True)
        for row, word, (tokens, scores, said, best) in zip(self.rows, words, soft, strict=True):
            if row.over:
                continue
            if row.thinking:
                row.say((tuple(tokens), tuple(scores)), said)
                enough = len(row.parts) >= self.engine.thoughts.limit
                row.thinking = best != self.end and not enough
            else:
                row.say(*word)
                row.over = self._ended(row) or row.over

    def _ended(self, row: _Row) -> str:
        if row.parts[-1] in self.ending.bounds.ends:
            return "end"
        words = [part for part in row.parts if isinstance(part, int)]
        return "stop" if self.ending.by_text([words], self.mask.device)[0] else ""

    def _gumbel(self) -> Tensor:
        """Noise of a step, (R, k); 0 where the greedy choice is asked for."""
        kept = self.engine.thoughts.kept
        at = self.place[:, None] * kept + torch.arange(kept, device=self.place.device)
        u = uniform(self.noise.repeat_interleave(kept), at.flatten()).view_as(at)
        return gumbel(u).float() * (self.sampling.top_k != 1)

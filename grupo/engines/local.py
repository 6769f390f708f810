"""Sampling from a transformers model in this process.

Each prompt is read once for all its rollouts, rows that have ended leave the batch, and the random
numbers of a row belong to its rollout: they depend neither on its neighbours nor on the hour.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

from grupo.policies.logits import Sampling
from grupo.randomness import uniform

CELLS = 1 << 17  # tokens of context held at once


@dataclass(frozen=True)
class Request:
    """Go on from `tokens` with the random stream `key`."""

    tokens: tuple[int, ...]
    key: int


@dataclass(frozen=True)
class Reply:
    """What was said: tokens, the log-probability of each, and why it ended."""

    tokens: tuple[int, ...]
    logp: tuple[float, ...]
    stopped: str


@dataclass(frozen=True)
class Engine:
    """A model that answers requests."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    sampling: Sampling
    limit: int  # tokens an answer may have
    ends: frozenset[int]  # tokens that end an answer
    stop: tuple[str, ...] = ()  # texts that end an answer

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer every request, similar lengths together."""
        order = sorted(
            range(len(requests)), key=lambda i: (len(requests[i].tokens), requests[i].tokens)
        )
        replies: dict[int, Reply] = {}
        while order:
            longest = len(requests[order[-1]].tokens) + self.limit
            take = max(1, CELLS // longest)
            now, order = order[-take:], order[:-take]
            replies.update(zip(now, self._batch([requests[i] for i in now]), strict=True))
        return [replies[i] for i in range(len(requests))]

    def _batch(self, requests: Sequence[Request]) -> list[Reply]:
        rows = _Rows.start(self, requests)
        while rows.alive:
            rows.step()
        return rows.replies()


class _Rows:
    """Rows being sampled together: the prompts left-padded, the answers growing on the right."""

    def __init__(
        self, engine: Engine, requests: Sequence[Request], logits: Tensor, cache, mask: Tensor
    ):
        device = logits.device
        self.engine, self.logits, self.cache, self.mask = engine, logits, cache, mask
        self.key = torch.tensor([r.key for r in requests], device=device)
        self.row = torch.arange(len(requests), device=device)  # which request each live row answers
        self.ends = torch.tensor(sorted(engine.ends) or [-1], device=device)
        self.tokens = torch.zeros(len(requests), engine.limit, dtype=torch.long, device=device)
        self.logp = torch.zeros(len(requests), engine.limit, device=device)
        self.length = torch.zeros(len(requests), dtype=torch.long, device=device)
        self.stopped = ["length"] * len(requests)
        self.said = 0

    @classmethod
    def start(cls, engine: Engine, requests: Sequence[Request]) -> "_Rows":
        """Read every different prompt once, then give each request its row."""
        prompts = list(dict.fromkeys(r.tokens for r in requests))
        tokens, mask = _left_padded(prompts, engine.model.device)
        cache = DynamicCache(config=engine.model.config)
        logits = _forward(engine.model, tokens, mask, cache)
        place = {prompt: i for i, prompt in enumerate(prompts)}
        rows = torch.tensor([place[r.tokens] for r in requests], device=mask.device)
        cache.batch_select_indices(rows)
        return cls(engine, requests, logits[rows], cache, mask[rows])

    @property
    def alive(self) -> bool:
        """Is anything left to say?"""
        return len(self.row) > 0 and self.said < self.engine.limit

    def step(self) -> None:
        """Say one token in every live row."""
        position = self.mask.sum(1)
        token, logp = self.engine.sampling.draw(self.logits, uniform(self.key[self.row], position))
        self.tokens[self.row, self.said], self.logp[self.row, self.said] = token, logp.to(self.logp)
        self.said += 1
        self.length[self.row] = self.said
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(self.mask), 1)], 1)
        token = self._leave(token)
        if self.alive:
            self.logits = _forward(self.engine.model, token[:, None], self.mask, self.cache)

    def _leave(self, token: Tensor) -> Tensor:
        """Let the rows that ended leave; the tokens of those that stay."""
        ended = torch.isin(token, self.ends)
        for i in self.row[ended].tolist():
            self.stopped[i] = "end"
        for place, i in enumerate(self.row.tolist() if self.engine.stop else ()):
            if not ended[place] and self._says_stop(i):
                ended[place], self.stopped[i] = True, "stop"
        if not ended.any():
            return token
        stay = (~ended).nonzero()[:, 0]
        self.row, self.mask = self.row[stay], self.mask[stay]
        self.cache.batch_select_indices(stay)
        return token[stay]

    def _says_stop(self, i: int) -> bool:
        text = self.engine.tokenizer.decode(self.tokens[i, : self.said].tolist())
        return any(stop in text for stop in self.engine.stop)

    def replies(self) -> list[Reply]:
        """What every request was answered."""
        tokens, logp = self.tokens.tolist(), self.logp.tolist()
        return [
            Reply(tuple(tokens[i][:n]), tuple(logp[i][:n]), self.stopped[i])
            for i, n in enumerate(self.length.tolist())
        ]


def _forward(model: PreTrainedModel, tokens: Int[Tensor, "n s"], mask: Tensor, cache) -> Tensor:
    position = (mask.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
    out = model(
        input_ids=tokens,
        attention_mask=mask,
        position_ids=position,
        past_key_values=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    return out.logits[:, -1]


def _left_padded(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    width = max(map(len, prompts))
    tokens = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    return tokens, mask

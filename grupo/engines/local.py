"""Sampling from a transformers model in this process.

Each prompt is read once for all its rollouts, rows that have ended leave the batch, and the random
numbers of a row belong to its rollout: they depend neither on its neighbours nor on the hour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from grupo.engines.cache import growing
from grupo.policies.logits import Sampling
from grupo.randomness import uniform


@dataclass(frozen=True)
class Request:
    """Go on from `tokens` with the random stream `key`, drawing by `sampling`."""

    tokens: tuple[int, ...]
    key: int
    sampling: Sampling = Sampling()


@dataclass(frozen=True)
class Reply:
    """What was said: tokens, the log-probability of each, and why it ended."""

    tokens: tuple[int, ...] = ()
    logp: tuple[float, ...] = ()
    stopped: str = "length"


@dataclass(frozen=True)
class Engine:
    """A model that answers requests."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    limit: int  # tokens an answer may have
    ends: tuple[int, ...]  # tokens that end an answer
    stop: tuple[str, ...] = ()  # texts that end an answer
    context: int = 1 << 30  # tokens the model can read
    cells: int = 1 << 17  # tokens of context held at once

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer every request, similar lengths together; where no room is left, with nothing."""
        replies = dict.fromkeys(range(len(requests)), Reply())
        for sampling in dict.fromkeys(request.sampling for request in requests):
            alike = [i for i, r in enumerate(requests) if r.sampling == sampling]
            for now in self._together(alike, requests):
                replies.update(zip(now, self._batch([requests[i] for i in now]), strict=True))
        return list(replies.values())

    def _together(self, order: list[int], requests: Sequence[Request]) -> Iterator[list[int]]:
        """Which requests to answer at a time, the longest first."""
        order = [i for i in order if self.room(requests[i]) > 0]
        order.sort(key=lambda i: (len(requests[i].tokens), requests[i].tokens))
        while order:
            longest = len(requests[order[-1]].tokens) + self.limit
            take = max(1, self.cells // longest)
            yield order[-take:]
            order = order[:-take]

    def room(self, request: Request) -> int:
        """How many tokens may follow."""
        return min(self.limit, self.context - len(request.tokens))

    def _batch(self, requests: Sequence[Request]) -> list[Reply]:
        rows = _Rows(self, requests)
        while rows.live.any():
            rows.step()
        return rows.replies()


class _Rows:
    """Rows being sampled together: the prompts left-padded, the answers growing on the right."""

    def __init__(self, engine: Engine, requests: Sequence[Request]) -> None:
        device, shape = engine.model.device, (len(requests), engine.limit)
        self.engine, self.said = engine, 0
        self.sampling = requests[0].sampling  # they are alike in this
        # of every request
        self.tokens = torch.zeros(shape, dtype=torch.long, device=device)
        self.logp = torch.zeros(shape, device=device)
        self.length = torch.zeros(shape[0], dtype=torch.long, device=device)
        self.stopped = ["length"] * shape[0]
        # of every row that is still here, and which request it answers
        self.row = torch.arange(shape[0], device=device)
        self.live = self.row >= 0
        self.key = torch.tensor([r.key for r in requests], device=device)
        self.room = torch.tensor([engine.room(r) for r in requests], device=device)
        self.ends = torch.tensor(engine.ends or [-1], device=device)
        self.tail = max((len(stop.encode()) + 8 for stop in engine.stop), default=0)
        self._read(requests)

    def _read(self, requests: Sequence[Request]) -> None:
        """Read every different prompt once, then give each request its row."""
        prompts = list(dict.fromkeys(r.tokens for r in requests))
        tokens, mask = _left_padded(prompts, self.row.device)
        self.cache = growing(self.engine.model.config)
        logits = self._forward(tokens, (mask.cumsum(1) - 1).clamp(min=0), mask)
        place = {prompt: i for i, prompt in enumerate(prompts)}
        rows = torch.tensor([place[r.tokens] for r in requests], device=mask.device)
        self.cache.batch_select_indices(rows)
        self.logits, self.position = logits[rows], mask.sum(1)[rows]
        self.mask = torch.cat([mask[rows], mask.new_ones(self.tokens.shape)], 1)
        self.width = mask.shape[1]

    def step(self) -> None:
        """Say one token in every row."""
        u = uniform(self.key, self.position)
        token, logp = self.sampling.draw(self.logits, u)
        self.tokens[self.row, self.said], self.logp[self.row, self.said] = token, logp
        self.said += 1
        self.length[self.row[self.live]] = self.said
        self._end("end", torch.isin(token, self.ends))
        if self.engine.stop:
            self._end("stop", self._says_stop())
        self._end("length", self.said >= self.room)
        if self.live.any():
            stay = self._leave()
            mask = self.mask[:, : self.width + self.said]
            self.logits = self._forward(token[stay, None], self.position[:, None], mask)
            self.position = self.position + self.live  # a row that is over stays where it was

    def _end(self, why: str, ended: Tensor) -> None:
        for i in self.row[self.live & ended].tolist():
            self.stopped[i] = why
        self.live = self.live & ~ended

    def _leave(self) -> Tensor:
        """Let rows that are over leave, if they are many: it costs a copy of the cache."""
        if self.live.sum() * 8 > len(self.live) * 7:
            return torch.arange(len(self.live), device=self.live.device)
        stay = self.live.nonzero()[:, 0]
        for name in ("row", "live", "key", "room", "position", "mask"):
            setattr(self, name, getattr(self, name)[stay])
        self.cache.batch_select_indices(stay)
        return stay

    def _says_stop(self) -> Tensor:
        """Does the newest token complete a stop text? Every token before it has at least a byte."""
        last = self.tokens[self.row, max(0, self.said - self.tail) : self.said]
        texts = self.engine.tokenizer.batch_decode(last.tolist())
        said = [any(stop in text for stop in self.engine.stop) for text in texts]
        return torch.tensor(said, device=last.device)

    def replies(self) -> list[Reply]:
        """What every request was answered."""
        said = zip(
            self.tokens.tolist(),
            self.logp.tolist(),
            self.length.tolist(),
            self.stopped,
            strict=True,
        )
        return [Reply(tuple(t[:n]), tuple(p[:n]), why) for t, p, n, why in said]

    def _forward(self, tokens: Int[Tensor, "n s"], position: Tensor, mask: Tensor) -> Tensor:
        model: Any = self.engine.model
        out = model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=position,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return out.logits[:, -1]


def _left_padded(prompts: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, Tensor]:
    width = max(map(len, prompts))
    tokens = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=device)
    return tokens, mask

"""Sampling from a transformers model in this process.

What rows have in common is read once, rows that have ended leave and others join, and the random
numbers of a row belong to its rollout: they depend neither on its neighbours nor on the hour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import PreTrainedTokenizerBase

from grupo.core.rng import uniform
from grupo.inference.base import Bounds, Reply, Request, alike
from grupo.inference.stop_conditions import Ending
from grupo.kernels.backend import Body
from grupo.kernels.decode_state import Decoding
from grupo.kernels.lm_head import Head
from grupo.kernels.prefill import prefill
from grupo.kernels.prefix_cache import NOWHERE, Memory

CELLS = 1 << 17  # tokens of context held at once
REASONS = "end", "stop", "length"  # why an answer is over, the first that holds


@dataclass(frozen=True)
class Local:
    """A model that answers requests; its weights must not change while its memory lasts."""

    body: Body
    head: Head
    tokenizer: PreTrainedTokenizerBase
    bounds: Bounds
    cells: int = CELLS
    memory: Memory = field(default_factory=lambda: Memory(CELLS))

    def __post_init__(self) -> None:
        self.body.begin(self.memory)

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request; where no room is left, with nothing."""
        self.body.model.eval()
        if self.memory.full:
            self.memory.forget()
        yield from ((i, Reply()) for i, r in enumerate(requests) if self.bounds.room(r) <= 0)
        for some in alike(requests):
            waiting = [i for i in some if self.bounds.room(requests[i]) > 0]
            # the longest first, what begins alike together, whoever came first
            waiting.sort(key=lambda i: (len(r := requests[i].tokens), r, requests[i].key))
            if waiting:
                yield from self._answer(requests, waiting)

    def _answer(
        self, requests: Sequence[Request], waiting: list[int]
    ) -> Iterator[tuple[int, Reply]]:
        rows = _Rows(self, requests, self._next(requests, waiting))
        while len(rows.request):
            yield from rows.say()
            rows.go_on()
            if waiting and (now := self._next(requests, waiting, rows)):
                rows.join(now)

    def _next(
        self, requests: Sequence[Request], waiting: list[int], rows: "_Rows | None" = None
    ) -> list[int]:
        """Take those who fit beside the rows; none if they are few, for joining is not free."""
        here, used = (len(rows.request), rows.cells) if rows else (0, 0)
        count, seen, room = 0, set(), self.cells - used
        for i in reversed(waiting):
            tokens = requests[i].tokens
            room -= self.bounds.room(requests[i]) + len(tokens) * (tokens not in seen)
            seen.add(tokens)
            if room < 0 and (count or here):
                break
            count += 1
        if count < min(len(waiting), here // 8):
            return []
        taken = waiting[len(waiting) - count :]
        del waiting[len(waiting) - count :]
        return taken


class _Rows:
    """Rows being sampled together."""

    def __init__(self, engine: Local, requests: Sequence[Request], now: Sequence[int]) -> None:
        self.engine, self.requests, device = engine, requests, engine.body.model.device
        first = requests[now[0]]  # they are alike in how they are drawn, and end
        self.sampling = first.sampling
        self.ending = Ending(engine.bounds.of(first), engine.tokenizer)
        none = torch.zeros(0, dtype=torch.long, device=device)
        # of every row: which request it answers, its random stream, how much it may say
        self.request, self.key, self.room, self.begun = none, none, none, none
        self.live, self.length = none.bool(), none  # is it still speaking; tokens it said if not
        limit = max(engine.bounds.room(r) for r in requests)
        self.tokens, self.logp = none.new_zeros(0, limit), torch.zeros(0, limit, device=device)
        self.decoding = Decoding(engine.memory, limit, device)
        self.logits = torch.zeros(0, 0, device=device)
        self.join(now)

    @property
    def cells(self) -> int:
        """How many tokens of context the rows may come to hold."""
        return sum(map(len, self.decoding.slots)) + int(self.room.sum())

    def join(self, now: Sequence[int]) -> None:
        """Let requests have rows, those of one prompt beside each other."""
        asked = [self.requests[i] for i in now]
        prompts = list(dict.fromkeys(r.tokens for r in asked))
        place = {prompt: i for i, prompt in enumerate(prompts)}
        hidden, slots = prefill(self.engine.body, self.engine.memory, prompts)
        trunk = self._tensor([place[r.tokens] for r in asked])
        self.decoding.add(slots, trunk)
        kept = self.engine.memory.kept
        last = self._tensor([kept.get(int(path[-1]), NOWHERE) for path in slots])
        logits = self.engine.body.say(self.engine.head, hidden, last)[trunk]
        self.logits = torch.cat([self.logits, logits]) if len(self.logits) else logits
        self.request = torch.cat([self.request, self._tensor(now)])
        self.key = torch.cat([self.key, self._tensor([r.key for r in asked])])
        self.room = torch.cat([self.room, self._tensor(list(map(self.engine.bounds.room, asked)))])
        self.begun = torch.cat([self.begun, self._tensor([len(r.tokens) for r in asked])])
        self.live = torch.cat([self.live, torch.ones_like(trunk, dtype=torch.bool)])
        self.length = torch.cat([self.length, torch.zeros_like(trunk)])
        self.tokens = pad(self.tokens, (0, 0, 0, len(now)))
        self.logp = pad(self.logp, (0, 0, 0, len(now)))

    def say(self) -> Iterator[tuple[int, Reply]]:
        """One token in every row; replies that end with it."""
        said = self.decoding.said
        token, logp = self.sampling.draw(self.logits, uniform(self.key, self.begun + said))
        self.tokens.scatter_(1, said[:, None], token[:, None])
        self.logp.scatter_(1, said[:, None], logp[:, None].to(self.logp))
        self.token = token
        ended, full = self.ending.by_token(token), said + 1 >= self.room
        stopped = torch.zeros_like(ended)
        if self.ending.bounds.stop:
            count = (said + 1).tolist()
            spoken = [row[:n] for row, n in zip(self.tokens.tolist(), count, strict=True)]
            stopped = self.ending.by_text(spoken, token.device)
        over = self.live & (ended | stopped | full)
        if over.any():
            why = torch.where(ended, 0, torch.where(stopped, 1, 2))
            yield from self._end(over, why)

    def go_on(self) -> None:
        """Read what was said; rows that are over leave, if they are many: it costs a copy."""
        if self.live.sum() * 8 <= len(self.live) * 7:
            self._leave()
        if len(self.request):
            # a row that is over may be at the end of what the model reads
            position = (self.begun + self.decoding.said).clamp(max=self.engine.bounds.context - 1)
            hidden = self.engine.body.go_on(self.token, position, self.decoding)
            self.logits = self.engine.body.say(self.engine.head, hidden, self.decoding.last)
            self.decoding.step()

    def _end(self, over: Tensor, why: Tensor) -> Iterator[tuple[int, Reply]]:
        self.live = self.live & ~over
        self.length = torch.where(over, self.decoding.said + 1, self.length)
        for row in over.nonzero()[:, 0].tolist():
            n = int(self.length[row])
            said = self.tokens[row, :n].tolist(), self.logp[row, :n].tolist()
            reason = REASONS[int(why[row])]
            yield int(self.request[row]), Reply(tuple(said[0]), tuple(said[1]), reason)

    def _leave(self) -> None:
        over, stay = ((~self.live).nonzero()[:, 0], self.live.nonzero()[:, 0])
        said = [self.tokens[row, : self.length[row]].tolist() for row in over.tolist()]
        self.decoding.remember(over.tolist(), said)
        for name in (
            "request",
            "key",
            "room",
            "begun",
            "live",
            "length",
            "tokens",
            "logp",
            "token",
        ):
            setattr(self, name, getattr(self, name)[stay])
        self.logits = self.logits[stay]
        self.decoding.take(stay)

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.live.device)

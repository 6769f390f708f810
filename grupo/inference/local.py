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
from grupo.inference.base import Reply, Request, StopConditions, batchable_groups
from grupo.inference.stop_conditions import StopChecker
from grupo.kernels.backend import Backend
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.lm_head import LMHead
from grupo.kernels.prefill import prefill
from grupo.kernels.prefix_cache import NOT_CACHED, PrefixCache

MAX_CONTEXT_TOKENS = 1 << 17  # tokens of context held at once
FINISH_REASONS = "end", "stop", "length"  # why an answer is over, the first that holds


@dataclass(frozen=True)
class LocalEngine:
    """A model that answers requests; its weights must not change while its memory lasts."""

    backend: Backend
    lm_head: LMHead
    tokenizer: PreTrainedTokenizerBase
    stop_conditions: StopConditions
    max_context_tokens: int = MAX_CONTEXT_TOKENS
    prefix_cache: PrefixCache = field(default_factory=lambda: PrefixCache(MAX_CONTEXT_TOKENS))

    def __post_init__(self) -> None:
        self.backend.reset(self.prefix_cache)

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request; where no room is left, with nothing."""
        self.backend.model.eval()
        if self.prefix_cache.is_full:
            self.prefix_cache.clear()
        yield from (
            (i, Reply())
            for i, r in enumerate(requests)
            if self.stop_conditions.remaining_tokens(r) <= 0
        )
        for some in batchable_groups(requests):
            waiting = [i for i in some if self.stop_conditions.remaining_tokens(requests[i]) > 0]
            # the longest first, what begins alike together, whoever came first
            waiting.sort(key=lambda i: (len(r := requests[i].tokens), r, requests[i].rng_key))
            if waiting:
                yield from self._generate(requests, waiting)

    def _generate(
        self, requests: Sequence[Request], waiting: list[int]
    ) -> Iterator[tuple[int, Reply]]:
        rows = _DecodeBatch(self, requests, self._take_requests(requests, waiting))
        while len(rows.request_index):
            yield from rows.sample_tokens()
            rows.decode_step()
            if waiting and (now := self._take_requests(requests, waiting, rows)):
                rows.add_requests(now)

    def _take_requests(
        self, requests: Sequence[Request], waiting: list[int], rows: "_DecodeBatch | None" = None
    ) -> list[int]:
        """Take those who fit beside the rows; none if they are few, for joining is not free."""
        here, used = (len(rows.request_index), rows.context_tokens) if rows else (0, 0)
        count, seen, room = 0, set(), self.max_context_tokens - used
        for i in reversed(waiting):
            tokens = requests[i].tokens
            room -= self.stop_conditions.remaining_tokens(requests[i]) + len(tokens) * (
                tokens not in seen
            )
            seen.add(tokens)
            if room < 0 and (count or here):
                break
            count += 1
        if count < min(len(waiting), here // 8):
            return []
        taken = waiting[len(waiting) - count :]
        del waiting[len(waiting) - count :]
        return taken


class _DecodeBatch:
    """Rows being sampled together."""

    def __init__(
        self, engine: LocalEngine, requests: Sequence[Request], indices: Sequence[int]
    ) -> None:
        self.engine, self.requests, device = engine, requests, engine.backend.model.device
        first = requests[indices[0]]  # they are alike in how they are drawn, and end
        self.sampling = first.sampling
        self.stop_checker = StopChecker(engine.stop_conditions.for_request(first), engine.tokenizer)
        none = torch.zeros(0, dtype=torch.long, device=device)
        # of every row: which request it answers, its random stream, how much it may say
        self.request_index, self.rng_key, self.max_new_tokens, self.prompt_length = (
            none,
            none,
            none,
            none,
        )
        self.is_active, self.final_length = (
            none.bool(),
            none,
        )  # is it still speaking; tokens it said if not
        limit = max(engine.stop_conditions.remaining_tokens(r) for r in requests)
        self.tokens, self.logp = none.new_zeros(0, limit), torch.zeros(0, limit, device=device)
        self.decode_state = DecodeState(engine.prefix_cache, limit, device)
        self.logits = torch.zeros(0, 0, device=device)
        self.add_requests(indices)

    @property
    def context_tokens(self) -> int:
        """How many tokens of context the rows may come to hold."""
        return sum(map(len, self.decode_state.prefix_slots)) + int(self.max_new_tokens.sum())

    def add_requests(self, indices: Sequence[int]) -> None:
        """Let requests have rows, those of one prompt beside each other."""
        asked = [self.requests[i] for i in indices]
        prompts = list(dict.fromkeys(r.tokens for r in asked))
        place = {prompt: i for i, prompt in enumerate(prompts)}
        hidden, slots = prefill(self.engine.backend, self.engine.prefix_cache, prompts)
        trunk = self._tensor([place[r.tokens] for r in asked])
        self.decode_state.add_rows(slots, trunk)
        kept = self.engine.prefix_cache.activation_index
        last = self._tensor([kept.get(int(path[-1]), NOT_CACHED) for path in slots])
        logits = self.engine.backend.logits(self.engine.lm_head, hidden, last)[trunk]
        self.logits = torch.cat([self.logits, logits]) if len(self.logits) else logits
        self.request_index = torch.cat([self.request_index, self._tensor(indices)])
        self.rng_key = torch.cat([self.rng_key, self._tensor([r.rng_key for r in asked])])
        self.max_new_tokens = torch.cat(
            [
                self.max_new_tokens,
                self._tensor(list(map(self.engine.stop_conditions.remaining_tokens, asked))),
            ]
        )
        self.prompt_length = torch.cat(
            [self.prompt_length, self._tensor([len(r.tokens) for r in asked])]
        )
        self.is_active = torch.cat([self.is_active, torch.ones_like(trunk, dtype=torch.bool)])
        self.final_length = torch.cat([self.final_length, torch.zeros_like(trunk)])
        self.tokens = pad(self.tokens, (0, 0, 0, len(indices)))
        self.logp = pad(self.logp, (0, 0, 0, len(indices)))

    def sample_tokens(self) -> Iterator[tuple[int, Reply]]:
        """One token in every row; replies that end with it."""
        said = self.decode_state.num_generated
        token, logp = self.sampling.sample(
            self.logits, uniform(self.rng_key, self.prompt_length + said)
        )
        self.tokens.scatter_(1, said[:, None], token[:, None])
        self.logp.scatter_(1, said[:, None], logp[:, None].to(self.logp))
        self.last_token = token
        ended, full = self.stop_checker.by_token(token), said + 1 >= self.max_new_tokens
        stopped = torch.zeros_like(ended)
        if self.stop_checker.stop_conditions.stop_strings:
            count = (said + 1).tolist()
            spoken = [row[:n] for row, n in zip(self.tokens.tolist(), count, strict=True)]
            stopped = self.stop_checker.by_text(spoken, token.device)
        over = self.is_active & (ended | stopped | full)
        if over.any():
            why = torch.where(ended, 0, torch.where(stopped, 1, 2))
            yield from self._finish(over, why)

    def decode_step(self) -> None:
        """Read what was said; rows that are over leave, if they are many: it costs a copy."""
        if self.is_active.sum() * 8 <= len(self.is_active) * 7:
            self._evict_finished()
        if len(self.request_index):
            # a row that is over may be at the end of what the model reads
            position = (self.prompt_length + self.decode_state.num_generated).clamp(
                max=self.engine.stop_conditions.context_length - 1
            )
            hidden = self.engine.backend.decode(self.last_token, position, self.decode_state)
            self.logits = self.engine.backend.logits(
                self.engine.lm_head, hidden, self.decode_state.last_activation_index
            )
            self.decode_state.advance()

    def _finish(self, finished: Tensor, reason_index: Tensor) -> Iterator[tuple[int, Reply]]:
        self.is_active = self.is_active & ~finished
        self.final_length = torch.where(
            finished, self.decode_state.num_generated + 1, self.final_length
        )
        for row in finished.nonzero()[:, 0].tolist():
            n = int(self.final_length[row])
            said = self.tokens[row, :n].tolist(), self.logp[row, :n].tolist()
            reason = FINISH_REASONS[int(reason_index[row])]
            yield int(self.request_index[row]), Reply(tuple(said[0]), tuple(said[1]), reason)

    def _evict_finished(self) -> None:
        over, stay = ((~self.is_active).nonzero()[:, 0], self.is_active.nonzero()[:, 0])
        said = [self.tokens[row, : self.final_length[row]].tolist() for row in over.tolist()]
        self.decode_state.save_to_prefix_cache(over.tolist(), said)
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
        self.decode_state.select_rows(stay)

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.is_active.device)

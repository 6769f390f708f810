"""The engine of this process: continuous batching with shared prefixes and a prefix cache.

The random numbers of a row belong to its rollout and do not depend on the other rows of the batch
or on when it runs.
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

MAX_CONTEXT_TOKENS = 1 << 17  # tokens of prefixes and answers in one batch
FINISH_REASONS = "end", "stop", "length"  # in order of precedence


@dataclass(frozen=True)
class LocalEngine:
    """Generates with a model in this process.

    The weights must stay the same for the lifetime of the engine, because the prefix cache depends
    on them.

    Args:
        backend: evaluates the model; it is reset to this engine's prefix cache.
        lm_head: the model's head.
        tokenizer: decodes answers in the search for stop strings.
        stop_conditions: of all answers.
        max_context_tokens: tokens of prefixes and answers in one batch.
        prefix_cache: cleared between calls if it is full.
    """

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
        """Answers every request; an empty reply if the context is full."""
        self.backend.model.eval()
        if self.prefix_cache.is_full:
            self.prefix_cache.clear()
        remaining = [self.stop_conditions.remaining_tokens(request) for request in requests]
        yield from ((i, Reply()) for i, tokens in enumerate(remaining) if tokens <= 0)
        for group in batchable_groups(requests):
            waiting = [i for i in group if remaining[i] > 0]
            # requests are taken from the end: the longest first, equal prompts together
            waiting.sort(key=lambda i: (len(r := requests[i].tokens), r, requests[i].rng_key))
            if waiting:
                yield from self._generate(requests, waiting)

    def _generate(
        self, requests: Sequence[Request], waiting: list[int]
    ) -> Iterator[tuple[int, Reply]]:
        batch = _DecodeBatch(self, requests, self._take_requests(requests, waiting))
        while len(batch.request_index):
            yield from batch.sample_tokens()
            batch.decode_step()
            if waiting and (taken := self._take_requests(requests, waiting, batch)):
                batch.add_requests(taken)

    def _take_requests(
        self, requests: Sequence[Request], waiting: list[int], batch: "_DecodeBatch | None" = None
    ) -> list[int]:
        """Removes from `waiting` the requests that fit next to the rows of the batch.

        Takes none if these are few compared with the batch, because adding rows costs time.
        """
        rows = len(batch.request_index) if batch else 0
        room = self.max_context_tokens - (batch.context_tokens if batch else 0)
        count, prompts = 0, set[tuple[int, ...]]()
        for i in reversed(waiting):
            tokens = requests[i].tokens
            prompt_tokens = 0 if tokens in prompts else len(tokens)
            room -= self.stop_conditions.remaining_tokens(requests[i]) + prompt_tokens
            prompts.add(tokens)
            if room < 0 and (count or rows):
                break
            count += 1
        if count < min(len(waiting), rows // 8):
            return []
        taken = waiting[len(waiting) - count :]
        del waiting[len(waiting) - count :]
        return taken


class _DecodeBatch:
    """Rows that are decoded together."""

    def __init__(
        self, engine: LocalEngine, requests: Sequence[Request], indices: Sequence[int]
    ) -> None:
        self.engine, self.requests, device = engine, requests, engine.backend.model.device
        first = requests[indices[0]]  # sampling and stop strings are the same for all
        self.sampling = first.sampling
        self.stop_checker = StopChecker(engine.stop_conditions.for_request(first), engine.tokenizer)
        none = torch.zeros(0, dtype=torch.long, device=device)
        self.request_index = none  # (R,) like all that follow
        self.rng_key = none
        self.max_new_tokens = none
        self.prompt_length = none
        self.is_active = none.bool()
        self.final_length = none  # generated tokens of finished rows
        limit = max(engine.stop_conditions.remaining_tokens(r) for r in requests)
        self.tokens = none.new_zeros(0, limit)
        self.logp = torch.zeros(0, limit, device=device)
        self.decode_state = DecodeState(engine.prefix_cache, limit, device)
        self.logits = torch.zeros(0, 0, device=device)
        self.add_requests(indices)

    @property
    def context_tokens(self) -> int:
        """The most tokens of prefixes and answers that the current rows can reach."""
        return sum(map(len, self.decode_state.prefix_slots)) + int(self.max_new_tokens.sum())

    def add_requests(self, indices: Sequence[int]) -> None:
        """Prefills the prompts of some requests and adds a row for each request."""
        engine = self.engine
        requests = [self.requests[i] for i in indices]
        prompts = list(dict.fromkeys(r.tokens for r in requests))
        prompt_number = {prompt: i for i, prompt in enumerate(prompts)}
        hidden, slots = prefill(engine.backend, engine.prefix_cache, prompts)
        prefix_index = self._tensor([prompt_number[r.tokens] for r in requests])
        self.decode_state.add_rows(slots, prefix_index)
        cached = engine.prefix_cache.activation_index
        activation_index = self._tensor([cached.get(int(path[-1]), NOT_CACHED) for path in slots])
        logits = engine.backend.logits(engine.lm_head, hidden, activation_index)[prefix_index]
        self.logits = torch.cat([self.logits, logits]) if len(self.logits) else logits
        remaining = [engine.stop_conditions.remaining_tokens(r) for r in requests]
        self.request_index = self._extended(self.request_index, indices)
        self.rng_key = self._extended(self.rng_key, [r.rng_key for r in requests])
        self.max_new_tokens = self._extended(self.max_new_tokens, remaining)
        self.prompt_length = self._extended(self.prompt_length, [len(r.tokens) for r in requests])
        new_active = torch.ones_like(prefix_index, dtype=torch.bool)
        self.is_active = torch.cat([self.is_active, new_active])
        self.final_length = torch.cat([self.final_length, torch.zeros_like(prefix_index)])
        self.tokens = pad(self.tokens, (0, 0, 0, len(indices)))
        self.logp = pad(self.logp, (0, 0, 0, len(indices)))

    def sample_tokens(self) -> Iterator[tuple[int, Reply]]:
        """Samples one token in every row; yields the replies that end with it."""
        length = self.decode_state.num_generated
        u = uniform(self.rng_key, self.prompt_length + length)
        token, logp = self.sampling.sample(self.logits, u)
        self.tokens.scatter_(1, length[:, None], token[:, None])
        self.logp.scatter_(1, length[:, None], logp[:, None].to(self.logp))
        self.last_token = token
        ended, full = self.stop_checker.by_token(token), length + 1 >= self.max_new_tokens
        stopped = torch.zeros_like(ended)
        if self.stop_checker.stop_conditions.stop_strings:
            lengths = (length + 1).tolist()
            rows = [row[:n] for row, n in zip(self.tokens.tolist(), lengths, strict=True)]
            stopped = self.stop_checker.by_text(rows, token.device)
        finished = self.is_active & (ended | stopped | full)
        if finished.any():
            reason_index = torch.where(ended, 0, torch.where(stopped, 1, 2))
            yield from self._finish(finished, reason_index)

    def decode_step(self) -> None:
        """Evaluates the sampled tokens.

        Finished rows are removed first if they are an eighth of the batch, because that copies it.
        """
        if self.is_active.sum() * 8 <= len(self.is_active) * 7:
            self._evict_finished()
        if len(self.request_index):
            engine = self.engine
            # a finished row may have reached the end of the context
            position = (self.prompt_length + self.decode_state.num_generated).clamp(
                max=engine.stop_conditions.context_length - 1
            )
            hidden = engine.backend.decode(self.last_token, position, self.decode_state)
            self.logits = engine.backend.logits(
                engine.lm_head, hidden, self.decode_state.last_activation_index
            )
            self.decode_state.advance()

    def _finish(self, finished: Tensor, reason_index: Tensor) -> Iterator[tuple[int, Reply]]:
        self.is_active = self.is_active & ~finished
        length = self.decode_state.num_generated + 1
        self.final_length = torch.where(finished, length, self.final_length)
        for row in finished.nonzero()[:, 0].tolist():
            n = int(self.final_length[row])
            tokens, logp = self.tokens[row, :n].tolist(), self.logp[row, :n].tolist()
            reason = FINISH_REASONS[int(reason_index[row])]
            yield int(self.request_index[row]), Reply(tuple(tokens), tuple(logp), reason)

    def _evict_finished(self) -> None:
        """Removes finished rows; the prefix cache takes their keys and values."""
        finished = (~self.is_active).nonzero()[:, 0]
        active = self.is_active.nonzero()[:, 0]
        rows = finished.tolist()
        tokens = [self.tokens[row, : self.final_length[row]].tolist() for row in rows]
        self.decode_state.save_to_prefix_cache(rows, tokens)
        self.request_index = self.request_index[active]
        self.rng_key = self.rng_key[active]
        self.max_new_tokens = self.max_new_tokens[active]
        self.prompt_length = self.prompt_length[active]
        self.final_length = self.final_length[active]
        self.tokens = self.tokens[active]
        self.logp = self.logp[active]
        self.last_token = self.last_token[active]
        self.logits = self.logits[active]
        self.is_active = self.is_active[active]
        self.decode_state.select_rows(active)

    def _extended(self, x: Tensor, values: Sequence[int]) -> Tensor:
        return torch.cat([x, self._tensor(values)])

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.is_active.device)

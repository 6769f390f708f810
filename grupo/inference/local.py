"""The engine of this process: continuous batching with shared prefixes and a prefix cache.

The random numbers of a row belong to its rollout and do not depend on the other rows of the batch
or on when it runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from grupo.core.rng import uniform
from grupo.inference.base import Reply, Request, StopConditions, batchable_groups
from grupo.inference.stop_conditions import StopChecker
from grupo.kernels.backend import Backend
from grupo.kernels.decode_state import DecodeState
from grupo.kernels.lm_head import LMHead
from grupo.kernels.prefill import prefill
from grupo.kernels.prefix_cache import PrefixCache

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
        while len(batch.rows):
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
        rows = len(batch.rows) if batch else 0
        room = self.max_context_tokens - (batch.context_tokens if batch else 0)
        count = 0
        prompts = set[tuple[int, ...]]()
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


@dataclass(frozen=True)
class _Rows:
    """One row for each request that is being answered.

    Args:
        request_index: the request that a row answers.
        rng_key: of the request's random stream.
        max_new_tokens: the most tokens that the row may generate.
        prompt_length: number of tokens of the request.
        is_active: whether the answer has not ended.
        final_length: tokens of an answer that has ended.
        tokens: generated so far, right-padded with 0.
        logp: log-probabilities of these tokens.
        logits: of the next token.
    """

    request_index: Int[Tensor, "R"]
    rng_key: Int[Tensor, "R"]
    max_new_tokens: Int[Tensor, "R"]
    prompt_length: Int[Tensor, "R"]
    is_active: Bool[Tensor, "R"]
    final_length: Int[Tensor, "R"]
    tokens: Int[Tensor, "R L"]
    logp: Float[Tensor, "R L"]
    logits: Float[Tensor, "R V"]

    def __len__(self) -> int:
        return len(self.request_index)

    def select(self, index: Int[Tensor, "r"]) -> "_Rows":
        """Some of the rows."""
        return _Rows(**{name: x[index] for name, x in vars(self).items()})

    def append(self, rows: "_Rows") -> "_Rows":
        """These rows, followed by others."""
        new = vars(rows)
        return _Rows(**{name: torch.cat([x, new[name]]) for name, x in vars(self).items()})


class _DecodeBatch:
    """Rows that are decoded together."""

    def __init__(
        self, engine: LocalEngine, requests: Sequence[Request], indices: Sequence[int]
    ) -> None:
        self.engine = engine
        self.requests = requests
        device = engine.backend.model.device
        first = requests[indices[0]]  # sampling and stop strings are the same for all
        self.sampling = first.sampling
        self.stop_checker = StopChecker(engine.stop_conditions.for_request(first), engine.tokenizer)
        self.max_new_tokens = max(engine.stop_conditions.remaining_tokens(r) for r in requests)
        self.decode_state = DecodeState(engine.prefix_cache, self.max_new_tokens, device)
        self.rows = self._prefilled_rows(indices)

    @property
    def context_tokens(self) -> int:
        """The most tokens of prefixes and answers that the current rows can reach."""
        return sum(map(len, self.decode_state.prefix_slots)) + int(self.rows.max_new_tokens.sum())

    def add_requests(self, indices: Sequence[int]) -> None:
        """Prefills the prompts of some requests and adds a row for each request."""
        self.rows = self.rows.append(self._prefilled_rows(indices))

    def _prefilled_rows(self, indices: Sequence[int]) -> _Rows:
        """New rows of some requests, whose prompts are prefilled and added to the decode state."""
        engine = self.engine
        requests = [self.requests[i] for i in indices]
        prompts = list(dict.fromkeys(r.tokens for r in requests))
        prompt_number = {prompt: i for i, prompt in enumerate(prompts)}
        logits, slots = prefill(engine.backend, engine.lm_head, engine.prefix_cache, prompts)
        prefix_index = self._tensor([prompt_number[r.tokens] for r in requests])
        self.decode_state.add_rows(slots, prefix_index)
        remaining = [engine.stop_conditions.remaining_tokens(r) for r in requests]
        tokens = prefix_index.new_zeros(len(requests), self.max_new_tokens)
        return _Rows(
            request_index=self._tensor(indices),
            rng_key=self._tensor([r.rng_key for r in requests]),
            max_new_tokens=self._tensor(remaining),
            prompt_length=self._tensor([len(r.tokens) for r in requests]),
            is_active=torch.ones_like(prefix_index, dtype=torch.bool),
            final_length=torch.zeros_like(prefix_index),
            tokens=tokens,
            logp=torch.zeros(tokens.shape, device=tokens.device),
            logits=logits[prefix_index],
        )

    def sample_tokens(self) -> Iterator[tuple[int, Reply]]:
        """Samples one token in every row; yields the replies that end with it."""
        rows = self.rows
        length = self.decode_state.num_generated
        u = uniform(rows.rng_key, rows.prompt_length + length)
        token, logp = self.sampling.sample(rows.logits, u)
        rows.tokens.scatter_(1, length[:, None], token[:, None])
        rows.logp.scatter_(1, length[:, None], logp[:, None].to(rows.logp))
        ended = self.stop_checker.by_token(token)
        full = length + 1 >= rows.max_new_tokens
        stopped = torch.zeros_like(ended)
        if self.stop_checker.stop_conditions.stop_strings:
            lengths = (length + 1).tolist()
            answers = [row[:n] for row, n in zip(rows.tokens.tolist(), lengths, strict=True)]
            stopped = self.stop_checker.by_text(answers, token.device)
        finished = rows.is_active & (ended | stopped | full)
        if finished.any():
            reason_index = torch.where(ended, 0, torch.where(stopped, 1, 2))
            yield from self._finish(finished, reason_index)

    def decode_step(self) -> None:
        """Evaluates the sampled tokens.

        Finished rows are removed first if they are an eighth of the batch, because that copies it.
        """
        if self.rows.is_active.sum() * 8 <= len(self.rows) * 7:
            self._evict_finished()
        if len(self.rows):
            engine = self.engine
            length = self.decode_state.num_generated
            token = self.rows.tokens.gather(1, length[:, None])[:, 0]
            # a finished row may have reached the end of the context
            last_position = engine.stop_conditions.context_length - 1
            position = (self.rows.prompt_length + length).clamp(max=last_position)
            logits = engine.backend.decode(token, position, self.decode_state, engine.lm_head)
            self.rows = replace(self.rows, logits=logits)
            self.decode_state.advance()

    def _finish(self, finished: Tensor, reason_index: Tensor) -> Iterator[tuple[int, Reply]]:
        is_active = self.rows.is_active & ~finished
        length = self.decode_state.num_generated + 1
        final_length = torch.where(finished, length, self.rows.final_length)
        self.rows = replace(self.rows, is_active=is_active, final_length=final_length)
        for row in finished.nonzero()[:, 0].tolist():
            n = int(final_length[row])
            tokens = self.rows.tokens[row, :n].tolist()
            logp = self.rows.logp[row, :n].tolist()
            reason = FINISH_REASONS[int(reason_index[row])]
            yield int(self.rows.request_index[row]), Reply(tuple(tokens), tuple(logp), reason)

    def _evict_finished(self) -> None:
        """Removes finished rows; the prefix cache takes their keys and values."""
        rows = self.rows
        finished = (~rows.is_active).nonzero()[:, 0].tolist()
        tokens = [rows.tokens[row, : rows.final_length[row]].tolist() for row in finished]
        self.decode_state.save_to_prefix_cache(finished, tokens)
        active = rows.is_active.nonzero()[:, 0]
        self.rows = rows.select(active)
        self.decode_state.select_rows(active)

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.engine.backend.model.device)

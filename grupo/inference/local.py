"""The engine of this process: continuous batching with shared prefixes and a prefix cache.

The random numbers of a row belong to its rollout and do not depend on the other rows of the batch
or on when it runs.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from grupo.core.response_use import responses_are_trained_on
from grupo.inference.base import (
    ContextStates,
    Reply,
    Request,
    StopConditions,
    batchable_groups,
)
from grupo.inference.decode_inside import decode_inside
from grupo.inference.decode_rows import DecodeConfig, DecodeRows, DynamicRows, sampled_rows
from grupo.inference.memory_limits import MAX_CONTEXT_TOKENS, MemoryLimits
from grupo.inference.routes import encode_routes
from grupo.inference.static_rows import StaticDecoding
from grupo.inference.stop_conditions import StopChecker
from grupo.kernels.backend import Backend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.prefill import next_position, prefill_in_parts
from grupo.kernels.prefix_cache import PrefixCache
from grupo.util.out_of_memory import is_out_of_memory

logger = logging.getLogger(__name__)
LAST_HIDDEN = LMHead(nn.Identity())  # a backend returns hidden states in place of logits


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
        limits: of its memory; halved when memory does not suffice.
        prefix_cache: keys and values of earlier prompts and answers.
        static_decoding: decode steps of fixed shapes. Default: shapes follow the rows.
        trained_on: whether an update may be computed from the answers.
    """

    backend: Backend
    lm_head: LMHead
    tokenizer: PreTrainedTokenizerBase
    stop_conditions: StopConditions
    limits: MemoryLimits = field(default_factory=MemoryLimits)
    prefix_cache: PrefixCache = field(default_factory=lambda: PrefixCache(MAX_CONTEXT_TOKENS))
    static_decoding: StaticDecoding | None = None
    trained_on: bool = field(default_factory=responses_are_trained_on)

    def __post_init__(self) -> None:
        self.backend.reset(self.prefix_cache, trained_on=self.trained_on)

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answers every request; an empty reply if the context is full."""
        self._start_call(request.tokens for request in requests)
        remaining = [self.stop_conditions.remaining_tokens(request) for request in requests]
        yield from ((i, Reply()) for i, tokens in enumerate(remaining) if tokens <= 0)
        inside = [i for i, r in enumerate(requests) if r.decoding and remaining[i] > 0]
        yield from ((i, decode_inside(self, requests[i])) for i in inside)
        for group in batchable_groups(requests):
            waiting = [i for i in group if remaining[i] > 0 and not requests[i].decoding]
            # requests are taken from the end: the longest first, equal prompts together
            waiting.sort(key=lambda i: (len(r := requests[i].tokens), r, requests[i].rng_key))
            if waiting:
                yield from self._generate_with_retries(requests, waiting)

    @torch.no_grad()
    def read_contexts(self, contexts: Sequence[tuple[int, ...]]) -> ContextStates:
        """The last hidden state after each context; cached beginnings are not computed again.

        The keys and values of all contexts are cached. A context that occurs several times is read
        by its first occurrence.
        """
        self._start_call(contexts)
        unread = dict[tuple[int, ...], int]()
        hidden = dict[tuple[int, ...], Tensor]()
        waiting = list(dict.fromkeys(contexts))
        while waiting:
            message = ""
            part = _fitting(waiting, self.limits.context_tokens)
            try:
                first_new_slot = self.prefix_cache.size
                states, slots = self.prefill(LAST_HIDDEN, part)
                hidden |= zip(part, states.clone(), strict=True)  # the backend reuses its memory
                unread |= zip(part, _num_read(slots, first_new_slot), strict=True)
                waiting = waiting[len(part) :]
            except (MemoryError, RuntimeError) as error:
                message = self.limits.halve() if is_out_of_memory(error) else ""
                if not message:
                    raise
            if message:
                self._release_memory(message)
        return ContextStates(
            torch.stack([hidden[context] for context in contexts]),
            tuple(unread.pop(context, 0) for context in contexts),
        )

    def _start_call(self, contexts: Iterable[tuple[int, ...]]) -> None:
        self.backend.model.eval()
        cache = self.prefix_cache
        if cache.must_be_cleared or (cache.is_full and not cache.is_half_read(set(contexts))):
            cache.clear()

    def _release_memory(self, message: str) -> None:
        """Frees what can be computed again, after a batch ran out of memory."""
        logger.warning("%s", message)
        self.prefix_cache.clear()
        self.backend.reset(self.prefix_cache, trained_on=self.trained_on)
        if self.static_decoding:
            self.static_decoding.clear()
        if self.backend.model.device.type == "cuda":
            torch.cuda.empty_cache()

    def prefill(
        self, lm_head: LMHead, prompts: Sequence[tuple[int, ...]]
    ) -> tuple[Tensor, list[list[int]]]:
        """Results of `lm_head` at the end of each prompt, and the slots of its tokens."""
        pairs = self.limits.prefill_pairs if self.backend.model.device.type == "cuda" else None
        return prefill_in_parts(self.backend, lm_head, self.prefix_cache, prompts, pairs)

    def _generate_with_retries(
        self, requests: Sequence[Request], waiting: Sequence[int]
    ) -> Iterator[tuple[int, Reply]]:
        """Repeats what runs out of memory in smaller batches.

        A repeated answer is the same, because its random numbers do not depend on the batch.
        """
        unanswered = dict.fromkeys(waiting)
        while unanswered:
            message = ""
            try:
                for index, reply in self._generate(requests, list(unanswered)):
                    del unanswered[index]
                    yield index, reply
            except (MemoryError, RuntimeError) as error:
                message = self.limits.halve() if is_out_of_memory(error) else ""
                if not message:
                    raise
            # the error is gone here, and with it the tensors of the failed batch
            if message:
                self._release_memory(message)

    def _generate(
        self, requests: Sequence[Request], waiting: list[int]
    ) -> Iterator[tuple[int, Reply]]:
        while waiting:
            if self._has_too_long_cache:
                self.prefix_cache.clear()  # no row of a batch refers to it
            batch = _DecodeBatch(self, requests, self._take_requests(requests, waiting))
            while batch.answers:
                yield from batch.read_tokens()
                batch.decode_step()
                can_take = waiting and not self._has_too_long_cache
                if can_take and (taken := self._take_requests(requests, waiting, batch)):
                    batch.add_requests(taken)

    @property
    def _has_too_long_cache(self) -> bool:
        """Whether the prefix cache must be cleared before further prompts are computed.

        An evaluation may have any number of prompts. Those of a training step fit in memory, and
        the update reads the activations of cached tokens.
        """
        return self.prefix_cache.must_be_cleared and not self.trained_on

    def decode_rows(self, config: DecodeConfig) -> DecodeRows:
        """Rows for a batch of answers."""
        if self.static_decoding and self.static_decoding.is_enabled:
            return self.static_decoding.rows(config)
        return DynamicRows(config)

    def _take_requests(
        self, requests: Sequence[Request], waiting: list[int], batch: "_DecodeBatch | None" = None
    ) -> list[int]:
        """Removes from `waiting` the requests that fit next to the rows of the batch.

        Takes none if these are few compared with the batch, because adding rows costs time.
        """
        rows = len(batch.answers) if batch else 0
        room = self.limits.context_tokens - (batch.context_tokens if batch else 0)
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


@dataclass
class _Answer:
    """The answer to one request so far, in a row of the batch.

    Args:
        request_index: the request that is answered.
        max_new_tokens: the most tokens of the answer.
        num_cached: tokens of the request that were not computed for it.
        tokens: the tokens generated so far.
        logp: their log-probabilities.
        is_active: whether the answer has not ended.
    """

    request_index: int
    max_new_tokens: int
    num_cached: int
    tokens: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    is_active: bool = True


class _DecodeBatch:
    """Answers that are decoded together.

    The program reads one small tensor per step, the tokens with their log-probabilities, and knows
    everything else itself: a GPU has no work while the program waits for it.
    """

    def __init__(
        self, engine: LocalEngine, requests: Sequence[Request], indices: Sequence[int]
    ) -> None:
        self.engine = engine
        self.requests = requests
        first = requests[indices[0]]  # sampling and stop strings are the same for all
        self.stop_checker = StopChecker(engine.stop_conditions.for_request(first), engine.tokenizer)
        self.config = DecodeConfig(
            engine.backend,
            engine.lm_head,
            engine.prefix_cache,
            first.sampling,
            max(engine.stop_conditions.remaining_tokens(r) for r in requests),
            engine.stop_conditions.context_length,
        )
        self.answers: list[_Answer] = []
        self.rows = engine.decode_rows(self.config)
        self.add_requests(indices)

    @property
    def context_tokens(self) -> int:
        """The most tokens of prefixes and answers that the current rows can reach."""
        prefixes = sum(map(len, self.rows.state.prefix_slots))
        return prefixes + sum(answer.max_new_tokens for answer in self.answers)

    @property
    def num_active(self) -> int:
        """Number of answers that have not ended."""
        return sum(answer.is_active for answer in self.answers)

    def add_requests(self, indices: Sequence[int]) -> None:
        """Prefills the prompts of some requests and adds a row for each request."""
        engine = self.engine
        requests = [self.requests[i] for i in indices]
        prompts = list(dict.fromkeys(r.tokens for r in requests))
        prompt_number = {prompt: i for i, prompt in enumerate(prompts)}
        first_new_slot = engine.prefix_cache.size
        logits, slots = engine.prefill(engine.lm_head, prompts)
        prefixes = [prompt_number[r.tokens] for r in requests]
        remaining = map(engine.stop_conditions.remaining_tokens, requests)
        unread = dict(enumerate(_num_read(slots, first_new_slot)))
        num_cached = [
            len(r.tokens) - unread.pop(prefix, 0)  # the first request of a prompt reads it
            for r, prefix in zip(requests, prefixes, strict=True)
        ]
        self.answers += map(_Answer, indices, remaining, num_cached)
        rng_key = self._tensor([r.rng_key for r in requests])
        prompt_length = self._tensor([len(r.tokens) for r in requests])
        next_positions = [next_position(engine.backend, prompt) for prompt in prompts]
        first_position = self._tensor([next_positions[prefix] for prefix in prefixes])
        row_logits = logits[self._tensor(prefixes)]
        lengths = prompt_length, first_position
        new = sampled_rows(self.config.sampling, row_logits, rng_key, *lengths)
        self.rows.append(slots, prefixes, new)

    def read_tokens(self) -> Iterator[tuple[int, Reply]]:
        """Reads the token that was sampled in every row; yields the replies that end with it."""
        for answer, token, logp in zip(self.answers, *self.rows.read(), strict=True):
            if answer.is_active:
                answer.tokens.append(int(token))
                answer.logp.append(logp)
        yield from self._end_answers()

    def decode_step(self) -> None:
        """Evaluates the newest tokens, and samples the next ones.

        Finished rows are removed first if they are an eighth of the batch, because that copies it.
        """
        if self.num_active * 8 <= len(self.answers) * 7:
            self._evict_finished()
        if self.answers:
            self.rows.step()

    def _end_answers(self) -> Iterator[tuple[int, Reply]]:
        """Yields the replies of the answers that end with their newest token."""
        active = [(row, answer) for row, answer in enumerate(self.answers) if answer.is_active]
        reasons = self.stop_checker.finish_reasons([answer.tokens for _, answer in active])
        for (row, answer), reason in zip(active, reasons, strict=True):
            if reason or len(answer.tokens) >= answer.max_new_tokens:
                answer.is_active = False
                tokens, logp = tuple(answer.tokens), tuple(answer.logp)
                reply = Reply(tokens, logp, reason or "length", routes=self._routes(row))
                yield answer.request_index, replace(reply, num_cached=answer.num_cached)

    def _routes(self, row: int) -> str:
        """The routes of a row's context, whose newest token was not evaluated."""
        if not self.engine.backend.records_routes:
            return ""
        return encode_routes(self.rows.state.routes_of(row, len(self.answers[row].tokens) - 1))

    def _evict_finished(self) -> None:
        """Removes finished rows; the prefix cache takes their keys and values."""
        finished = [row for row, answer in enumerate(self.answers) if not answer.is_active]
        active = [row for row, answer in enumerate(self.answers) if answer.is_active]
        tokens = [self.answers[row].tokens for row in finished]
        self.rows.state.save_to_prefix_cache(finished, tokens)
        self.answers = [self.answers[row] for row in active]
        self.rows.select(active)

    def _tensor(self, numbers: Sequence[int]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self.engine.backend.model.device)


def _fitting(contexts: Sequence[tuple[int, ...]], tokens: int) -> Sequence[tuple[int, ...]]:
    """The first contexts that have so many tokens together; at least one.

    >>> _fitting([(1, 2), (3,), (4,)], tokens=3)
    [(1, 2), (3,)]
    """
    ends = accumulate(map(len, contexts))
    return contexts[: max(1, sum(end <= tokens for end in ends))]


def _num_read(slots: Sequence[Sequence[int]], first_new: int) -> list[int]:
    """How many tokens of each prompt were computed: a beginning that prompts share, for the first.

    The last token of a prompt is computed even if it is cached.

    Args:
        slots: for each prompt, the slots of its tokens in the prefix cache.
        first_new: the first slot that was not in the cache before.

    >>> _num_read([[0, 1, 5], [0, 1, 5, 6], [0, 1]], first_new=5)
    [1, 1, 1]
    """
    known = set[int]()
    counts = []
    for prompt in slots:
        new = {slot for slot in prompt if slot >= first_new} - known
        known |= new
        counts.append(max(1, len(new)))
    return counts

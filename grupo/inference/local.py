"""The engine of this process: continuous batching with shared prefixes and a prefix cache.

The random numbers of a row belong to its rollout and do not depend on the other rows of the batch
or on when it runs.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
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
from grupo.inference.decode_batch import DecodeBatch
from grupo.inference.decode_inside import decode_inside
from grupo.inference.decode_rows import DecodeConfig, DecodeRows, DynamicRows
from grupo.inference.memory_limits import MAX_CONTEXT_TOKENS, MemoryLimits
from grupo.inference.read_prompt import num_read
from grupo.inference.static_rows import StaticDecoding
from grupo.kernels.backend import Backend
from grupo.kernels.lm_head import LMHead
from grupo.kernels.prefill import prefill_in_parts
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
                unread |= zip(part, num_read(slots, first_new_slot), strict=True)
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
            batch = DecodeBatch(
                self, self._make_rows, requests, self._take_requests(requests, waiting)
            )
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

    def _make_rows(self, config: DecodeConfig) -> DecodeRows:
        """Rows for a batch of answers."""
        if self.static_decoding and self.static_decoding.is_enabled:
            return self.static_decoding.rows(config)
        return DynamicRows(config)

    def _take_requests(
        self, requests: Sequence[Request], waiting: list[int], batch: DecodeBatch | None = None
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


def _fitting(contexts: Sequence[tuple[int, ...]], tokens: int) -> Sequence[tuple[int, ...]]:
    """The first contexts that have so many tokens together; at least one.

    >>> _fitting([(1, 2), (3,), (4,)], tokens=3)
    [(1, 2), (3,)]
    """
    ends = accumulate(map(len, contexts))
    return contexts[: max(1, sum(end <= tokens for end in ends))]

"""Answers that are decoded together, in rows that share the engine's prefix cache."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from grupo.inference.base import Reply, Request
from grupo.inference.decode_rows import DecodeConfig, DecodeRows, sampled_rows
from grupo.inference.read_prompt import PromptReader, num_read
from grupo.inference.routes import encode_routes
from grupo.inference.stop_conditions import StopChecker
from grupo.kernels.prefill import next_position


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


class DecodeBatch:
    """Answers that are decoded together.

    The program reads one small tensor per step, the tokens with their log-probabilities, and knows
    everything else itself: a GPU has no work while the program waits for it.

    Args:
        reader: the engine, which reads the prompts.
        make_rows: makes rows for answers of a configuration.
        requests: those of the call; answered ones are equal in sampling and stop strings.
        indices: the requests that are answered from the first step on.
    """

    def __init__(
        self,
        reader: PromptReader,
        make_rows: Callable[[DecodeConfig], DecodeRows],
        requests: Sequence[Request],
        indices: Sequence[int],
    ) -> None:
        self.reader = reader
        self.requests = requests
        first = requests[indices[0]]
        conditions = reader.stop_conditions
        self.stop_checker = StopChecker(conditions.for_request(first), reader.tokenizer)
        self.sampling = first.sampling
        self.rows = make_rows(
            DecodeConfig(
                reader.backend,
                reader.lm_head,
                reader.prefix_cache,
                first.sampling,
                max(conditions.remaining_tokens(request) for request in requests),
                conditions.context_length,
            )
        )
        self.answers: list[_Answer] = []
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
        reader = self.reader
        requests = [self.requests[i] for i in indices]
        prompts = list(dict.fromkeys(r.tokens for r in requests))
        prompt_number = {prompt: i for i, prompt in enumerate(prompts)}
        first_new_slot = reader.prefix_cache.size
        logits, slots = reader.prefill(reader.lm_head, prompts)
        prefixes = [prompt_number[r.tokens] for r in requests]
        remaining = map(reader.stop_conditions.remaining_tokens, requests)
        unread = dict(enumerate(num_read(slots, first_new_slot)))
        num_cached = [
            len(r.tokens) - unread.pop(prefix, 0)  # the first request of a prompt reads it
            for r, prefix in zip(requests, prefixes, strict=True)
        ]
        self.answers += map(_Answer, indices, remaining, num_cached)
        rng_key = self._tensor([r.rng_key for r in requests])
        prompt_length = self._tensor([len(r.tokens) for r in requests])
        next_positions = [next_position(reader.backend, prompt) for prompt in prompts]
        first_position = self._tensor([next_positions[prefix] for prefix in prefixes])
        row_logits = logits[self._tensor(prefixes)]
        lengths = prompt_length, first_position
        new = sampled_rows(self.sampling, row_logits, rng_key, *lengths)
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
        if not self.reader.backend.records_routes:
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
        return torch.tensor(numbers, dtype=torch.long, device=self.reader.backend.model.device)

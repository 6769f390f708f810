"""Engine that also scores given tokens and returns the likeliest next tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from grupo.inference.base import (
    ContextReader,
    ContextStates,
    Engine,
    Reply,
    Request,
    StopConditions,
    batchable_groups,
)
from grupo.kernels.hidden_states import HiddenStates
from grupo.kernels.lm_head import LogitsHead
from grupo.models.token_statistics import TokenDistributions

TOKENS_PER_BATCH = 1 << 15  # tokens scored at once
ROWS_OF_LOGITS = 64  # distributions over the whole vocabulary that are computed at once


class HiddenStateReader(Protocol):
    """Computes a model's last hidden states for right-padded rows of tokens."""

    @property
    def model(self) -> PreTrainedModel: ...

    def hidden_states(
        self,
        token: Int[Tensor, "N L"],
        length: Int[Tensor, "N"],
        row: Int[Tensor, "m"],
        column: Int[Tensor, "m"],
    ) -> HiddenStates:
        """Hidden states at the m positions (row, column)."""
        ...

    def microbatches(
        self, token: Int[Tensor, "N L"], length: Int[Tensor, "N"], max_tokens: int
    ) -> Iterator[Tensor]:
        """Row indices of micro-batches of about `max_tokens` tokens, at least one row each."""
        ...


@dataclass(frozen=True)
class PromptLogprobEngine:
    """Generate with `engine`; score the last tokens of requests with `num_scored`.

    Requests with `num_likeliest` get the likeliest next tokens. A request that is longer than the
    model's context, or leaves no room for a next token, gets an empty reply.

    Args:
        engine: generates answers.
        evaluator: computes hidden states of the tokens to score.
        lm_head: computes logits of hidden states.
        stop_conditions: `context_length` limits the requests.
    """

    engine: Engine
    evaluator: HiddenStateReader
    lm_head: LogitsHead
    stop_conditions: StopConditions

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Replies with the indices of their requests, in any order."""
        generate = [i for i, request in enumerate(requests) if request.generates]
        for i, reply in self.engine([requests[i] for i in generate]):
            yield generate[i], reply
        room = [self.stop_conditions.context_length - len(r.tokens) for r in requests]
        fits = [n >= (r.num_likeliest > 0) for n, r in zip(room, requests, strict=True)]
        for i, request in enumerate(requests):
            if not (request.generates or fits[i]):
                yield i, Reply()
        for group in batchable_groups(requests):
            fitting = [i for i in group if fits[i]]
            if scored := [i for i in fitting if requests[i].num_scored]:
                yield from self._score_all([requests[i] for i in scored], scored)
            if open_rows := [i for i in fitting if requests[i].num_likeliest]:
                replies = self._likeliest([requests[i] for i in open_rows])
                yield from zip(open_rows, replies, strict=True)

    def read_contexts(self, contexts: Sequence[tuple[int, ...]]) -> ContextStates:
        """The last hidden state after each context, with the caches of an engine that has some."""
        if isinstance(self.engine, ContextReader):
            return self.engine.read_contexts(contexts)
        return read_whole_contexts(self.evaluator, contexts, TOKENS_PER_BATCH)

    def _score_all(
        self, requests: Sequence[Request], indices: Sequence[int]
    ) -> Iterator[tuple[int, Reply]]:
        """Replies to requests with equal sampling parameters, in micro-batches."""
        token, length = _padded([r.tokens for r in requests])
        self.evaluator.model.eval()
        for rows in self.evaluator.microbatches(token, length, TOKENS_PER_BATCH):
            batch = [requests[i] for i in rows.tolist()]
            replies = self._score(batch, token[rows], length[rows])
            yield from zip((indices[i] for i in rows.tolist()), replies, strict=True)

    def _score(self, requests: Sequence[Request], token: Tensor, length: Tensor) -> Iterator[Reply]:
        num_scored = torch.tensor([r.num_scored for r in requests])
        columns = torch.arange(token.shape[1]).expand_as(token)
        scored = (columns >= (length - num_scored)[:, None]) & (columns < length[:, None])
        row, column = scored.nonzero(as_tuple=True)
        hidden = self.evaluator.hidden_states(token, length, row, column - 1)
        actions = token[row, column].to(hidden.values.device)
        distributions = TokenDistributions(hidden, actions, self.lm_head, requests[0].sampling)
        signals = distributions.compute_signals(("logp", "entropy"))
        counts = num_scored.tolist()
        logps, entropies = (signals[name].float().cpu().split(counts) for name in signals)
        for logp, entropy in zip(logps, entropies, strict=True):
            yield Reply((), tuple(logp.tolist()), "given", tuple(entropy.tolist()))

    def _likeliest(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Next tokens of requests with equal sampling parameters."""
        hidden, num_read = self.read_contexts([r.tokens for r in requests])
        sampling = requests[0].sampling
        for first in range(0, len(requests), ROWS_OF_LOGITS):
            logits = self.lm_head(hidden[first : first + ROWS_OF_LOGITS])
            logp = sampling(logits, logits.argmax(-1)).log_softmax(-1)
            for i, row in enumerate(logp, first):
                tokens = likeliest(row, requests[i].num_likeliest)
                cached = len(requests[i].tokens) - num_read[i]
                top = tuple(row[tokens].tolist())
                yield Reply(logp=top, next_tokens=tuple(tokens.tolist()), num_cached=cached)


def likeliest(logp: Float[Tensor, "V"], k: int) -> Int[Tensor, "k"]:
    """Indices of the k largest log-probabilities, the largest first, without impossible tokens.

    Of equal ones the smallest index comes first, on every device.

    >>> likeliest(torch.tensor([-2.0, -1.0, -2.0, -torch.inf]), 2).tolist()
    [1, 0]
    """
    smallest = logp.topk(min(k, len(logp))).values[-1]
    candidates = ((logp >= smallest) & (logp > -torch.inf)).nonzero()[:, 0]  # with all equal ones
    order = logp[candidates].sort(descending=True, stable=True).indices
    return candidates[order[:k]]


def read_whole_contexts(
    evaluator: HiddenStateReader, contexts: Sequence[tuple[int, ...]], max_tokens: int
) -> ContextStates:
    """The last hidden state after each context, by a forward pass over all its tokens.

    Args:
        evaluator: computes hidden states.
        contexts: tokens of each context, at least one.
        max_tokens: tokens of a micro-batch.
    """
    token, length = _padded(contexts)
    evaluator.model.eval()
    order: list[int] = []
    hidden: list[Tensor] = []
    for rows in evaluator.microbatches(token, length, max_tokens):
        last = length[rows] - 1
        hidden.append(
            evaluator.hidden_states(token[rows], length[rows], torch.arange(len(rows)), last).values
        )
        order += rows.tolist()
    place = torch.tensor(order).argsort().to(hidden[0].device)
    return ContextStates(torch.cat(hidden)[place], tuple(map(len, contexts)))


def _padded(contexts: Sequence[tuple[int, ...]]) -> tuple[Int[Tensor, "N L"], Int[Tensor, "N"]]:
    """Right-padded rows of tokens, and their lengths."""
    rows = pad_sequence([torch.tensor(context) for context in contexts], batch_first=True)
    return rows, torch.tensor([len(context) for context in contexts])

"""Engine that also scores given tokens and returns the likeliest next tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from grupo.inference.base import Engine, Reply, Request, StopConditions, batchable_groups
from grupo.kernels.hidden_states import HiddenStates
from grupo.kernels.lm_head import LogitsHead
from grupo.models.token_statistics import TokenDistributions

TOKENS_PER_BATCH = 1 << 15  # tokens scored at once


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
                yield from self._evaluate(self._score, [requests[i] for i in scored], scored)
            if open_rows := [i for i in fitting if requests[i].num_likeliest]:
                prompts = [requests[i] for i in open_rows]
                yield from self._evaluate(self._likeliest, prompts, open_rows)

    def _evaluate(
        self,
        compute: Callable[[Sequence[Request], Tensor, Tensor], Iterator[Reply]],
        requests: Sequence[Request],
        indices: Sequence[int],
    ) -> Iterator[tuple[int, Reply]]:
        """Replies to requests with equal sampling parameters, in micro-batches."""
        self.evaluator.model.eval()
        token = pad_sequence([torch.tensor(r.tokens) for r in requests], batch_first=True)
        length = torch.tensor([len(r.tokens) for r in requests])
        for rows in self.evaluator.microbatches(token, length, TOKENS_PER_BATCH):
            batch = [requests[i] for i in rows.tolist()]
            replies = compute(batch, token[rows], length[rows])
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

    def _likeliest(
        self, requests: Sequence[Request], token: Tensor, length: Tensor
    ) -> Iterator[Reply]:
        hidden = self.evaluator.hidden_states(token, length, torch.arange(len(token)), length - 1)
        logits = self.lm_head(hidden.values)
        logp = requests[0].sampling(logits, logits.argmax(-1)).log_softmax(-1)
        values, tokens = logp.sort(dim=-1, descending=True, stable=True)
        for i, request in enumerate(requests):
            count = min(request.num_likeliest, int((values[i] > -torch.inf).sum()))
            top = tuple(values[i, :count].tolist())
            yield Reply(logp=top, next_tokens=tuple(tokens[i, :count].tolist()))

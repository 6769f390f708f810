"""Beside drawing: how likely words are that were given, by the same weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from grupo.inference.base import Engine, Reply, Request, StopConditions, batchable_groups
from grupo.models.token_statistics import LogitsHead, TokenDistributions

TOKENS_PER_BATCH = 1 << 15  # tokens read at once
# last hidden states (m, H), and where a body keeps what it worked out of these tokens, if it does
ForwardOutput = tuple[Tensor, Tensor | None]


class HiddenStateReader(Protocol):
    """A model's last hidden states of rows of tokens, right-padded."""

    @property
    def model(self) -> PreTrainedModel: ...

    def hidden_states(
        self,
        token: Int[Tensor, "N L"],
        length: Int[Tensor, "N"],
        row: Int[Tensor, "m"],
        column: Int[Tensor, "m"],
    ) -> ForwardOutput:
        """Those at some places of the rows."""
        ...

    def microbatches(
        self, token: Int[Tensor, "N L"], length: Int[Tensor, "N"], max_tokens: int
    ) -> Iterator[Tensor]:
        """Row indices, so many at a time that about `budget` tokens, or a row, are read."""
        ...


@dataclass(frozen=True)
class PromptLogprobEngine:
    """Draws as `engine` does; of a request whose last tokens are given it says how likely they are.

    Requests that are longer than what the model reads are answered with nothing.
    """

    engine: Engine
    evaluator: HiddenStateReader
    lm_head: LogitsHead
    stop_conditions: StopConditions

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request."""
        drawn = [i for i, request in enumerate(requests) if not request.num_scored]
        for place, reply in self.engine([requests[i] for i in drawn]):
            yield drawn[place], reply
        read = [
            r.num_scored > 0 and len(r.tokens) <= self.stop_conditions.context_length
            for r in requests
        ]
        yield from ((i, Reply()) for i, r in enumerate(requests) if r.num_scored and not read[i])
        for some in batchable_groups(requests):
            if now := [i for i in some if read[i]]:
                yield from self._score_group([requests[i] for i in now], now)

    def _score_group(
        self, requests: Sequence[Request], indices: Sequence[int]
    ) -> Iterator[tuple[int, Reply]]:
        """Those that are drawn alike, so many at a time as are read at once."""
        self.evaluator.model.eval()
        token = pad_sequence([torch.tensor(r.tokens) for r in requests], batch_first=True)
        length = torch.tensor([len(r.tokens) for r in requests])
        for rows in self.evaluator.microbatches(token, length, TOKENS_PER_BATCH):
            now = [requests[i] for i in rows.tolist()]
            replies = self._score(now, token[rows], length[rows])
            yield from zip((indices[i] for i in rows.tolist()), replies, strict=True)

    def _score(self, requests: Sequence[Request], token: Tensor, length: Tensor) -> Iterator[Reply]:
        given = torch.tensor([r.num_scored for r in requests])
        column = torch.arange(token.shape[1]).expand_as(token)
        asked = (column >= (length - given)[:, None]) & (column < length[:, None])
        row, place = asked.nonzero(as_tuple=True)
        hidden, _ = self.evaluator.hidden_states(token, length, row, place - 1)
        said = token[row, place].to(hidden.device)
        spoken = TokenDistributions(hidden, said, self.lm_head, requests[0].sampling)
        measured = spoken.compute_signals(("logp", "entropy"))
        counts = given.tolist()
        logp, entropy = (measured[name].float().cpu().split(counts) for name in measured)
        for request, p, h in zip(requests, logp, entropy, strict=True):
            words = request.tokens[-request.num_scored :]
            yield Reply(words, tuple(p.tolist()), "given", tuple(h.tolist()))

"""Beside drawing: how likely words are that were given, by the same weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel

from grupo.inference.base import Bounds, Engine, Reply, Request, alike
from grupo.models.token_statistics import Head, Spoken

BUDGET = 1 << 15  # tokens read at once
# last hidden states (m, H), and where a body keeps what it worked out of these tokens, if it does
Read = tuple[Tensor, Tensor | None]


class Reads(Protocol):
    """A model's last hidden states of rows of tokens, right-padded."""

    @property
    def model(self) -> PreTrainedModel: ...

    def states(
        self,
        token: Int[Tensor, "N L"],
        length: Int[Tensor, "N"],
        row: Int[Tensor, "m"],
        column: Int[Tensor, "m"],
    ) -> Read:
        """Those at some places of the rows."""
        ...

    def together(
        self, token: Int[Tensor, "N L"], length: Int[Tensor, "N"], budget: int
    ) -> Iterator[Tensor]:
        """Row indices, so many at a time that about `budget` tokens, or a row, are read."""
        ...


@dataclass(frozen=True)
class Measuring:
    """Draws as `engine` does; of a request whose last tokens are given it says how likely they are.

    Requests that are longer than what the model reads are answered with nothing.
    """

    engine: Engine
    reader: Reads
    head: Head
    bounds: Bounds

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request."""
        drawn = [i for i, request in enumerate(requests) if not request.given]
        for place, reply in self.engine([requests[i] for i in drawn]):
            yield drawn[place], reply
        read = [r.given > 0 and len(r.tokens) <= self.bounds.context for r in requests]
        yield from ((i, Reply()) for i, r in enumerate(requests) if r.given and not read[i])
        for some in alike(requests):
            if now := [i for i in some if read[i]]:
                yield from self._measured([requests[i] for i in now], now)

    def _measured(
        self, requests: Sequence[Request], place: Sequence[int]
    ) -> Iterator[tuple[int, Reply]]:
        """Those that are drawn alike, so many at a time as are read at once."""
        self.reader.model.eval()
        token = pad_sequence([torch.tensor(r.tokens) for r in requests], batch_first=True)
        length = torch.tensor([len(r.tokens) for r in requests])
        for rows in self.reader.together(token, length, BUDGET):
            now = [requests[i] for i in rows.tolist()]
            replies = self._read(now, token[rows], length[rows])
            yield from zip((place[i] for i in rows.tolist()), replies, strict=True)

    def _read(self, requests: Sequence[Request], token: Tensor, length: Tensor) -> Iterator[Reply]:
        given = torch.tensor([r.given for r in requests])
        column = torch.arange(token.shape[1]).expand_as(token)
        asked = (column >= (length - given)[:, None]) & (column < length[:, None])
        row, place = asked.nonzero(as_tuple=True)
        hidden, _ = self.reader.states(token, length, row, place - 1)
        said = token[row, place].to(hidden.device)
        spoken = Spoken(hidden, said, self.head, requests[0].sampling)
        measured = spoken.measured(("logp", "entropy"))
        counts = given.tolist()
        logp, entropy = (measured[name].float().cpu().split(counts) for name in measured)
        for request, p, h in zip(requests, logp, entropy, strict=True):
            words = request.tokens[-request.given :]
            yield Reply(words, tuple(p.tolist()), "given", tuple(h.tolist()))

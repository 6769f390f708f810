"""Sampling by unmasking: block after block, rows side by side.

The number that a token is drawn with belongs to its answer's stream and its place: it depends
neither on the order of unmasking nor on the row's neighbours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from grupo.core.rng import uniform
from grupo.inference.base import Reply, Request, alike, check_drawn
from grupo.models.chat_tokenizer import Language
from grupo.models.masked.canvas import Size, begun_by, laid_out, span
from grupo.models.masked.denoiser import Denoiser
from grupo.models.masked.logp_estimators import Estimate
from grupo.models.masked.unmask_order import Order
from grupo.models.token_statistics import measure


@dataclass(frozen=True)
class Unmasking:
    """A denoiser that answers requests.

    An answer is made of whole blocks: it is over with the block that holds an end or a stop. Its
    log-probabilities are those by which it will be learned, under the estimate.
    """

    denoiser: Denoiser
    language: Language
    order: Order
    estimate: Estimate
    size: Size
    budget: int

    @torch.no_grad()
    def __call__(self, requests: Sequence[Request]) -> Iterator[tuple[int, Reply]]:
        """Answer every request; where no room is left, with nothing."""
        check_drawn(requests, "a masked diffusion model")
        yield from ((i, Reply()) for i, asked in enumerate(requests) if self.size.room(asked) <= 0)
        for some in alike(requests):
            open_ = [i for i in some if self.size.room(requests[i]) > 0]
            open_.sort(key=lambda i: len(requests[i].tokens))
            while open_:
                width = len(requests[open_[-1]].tokens) + self.size.limit
                now = open_[: max(1, self.budget // width)]
                open_ = open_[len(now) :]
                replies = self._answer([requests[i] for i in now])
                yield from zip(now, replies, strict=True)

    def _answer(self, asked: Sequence[Request]) -> list[Reply]:
        rows = _Rows(self, asked)
        while len(live := rows.live.nonzero()[:, 0]):
            rows.look(live)
        replies = rows.replies()
        return replies if self.estimate.exact else self._estimated(asked, replies)

    def _estimated(self, asked: Sequence[Request], replies: Sequence[Reply]) -> list[Reply]:
        """The replies with the log-probabilities that they are learned by."""
        rows = []
        for one, reply in zip(asked, replies, strict=True):
            begin, over = len(one.tokens), len(one.tokens) + len(reply.tokens)
            own = span(self.size, begun_by(one), begin, over, one.key)
            rows.append(((*one.tokens, *reply.tokens), [own]))
        inputs = laid_out(rows)
        row, place = (inputs["over"] > 0).nonzero(as_tuple=True)
        looks = self.estimate(inputs, row, place, self.denoiser.mask)
        token = inputs["token"][row, place]
        spoken, _ = self.denoiser.spoken(looks, token, asked[0].sampling, self.budget)
        logp = looks.fold("logp", measure(spoken)["logp"]).cpu()
        each = [tuple(logp[row == i].tolist()) for i in range(len(rows))]
        return [Reply(r.tokens, mine, r.stopped) for r, mine in zip(replies, each, strict=True)]


class _Rows:
    """Rows being unmasked together."""

    def __init__(self, engine: Unmasking, asked: Sequence[Request]) -> None:
        self.engine, self.asked = engine, asked
        device, size = engine.denoiser.model.device, engine.size
        self.begin = torch.tensor([len(one.tokens) for one in asked])
        self.canvas = torch.tensor([size.end(begun_by(one), len(one.tokens)) for one in asked])
        self.last = self.begin + torch.tensor([size.room(one) for one in asked])
        self.key = torch.tensor([one.key for one in asked], device=device)
        self.at = self.begin.clone()  # where the block begins that is being unmasked
        self.token = torch.full((len(asked), int(self.canvas.max())), engine.denoiser.mask)
        for row, one in zip(self.token, asked, strict=True):
            row[: len(one.tokens)] = torch.tensor(one.tokens)
        self.token, self.logp = self.token.to(device), torch.zeros(self.token.shape, device=device)
        self.hidden = torch.arange(self.token.shape[1]) >= self.begin[:, None]
        self.live = torch.ones(len(asked), dtype=torch.bool)
        self.why = ["length"] * len(asked)

    @property
    def until(self) -> Tensor:
        """Where the block ends that is being unmasked."""
        return (self.at + self.engine.order.block).clamp(max=self.last)

    def look(self, live: Tensor) -> None:
        """Unmask some places of every row; go on to the next block where one is done."""
        engine = self.engine
        logits, _ = engine.denoiser(self.token[live], self.canvas[live])
        block = self._block()[live].to(logits.device)
        score = engine.order(logits).masked_fill(~block, -torch.inf)
        best = score.topk(min(engine.order.at_once, score.shape[1]))
        which, number = (best.values > -torch.inf).nonzero(as_tuple=True)
        place, row = best.indices[which, number], live.to(logits.device)[which]
        lot = uniform(self.key[row], place)
        token, logp = self.asked[0].sampling.draw(logits[which, place], lot)
        self.token[row, place], self.logp[row, place] = token, logp
        self.hidden[row.cpu(), place.cpu()] = False
        for i in live[~self._block().any(1)[live]].tolist():
            self._done(i)

    def replies(self) -> list[Reply]:
        """What every row says."""
        rows = zip(self.token.tolist(), self.logp.tolist(), strict=True)
        spans = list(zip(self.begin.tolist(), self.at.tolist(), strict=True))
        return [
            Reply(tuple(token[a:b]), tuple(logp[a:b]), why)
            for (token, logp), (a, b), why in zip(rows, spans, self.why, strict=True)
        ]

    def _block(self) -> Tensor:
        """What is masked in the blocks being unmasked."""
        place = torch.arange(self.hidden.shape[1])
        return self.hidden & (place >= self.at[:, None]) & (place < self.until[:, None])

    def _done(self, i: int) -> None:
        """A block is: the answer is over, or goes on with the next."""
        language, one = self.engine.language, self.asked[i]
        self.at[i] = self.until[i]
        said = self.token[i, self.begin[i] : self.at[i]].tolist()
        if set(said).intersection(language.ends):
            self.why[i] = "end"
        elif any(stop in language.text(said) for stop in (*language.stop, *one.stop)):
            self.why[i] = "stop"
        elif self.at[i] < self.last[i]:
            return
        self.live[i] = False

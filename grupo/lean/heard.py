"""What the head says of tokens: worked out while they are sampled, and not again to learn of it."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from grupo import native
from grupo.engines.memory import NOWHERE
from grupo.lean.records import Scratch
from grupo.lean.step import PANEL
from grupo.lean.structures import Shape
from grupo.native import vocabulary

NUMBERS = 1 << 28  # logits that are kept at most
CHUNK = 1 << 25  # those that are worked on at once, where they are not kept
Some = tuple[Tensor, Tensor, Tensor]  # logits, which tokens they are of, where each one's are


class Heard:
    """Logits of tokens by where their records are, until there is no room.

    Memory is used as it is written to, and used again after `clear`.
    """

    def __init__(self, c: ctypes.CDLL, shape: Shape, scratch: Scratch, records: int) -> None:
        self.c, self.shape, self.scratch = c, shape, scratch
        self.numbers, self.flat = NUMBERS, torch.zeros(0)
        self.at = torch.full((records + 1,), NOWHERE)  # of each record; the last is nobody's
        self.clear(())

    def clear(self, stamp: object) -> None:
        """Hold nothing; what is said from now on is said with weights of this `stamp`."""
        self.used, self.stamp = 0, stamp
        self.panels: Tensor | None = None
        self.at.fill_(NOWHERE)

    def take(self, count: int, weight: Tensor) -> tuple[int, Tensor] | None:
        """Room for so many tokens: where it begins, and it."""
        if (self.used + count) * len(weight) > self.numbers:
            return None
        if not len(self.flat) or self.flat.dtype != weight.dtype:
            self.flat = torch.empty(self.numbers, dtype=weight.dtype)
        first, self.used = self.used, self.used + count
        return first, self.rows(weight)[first : self.used]

    def rows(self, weight: Tensor) -> Float[Tensor, "n V"]:
        """All that is kept."""
        size = len(weight)
        return self.flat[: len(self.flat) // size * size].view(-1, size)

    def say(
        self, weight: Float[Tensor, "V h"], hidden: Float[Tensor, "m h"], record: Int[Tensor, "m"]
    ) -> Float[Tensor, "m V"]:
        """Logits of tokens that have been read; kept, if there is room, where records are."""
        room = self.take(len(hidden), weight) if (record >= 0).all() else None
        first, out = room or (NOWHERE, hidden.new_empty(len(hidden), len(weight)))
        self.shape.threads = torch.get_num_threads()
        sizes = weight.shape
        if self.panels is None:
            full = -(-len(weight) // PANEL) * PANEL
            self.panels = self.scratch.room("head", full, sizes[1], weight.detach())
            native.call(self.c, "panels", self.shape, *sizes, weight, self.panels)
        hidden = hidden.contiguous()
        native.call(self.c, "product", self.shape, len(out), *sizes, hidden, self.panels, out)
        if room:
            self.at[record] = torch.arange(first, self.used)
        return out

    def found(self, record: Tensor | None, count: int) -> Int[Tensor, "m"]:
        """Where the logits of so many tokens are."""
        return torch.full((count,), NOWHERE) if record is None else self.at[record]

    def each(self, hidden: Tensor, weight: Tensor, at: Tensor) -> Iterator[Some]:
        """Logits of all tokens, so many at a time: those that are kept, and others, worked out."""
        size = max(1, CHUNK // len(weight))
        for rows in (at >= 0).nonzero()[:, 0].split(size):
            if len(rows):
                yield self.rows(weight), rows, at[rows]
        for rows in (at < 0).nonzero()[:, 0].split(size):
            if len(rows):
                out = self.room(rows, weight)
                yield self.work_out(hidden[rows], weight, out), rows, torch.arange(len(rows))

    def work_out(self, hidden: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        """Logits of tokens of which nothing is kept."""
        return torch.mm(hidden, weight.mT, out=out)

    def room(self, rows: Tensor, weight: Tensor) -> Tensor:
        """For logits, or their slopes."""
        return self.scratch.room("logits", len(rows), len(weight), weight.detach())


@dataclass(frozen=True)
class Choosing:
    """Tokens were chosen by a head of these weights; where their records are, if they are."""

    heard: Heard
    weight: Float[Tensor, "V h"]
    record: Int[Tensor, "m"] | None

    def __call__(
        self, hidden: Float[Tensor, "m h"], token: Int[Tensor, "m"], temperature: float
    ) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
        """Of each its log-probability, and the entropy of what it was drawn from, in nats."""
        kept = torch.is_grad_enabled() and (hidden.requires_grad or self.weight.requires_grad)
        told = self.heard, self.record, kept, temperature
        return _Chosen.apply(*told, hidden, self.weight, token)  # pyright: ignore


class _Chosen(torch.autograd.Function):
    """Logits are kept for the gradient while there is room, else worked out again."""

    @staticmethod
    def forward(
        ctx: Any,
        heard: Heard,
        record: Tensor | None,
        kept: bool,
        temperature: float,
        hidden: Tensor,
        weight: Tensor,
        token: Tensor,
    ) -> tuple[Tensor, Tensor]:
        at = heard.found(record, len(hidden))
        new = (at < 0).nonzero()[:, 0]
        room = heard.take(len(new), weight) if kept and len(new) else None
        if room:
            heard.work_out(hidden[new], weight, room[1])
            at[new] = torch.arange(room[0], room[0] + len(new))
        logp, entropy, rest = (hidden.new_empty(len(hidden), *more) for more in ((), (), (2,)))
        for logits, rows, where in heard.each(hidden, weight, at):
            said = [x[rows] for x in (logp, entropy, rest)]
            vocabulary.call("say", logits, temperature, where, token[rows], *said)
            for whole, some in zip((logp, entropy, rest), said, strict=True):
                whole[rows] = some
        ctx.save_for_backward(hidden, weight, token, entropy, rest)
        ctx.rest = heard, heard.stamp, temperature, at, new, room
        return logp, entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        hidden, weight, token, entropy, rest = ctx.saved_tensors
        heard, stamp, temperature, at, new, room = ctx.rest
        if heard.stamp is not stamp and (at >= 0).any():
            raise RuntimeError("logits that a gradient needs are gone: another engine has begun")
        asked = ctx.needs_input_grad[4:6]
        dhidden, dweight = (
            torch.empty_like(x) if wanted else None
            for x, wanted in zip((hidden, weight), asked, strict=True)
        )
        told, begun = (token, entropy, rest, *slopes), 0.0
        for logits, rows, where in heard.each(hidden, weight, at):
            slope = heard.room(rows, weight)
            vocabulary.call("blame", logits, temperature, where, *[x[rows] for x in told], slope)
            if dhidden is not None:
                dhidden[rows] = slope @ weight
            if dweight is not None:
                dweight.addmm_(slope.mT, hidden[rows], beta=begun)
            begun = 1.0
        if room and heard.used == room[0] + len(new):  # what came last is given back
            heard.used = room[0]
            at[new] = NOWHERE
        return None, None, None, None, dhidden, dweight, None

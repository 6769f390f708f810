"""What the head says of tokens: worked out while they are sampled, and not again to learn of it."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from grupo.kernels import native
from grupo.kernels.llama.activation_cache import Scratch
from grupo.kernels.llama.ctypes_structs import Shape
from grupo.kernels.llama.decode_step import PANEL
from grupo.kernels.native import log_softmax
from grupo.kernels.prefix_cache import NOWHERE

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
        at = self.heard.found(self.record, len(hidden))
        taught = torch.is_grad_enabled() and (hidden.requires_grad or self.weight.requires_grad)
        lent = self._lent(hidden.detach(), at) if taught else at[:0]
        told = _Told(self.heard, self.heard.stamp, temperature, at, lent)
        return _Chosen.apply(told, hidden, self.weight, token)  # pyright: ignore

    def _lent(self, hidden: Tensor, at: Tensor) -> Int[Tensor, "n"]:
        """Keep logits of the other tokens, too, while there is room: which they are."""
        new = (at < 0).nonzero()[:, 0]
        room = self.heard.take(len(new), self.weight) if len(new) else None
        if room is None:
            return new[:0]
        self.heard.work_out(hidden[new], self.weight.detach(), room[1])
        at[new] = torch.arange(room[0], self.heard.used)
        return new


@dataclass(frozen=True)
class _Told:
    """How tokens were chosen; `at` says where their logits are, or that these are not kept."""

    heard: Heard
    stamp: object
    temperature: float
    at: Int[Tensor, "m"]
    lent: Int[Tensor, "n"]  # tokens whose logits are kept for the way back alone

    def call(self, name: str, some: Some, *told: Tensor) -> None:
        """A function of C, of some of the tokens."""
        logits, _, where = some
        log_softmax.call(name, logits, self.temperature, where, *told)

    def check(self) -> None:
        """Refuse to go back where others have written since."""
        if self.heard.stamp is not self.stamp and (self.at >= 0).any():
            raise RuntimeError("logits that a gradient needs are gone: another engine has begun")

    def give_back(self) -> None:
        """The room that was lent, if it is what came last; who comes again works logits out."""
        lent = self.at[self.lent].tolist()
        if lent and self.heard.used == lent[-1] + 1:
            self.heard.used = lent[0]
            self.at[self.lent] = NOWHERE


class _Chosen(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, told: _Told, hidden: Tensor, weight: Tensor, token: Tensor
    ) -> tuple[Tensor, Tensor]:
        logp, entropy, rest = (hidden.new_empty(len(hidden), *more) for more in ((), (), (2,)))
        for some in told.heard.each(hidden, weight, told.at):
            said = [x[some[1]] for x in (logp, entropy, rest)]
            told.call("say", some, token[some[1]], *said)
            for whole, part in zip((logp, entropy, rest), said, strict=True):
                whole[some[1]] = part
        ctx.save_for_backward(hidden, weight, token, entropy, rest)
        ctx.told = told
        return logp, entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        hidden, weight, *rest = ctx.saved_tensors
        told, (_, of_hidden, of_weight, _) = ctx.told, ctx.needs_input_grad
        told.check()
        dhidden, dweight = torch.empty_like(hidden) if of_hidden else None, None
        for some in told.heard.each(hidden, weight, told.at):
            rows, slope = some[1], told.heard.room(some[1], weight)
            told.call("blame", some, *[x[rows] for x in (*rest, *slopes)], slope)
            if dhidden is not None:
                dhidden[rows] = slope @ weight
            if of_weight and dweight is None:
                dweight = slope.mT @ hidden[rows]
            elif dweight is not None:
                dweight.addmm_(slope.mT, hidden[rows])
        told.give_back()
        return None, dhidden, dweight, None

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
from grupo.kernels.llama.activation_cache import ScratchBuffers
from grupo.kernels.llama.ctypes_structs import ModelShape
from grupo.kernels.llama.decode_step import PANEL
from grupo.kernels.native import log_softmax
from grupo.kernels.prefix_cache import NOT_CACHED

MAX_ELEMENTS = 1 << 28  # logits that are kept at most
CHUNK = 1 << 25  # those that are worked on at once, where they are not kept
LogitRows = tuple[Tensor, Tensor, Tensor]  # logits, which tokens they are of, where each one's are


class LogitCache:
    """Logits of tokens by where their records are, until there is no room.

    Memory is used as it is written to, and used again after `clear`.
    """

    def __init__(
        self, library: ctypes.CDLL, shape: ModelShape, scratch: ScratchBuffers, num_activations: int
    ) -> None:
        self.library, self.shape, self.scratch = library, shape, scratch
        self.max_elements, self.buffer = MAX_ELEMENTS, torch.zeros(0)
        self.logit_index = torch.full(
            (num_activations + 1,), NOT_CACHED
        )  # of each record; the last is nobody's
        self.clear(())

    def clear(self, weights_version: object) -> None:
        """Hold nothing; what is said from now on is said with weights of this `weights_version`."""
        self.used, self.weights_version = 0, weights_version
        self.panels: Tensor | None = None
        self.logit_index.fill_(NOT_CACHED)

    def allocate(self, count: int, weight: Tensor) -> tuple[int, Tensor] | None:
        """Room for so many tokens: where it begins, and it."""
        if (self.used + count) * len(weight) > self.max_elements:
            return None
        if not len(self.buffer) or self.buffer.dtype != weight.dtype:
            self.buffer = torch.empty(self.max_elements, dtype=weight.dtype)
        first, self.used = self.used, self.used + count
        return first, self.cached_rows(weight)[first : self.used]

    def cached_rows(self, weight: Tensor) -> Float[Tensor, "n V"]:
        """All that is kept."""
        size = len(weight)
        return self.buffer[: len(self.buffer) // size * size].view(-1, size)

    def logits(
        self,
        weight: Float[Tensor, "V h"],
        hidden: Float[Tensor, "m h"],
        activation_index: Int[Tensor, "m"],
    ) -> Float[Tensor, "m V"]:
        """Logits of tokens that have been read; kept, if there is room, where records are."""
        room = self.allocate(len(hidden), weight) if (activation_index >= 0).all() else None
        first, out = room or (NOT_CACHED, hidden.new_empty(len(hidden), len(weight)))
        self.shape.threads = torch.get_num_threads()
        sizes = weight.shape
        if self.panels is None:
            full = -(-len(weight) // PANEL) * PANEL
            self.panels = self.scratch.get("head", full, sizes[1], weight.detach())
            native.call(self.library, "panels", self.shape, *sizes, weight, self.panels)
        hidden = hidden.contiguous()
        native.call(self.library, "product", self.shape, len(out), *sizes, hidden, self.panels, out)
        if room:
            self.logit_index[activation_index] = torch.arange(first, self.used)
        return out

    def lookup(self, activation_index: Tensor | None, count: int) -> Int[Tensor, "m"]:
        """Where the logits of so many tokens are."""
        return (
            torch.full((count,), NOT_CACHED)
            if activation_index is None
            else self.logit_index[activation_index]
        )

    def iter_logits(
        self, hidden: Tensor, weight: Tensor, logit_index: Tensor
    ) -> Iterator[LogitRows]:
        """Logits of all tokens, so many at a time: those that are kept, and others, worked out."""
        size = max(1, CHUNK // len(weight))
        for rows in (logit_index >= 0).nonzero()[:, 0].split(size):
            if len(rows):
                yield self.cached_rows(weight), rows, logit_index[rows]
        for rows in (logit_index < 0).nonzero()[:, 0].split(size):
            if len(rows):
                out = self.scratch_rows(rows, weight)
                yield self.compute_logits(hidden[rows], weight, out), rows, torch.arange(len(rows))

    def compute_logits(self, hidden: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        """Logits of tokens of which nothing is kept."""
        return torch.mm(hidden, weight.mT, out=out)

    def scratch_rows(self, rows: Tensor, weight: Tensor) -> Tensor:
        """For logits, or their slopes."""
        return self.scratch.get("logits", len(rows), len(weight), weight.detach())


@dataclass(frozen=True)
class CachedTokenScorer:
    """Tokens were chosen by a head of these weights; where their records are, if they are."""

    logit_cache: LogitCache
    weight: Float[Tensor, "V h"]
    activation_index: Int[Tensor, "m"] | None

    def __call__(
        self, hidden: Float[Tensor, "m h"], token: Int[Tensor, "m"], temperature: float
    ) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
        """Of each its log-probability, and the entropy of what it was drawn from, in nats."""
        at = self.logit_cache.lookup(self.activation_index, len(hidden))
        taught = torch.is_grad_enabled() and (hidden.requires_grad or self.weight.requires_grad)
        lent = self._allocate_temporary(hidden.detach(), at) if taught else at[:0]
        told = _ScoreArgs(self.logit_cache, self.logit_cache.weights_version, temperature, at, lent)
        return _ScoreTokens.apply(told, hidden, self.weight, token)  # pyright: ignore

    def _allocate_temporary(self, hidden: Tensor, logit_index: Tensor) -> Int[Tensor, "n"]:
        """Keep logits of the other tokens, too, while there is room: which they are."""
        new = (logit_index < 0).nonzero()[:, 0]
        room = self.logit_cache.allocate(len(new), self.weight) if len(new) else None
        if room is None:
            return new[:0]
        self.logit_cache.compute_logits(hidden[new], self.weight.detach(), room[1])
        logit_index[new] = torch.arange(room[0], self.logit_cache.used)
        return new


@dataclass(frozen=True)
class _ScoreArgs:
    """How tokens were chosen; `at` says where their logits are, or that these are not kept."""

    logit_cache: LogitCache
    weights_version: object
    temperature: float
    logit_index: Int[Tensor, "m"]
    temporary_rows: Int[Tensor, "n"]  # tokens whose logits are kept for the way back alone

    def call(self, name: str, logit_rows: LogitRows, *args: Tensor) -> None:
        """A function of C, of some of the tokens."""
        logits, _, where = logit_rows
        log_softmax.call(name, logits, self.temperature, where, *args)

    def check_valid(self) -> None:
        """Refuse to go back where others have written since."""
        if (
            self.logit_cache.weights_version is not self.weights_version
            and (self.logit_index >= 0).any()
        ):
            raise RuntimeError("logits that a gradient needs are gone: another engine has begun")

    def release_temporary(self) -> None:
        """The room that was lent, if it is what came last; who comes again works logits out."""
        lent = self.logit_index[self.temporary_rows].tolist()
        if lent and self.logit_cache.used == lent[-1] + 1:
            self.logit_cache.used = lent[0]
            self.logit_index[self.temporary_rows] = NOT_CACHED


class _ScoreTokens(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, score_args: _ScoreArgs, hidden: Tensor, weight: Tensor, token: Tensor
    ) -> tuple[Tensor, Tensor]:
        logp, entropy, rest = (hidden.new_empty(len(hidden), *more) for more in ((), (), (2,)))
        for some in score_args.logit_cache.iter_logits(hidden, weight, score_args.logit_index):
            said = [x[some[1]] for x in (logp, entropy, rest)]
            score_args.call("say", some, token[some[1]], *said)
            for whole, part in zip((logp, entropy, rest), said, strict=True):
                whole[some[1]] = part
        ctx.save_for_backward(hidden, weight, token, entropy, rest)
        ctx.told = score_args
        return logp, entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore
        hidden, weight, *rest = ctx.saved_tensors
        told, (_, of_hidden, of_weight, _) = ctx.told, ctx.needs_input_grad
        told.check()
        dhidden, dweight = torch.empty_like(hidden) if of_hidden else None, None
        for some in told.heard.each(hidden, weight, told.at):
            rows, slope = some[1], told.heard.room(some[1], weight)
            told.call("blame", some, *[x[rows] for x in (*rest, *grads)], slope)
            if dhidden is not None:
                dhidden[rows] = slope @ weight
            if of_weight and dweight is None:
                dweight = slope.mT @ hidden[rows]
            elif dweight is not None:
                dweight.addmm_(slope.mT, hidden[rows])
        told.release_temporary()
        return None, dhidden, dweight, None

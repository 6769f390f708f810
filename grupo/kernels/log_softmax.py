"""Log-probability and entropy from logits in one pass, and back with nothing worked out again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.kernels.native import log_softmax

BLOCK_NUMEL = 1 << 19  # numbers that are worked on while they are near


def logp_and_entropy(
    logits: Float[Tensor, "m V"], token: Int[Tensor, "m"], temperature: float = 1.0
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """Of each token its log-probability, and the entropy of what it is drawn from, in nats.

    The same as by `log_softmax`, with one tensor of the size of the logits kept instead of five. It
    has one gradient: a second is refused by torch, for the first is worked out in what was kept.

    What is kept may be the logits, where a function has said them that does not need them itself:
    the gradient is written over them, and who reads them afterwards passes a copy.
    """
    return _LogpAndEntropy.apply(logits, token, temperature)  # pyright: ignore


def at_least_float32(x: Tensor) -> Tensor:
    """In float32 at least."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


_ForwardResult = tuple[
    Tensor, Tensor, tuple[Tensor, ...]
]  # log-probabilities, entropies, what is kept


class _Kernel(Protocol):
    """How it is worked out."""

    def forward(self, logits: Tensor, token: Tensor) -> _ForwardResult:
        """Log-probabilities and entropies, and what is kept for the way back."""
        ...

    def backward(self, saved: Sequence[Tensor], token: Tensor, *grads: Tensor | None) -> None:
        """Write the slopes of logits, from those of both, over the first that was kept."""
        ...


class _LogpAndEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, token: Tensor, temperature: float) -> Any:
        in_c = log_softmax.is_supported(at_least_float32(logits[:0]))
        way: _Kernel = _NativeKernel(temperature) if in_c else _TorchKernel(temperature)
        logp, entropy, kept = way.forward(logits, token)
        ctx.save_for_backward(token, *kept)
        ctx.set_materialize_grads(False)
        ctx.rest = way, logits.dtype
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        (token, *kept), (way, dtype) = ctx.saved_tensors, ctx.rest
        way.backward(kept, token, *grads)
        return kept[0].to(dtype), None, None


@dataclass(frozen=True)
class _NativeKernel:
    """Keeps the logits, and of each row two numbers that make probabilities of them."""

    temperature: float

    def forward(self, logits: Tensor, token: Tensor) -> _ForwardResult:
        x = at_least_float32(logits).contiguous()
        missed = x is logits and x.requires_grad and (x.is_leaf or x._is_view())
        x = x.clone() if missed else x
        logp, entropy, rest = (x.new_empty(len(x), *more) for more in ((), (), (2,)))
        log_softmax.call("say", x, self.temperature, _row_indices(x), token, logp, entropy, rest)
        return logp, entropy, (x, entropy, rest)

    def backward(self, saved: Sequence[Tensor], token: Tensor, *grads: Tensor | None) -> None:
        x, entropy, rest = saved
        given = (torch.zeros_like(entropy) if s is None else s for s in grads)
        told = _row_indices(x), token, entropy, rest, *given, x
        log_softmax.call("blame", x, self.temperature, *told)
        torch.autograd.graph.increment_version(x)


@dataclass(frozen=True)
class _TorchKernel:
    """Keeps the probabilities."""

    temperature: float

    def forward(self, logits: Tensor, token: Tensor) -> _ForwardResult:
        dtype = torch.promote_types(logits.dtype, torch.float32)
        p = torch.empty_like(logits, dtype=dtype)
        total, mean = p.new_empty(len(p)), p.new_empty(len(p))
        for some in _row_blocks(p):
            x = at_least_float32(logits[some])
            x = x if self.temperature == 1 else x / self.temperature
            torch.softmax(x, -1, out=p[some])
            total[some] = x.amax(-1) - p[some].amax(-1).log()  # log of the sum of exp(x)
            mean[some] = torch.linalg.vecdot(p[some], x)
            if mean[some].isnan().any():  # a logit of -inf adds nothing
                mean[some] = (p[some] * x.masked_fill(p[some] == 0, 0.0)).sum(-1)
        logp = logits.gather(1, token[:, None])[:, 0].to(dtype) / self.temperature - total
        entropy = total - mean
        return logp, entropy, (p, entropy)

    def backward(self, saved: Sequence[Tensor], token: Tensor, *grads: Tensor | None) -> None:
        p, entropy = saved
        a, b = (None if s is None else s[:, None] / self.temperature for s in grads)
        tiny = torch.finfo(p.dtype).tiny
        for some in _row_blocks(
            p
        ):  # in place: memory of this size costs as much as what is done in it
            factor = 0.0 if a is None else a[some]
            if b is not None:  # dH / dx_v = -p_v (log p_v + H)
                log = p[some].clamp(min=tiny).log()
                factor = factor + b[some] * (log + entropy[some, None])
            p[some].mul_(-factor)
        if a is not None:
            p.scatter_add_(1, token[:, None], a)


def _row_indices(x: Tensor) -> Tensor:
    """Where its rows are."""
    return torch.arange(len(x))


def _row_blocks(x: Tensor) -> Iterator[slice]:
    """Rows at a time that a processor's cache holds; elsewhere all at once."""
    size = max(1, BLOCK_NUMEL // x.shape[1]) if x.device.type == "cpu" else len(x)
    return (slice(i, i + size) for i in range(0, len(x), size))

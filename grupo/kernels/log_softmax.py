"""Log-probability and entropy from logits in one pass, with a gradient that recomputes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from grupo.kernels.native import log_softmax

BLOCK_NUMEL = 1 << 19  # numbers that fit into a processor's cache
GPU_BLOCK_NUMEL = 1 << 26  # numbers that keep a GPU busy; a block has three copies, 256 MiB each


def logp_and_entropy(
    logits: Float[Tensor, "m V"], token: Int[Tensor, "m"], temperature: float = 1.0
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """Log-probability of each token, and entropy of its distribution, in nats.

    The results equal those of `log_softmax`, with one saved tensor of the size of the logits
    instead of five. The gradient can be computed once: it overwrites the saved tensor, and torch
    raises an error for a second backward pass.

    The saved tensor may be `logits` itself, if these are the result of an operation that does not
    need them for its own gradient. A caller that reads the logits after the backward pass must
    pass a copy.

    Args:
        logits: before the division by the temperature.
        token: index of the sampled token in each row.
        temperature: divides the logits.
    """
    return _LogpAndEntropy.apply(logits, token, temperature)


def at_least_float32(x: Tensor) -> Tensor:
    """Converts half precision to float32 and leaves wider types."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


# log-probabilities, entropies, tensors saved for the backward pass
_ForwardResult = tuple[Tensor, Tensor, tuple[Tensor, ...]]


class _Kernel(Protocol):
    """One implementation of the forward and backward pass."""

    def forward(self, logits: Tensor, token: Tensor) -> _ForwardResult:
        """Log-probabilities, entropies, and the tensors saved for the backward pass."""
        ...

    def backward(self, saved: Sequence[Tensor], token: Tensor, *grads: Tensor | None) -> None:
        """Overwrite the first saved tensor with the gradient of the logits."""
        ...


class _LogpAndEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, token: Tensor, temperature: float) -> Any:
        native = log_softmax.is_supported(at_least_float32(logits[:0]))
        kernel: _Kernel = _NativeKernel(temperature) if native else _TorchKernel(temperature)
        logp, entropy, saved = kernel.forward(logits, token)
        ctx.save_for_backward(token, *saved)
        ctx.set_materialize_grads(False)
        ctx.rest = kernel, logits.dtype
        return logp, entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, None, None]:
        token, *saved = ctx.saved_tensors
        kernel, dtype = ctx.rest
        kernel.backward(saved, token, *grads)
        return saved[0].to(dtype), None, None


@dataclass(frozen=True)
class _NativeKernel:
    """Saves the logits, and two numbers of each row that turn them into probabilities."""

    temperature: float

    def forward(self, logits: Tensor, token: Tensor) -> _ForwardResult:
        x = at_least_float32(logits).contiguous()
        # the gradient must not overwrite a leaf or, through a view, another tensor
        unsafe = x is logits and x.requires_grad and (x.is_leaf or x._is_view())
        x = x.clone() if unsafe else x
        logp = x.new_empty(len(x))
        entropy = x.new_empty(len(x))
        row_stats = x.new_empty(len(x), 2)
        out = logp, entropy, row_stats
        log_softmax.call("logp_and_entropy", x, self.temperature, _row_indices(x), token, *out)
        return logp, entropy, (x, entropy, row_stats)

    def backward(self, saved: Sequence[Tensor], token: Tensor, *grads: Tensor | None) -> None:
        x, entropy, row_stats = saved
        given = (torch.zeros_like(entropy) if grad is None else grad for grad in grads)
        args = _row_indices(x), token, entropy, row_stats, *given, x
        log_softmax.call("logp_and_entropy_backward", x, self.temperature, *args)
        torch.autograd.graph.increment_version(x)


@dataclass(frozen=True)
class _TorchKernel:
    """Saves the probabilities."""

    temperature: float

    def forward(self, logits: Tensor, token: Tensor) -> _ForwardResult:
        dtype = torch.promote_types(logits.dtype, torch.float32)
        p = torch.empty_like(logits, dtype=dtype)
        lse = p.new_empty(len(p))
        mean = p.new_empty(len(p))
        for rows in _row_blocks(p):
            x = at_least_float32(logits[rows])
            x = x if self.temperature == 1 else x / self.temperature
            torch.softmax(x, -1, out=p[rows])
            lse[rows] = x.amax(-1) - p[rows].amax(-1).log()
            mean[rows] = _mean_logit(p[rows], x)
        logp = logits.gather(1, token[:, None])[:, 0].to(dtype) / self.temperature - lse
        entropy = lse - mean
        return logp, entropy, (p, entropy)

    def backward(self, saved: Sequence[Tensor], token: Tensor, *grads: Tensor | None) -> None:
        p, entropy = saved
        grad_logp, grad_entropy = (
            None if grad is None else grad[:, None] / self.temperature for grad in grads
        )
        tiny = torch.finfo(p.dtype).tiny
        # in place: allocating memory of this size costs as much as the computation
        for rows in _row_blocks(p):
            factor = 0.0 if grad_logp is None else grad_logp[rows]
            if grad_entropy is not None:  # dH / dx_v = -p_v (log p_v + H)
                log = p[rows].clamp(min=tiny).log()
                factor = factor + grad_entropy[rows] * (log + entropy[rows, None])
            p[rows].mul_(-factor)
        if grad_logp is not None:
            p.scatter_add_(1, token[:, None], grad_logp)


def _mean_logit(p: Tensor, x: Tensor) -> Tensor:
    """The sum of p * x over each row; a logit of -inf adds nothing."""
    if x.is_cuda:  # the program would wait for a GPU to read whether there is any
        return torch.linalg.vecdot(p, x.clamp(min=torch.finfo(x.dtype).min))
    mean = torch.linalg.vecdot(p, x)
    return (p * x.masked_fill(p == 0, 0.0)).sum(-1) if mean.isnan().any() else mean


def _row_indices(x: Tensor) -> Tensor:
    return torch.arange(len(x))


def _row_blocks(x: Tensor) -> Iterator[slice]:
    """Blocks of rows; those of a CPU fit into its cache."""
    numel = BLOCK_NUMEL if x.device.type == "cpu" else GPU_BLOCK_NUMEL
    size = max(1, numel // x.shape[1])
    return (slice(i, i + size) for i in range(0, len(x), size))

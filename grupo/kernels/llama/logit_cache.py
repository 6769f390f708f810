"""Cache of LM-head logits: computed while sampling, reused in the update."""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from grupo.kernels.llama.activation_cache import ScratchBuffers
from grupo.kernels.llama.ctypes_structs import ModelShape
from grupo.kernels.llama.panels import multiply_panels, pack_panels, panels_dtype, panels_size
from grupo.kernels.llama.products import FullProducts, Products
from grupo.kernels.llama.weights_version import WeightsVersion
from grupo.kernels.native import log_softmax
from grupo.kernels.prefix_cache import NOT_CACHED

PANELS = "panels of the head"  # name of their buffer
CHUNK = 1 << 24  # logits computed at once where they are not cached
LogitRows = tuple[Tensor, Tensor, Tensor]  # logits, indices of tokens, row of each token's logits


class LogitCache:
    """Logits of tokens, found by the tokens' rows in the activation cache.

    Once the cache is full, further logits are not cached. The operating system commits memory as
    rows are written; `clear` keeps it for reuse, and `release` frees it.

    Args:
        library: the compiled C functions.
        shape: sizes of the model.
        scratch: buffers for intermediate results.
        num_activations: rows of the activation cache; the logits of as many tokens are cached.
    """

    def __init__(
        self, library: ctypes.CDLL, shape: ModelShape, scratch: ScratchBuffers, num_activations: int
    ) -> None:
        self.library = library
        self.shape = shape
        self.scratch = scratch
        self.capacity = num_activations
        self.buffer = torch.zeros(0)
        # by activation row; the last entry belongs to NOT_CACHED
        self.logit_index = torch.full((num_activations + 1,), NOT_CACHED)
        self.generation = 0  # increases whenever rows become invalid
        self.panels: Tensor | None = None
        self.weights_version: WeightsVersion | None = None
        self.clear(None, FullProducts(torch.float32))

    def clear(self, weights_version: WeightsVersion | None, products: Products) -> None:
        """Removes all logits.

        Args:
            weights_version: weights that later logits are computed with; None: they are never
                valid.
            products: how they are multiplied.
        """
        if weights_version is None or weights_version != self.weights_version:
            self.panels = None
        self.products = products
        self.used = 0
        self.weights_version = weights_version
        self.generation += 1
        self.logit_index.fill_(NOT_CACHED)

    def release(self) -> None:
        """Frees the memory of the logits, after they have been removed."""
        self.buffer = self.buffer.new_empty(0)

    def release_panels(self) -> None:
        """Frees the copy of the head's weight, unless `compute_logits` needs it."""
        if self.products.dtype != torch.bfloat16:
            self.panels = None
            self.scratch.release(PANELS)

    def allocate(self, count: int, weight: Tensor) -> tuple[int, Tensor] | None:
        """Reserves `count` rows: the first row and a view of the rows, or None if full."""
        if self.used + count > self.capacity:
            return None
        dtype = _logits_dtype(weight)
        if not len(self.buffer) or self.buffer.dtype != dtype:
            self.buffer = torch.empty(self.capacity, len(weight), dtype=dtype)
        first = self.used
        self.used = self.used + count
        return first, self.buffer[first : self.used]

    def logits(
        self,
        weight: Float[Tensor, "V h"],
        hidden: Float[Tensor, "m h"],
        activation_index: Int[Tensor, "m"] | None,
    ) -> Float[Tensor, "m V"]:
        """Logits of tokens, cached if there is room and the tokens' activations are cached."""
        room = None if activation_index is None else self.allocate(len(hidden), weight)
        first, out = room or (NOT_CACHED, hidden.new_empty(len(hidden), len(weight)))
        self._multiply(hidden, weight, out)
        if activation_index is not None and room:
            self.logit_index[activation_index] = torch.arange(first, self.used)
        return out

    def lookup(self, activation_index: Tensor | None, count: int) -> Int[Tensor, "m"]:
        """Row of the cached logits of each of `count` tokens, or NOT_CACHED."""
        if activation_index is None:
            return torch.full((count,), NOT_CACHED)
        return self.logit_index[activation_index]

    def iter_logits(
        self, hidden: Tensor, weight: Tensor, logit_index: Tensor
    ) -> Iterator[LogitRows]:
        """Logits of all tokens in chunks: first the cached ones, then the others, computed."""
        size = max(1, CHUNK // len(weight))
        for rows in (logit_index >= 0).nonzero()[:, 0].split(size):
            if len(rows):
                yield self.buffer, rows, logit_index[rows]
        for rows in (logit_index < 0).nonzero()[:, 0].split(size):
            if len(rows):
                out = self.scratch_rows(rows, weight)
                yield self.compute_logits(hidden[rows], weight, out), rows, torch.arange(len(rows))

    def compute_logits(self, hidden: Tensor, weight: Tensor, out: Tensor) -> Tensor:
        """Logits of tokens without cached logits."""
        if self.products.dtype == torch.bfloat16:  # the logits of a token in any batch are equal
            self._multiply(hidden, weight, out)
            return out
        return torch.mm(hidden, weight.mT, out=out)

    def _multiply(self, hidden: Tensor, weight: Tensor, out: Tensor) -> None:
        self.shape.threads = torch.get_num_threads()
        if self.panels is None:
            dtype = panels_dtype(self.products.dtype, weight.dtype)
            like = torch.empty(0, dtype=dtype)
            panels = self.scratch.get(PANELS, *panels_size(weight, dtype), like)
            self.panels = pack_panels(self.library, self.shape, weight, panels)
        multiply_panels(self.library, self.shape, hidden, self.panels, out)

    def scratch_rows(self, rows: Tensor, weight: Tensor) -> Tensor:
        """A reusable buffer for the logits of some rows, or for their gradient."""
        like = torch.empty(0, dtype=_logits_dtype(weight))
        return self.scratch.get("logits", len(rows), len(weight), like)


def _logits_dtype(weight: Tensor) -> torch.dtype:
    """Type of logits: that of the weight, or float32 for a weight in bfloat16."""
    return torch.promote_types(weight.dtype, torch.float32)


@dataclass(frozen=True)
class CachedTokenScorer:
    """Differentiable log-probabilities and entropies of tokens, from cached logits if possible.

    Args:
        logit_cache: the cache.
        weight: of the LM head.
        activation_index: rows of the tokens in the activation cache, or None.
    """

    logit_cache: LogitCache
    weight: Float[Tensor, "V h"]
    activation_index: Int[Tensor, "m"] | None

    def __call__(
        self, hidden: Float[Tensor, "m h"], token: Int[Tensor, "m"], temperature: float
    ) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
        """Log-probability of each token and entropy of its distribution, in nats."""
        cache = self.logit_cache
        logit_index = cache.lookup(self.activation_index, len(hidden))
        temporary = logit_index[:0]
        if torch.is_grad_enabled() and (hidden.requires_grad or self.weight.requires_grad):
            temporary = self._allocate_temporary(hidden.detach(), logit_index)
        args = _ScoreArgs(cache, cache.generation, temperature, logit_index, temporary)
        return _ScoreTokens.apply(args, hidden, self.weight, token)

    def _allocate_temporary(self, hidden: Tensor, logit_index: Tensor) -> Int[Tensor, "n"]:
        """Caches the missing logits until the backward pass, if there is room.

        Writes their rows into `logit_index` and returns the indices of these tokens.
        """
        new = (logit_index < 0).nonzero()[:, 0]
        room = self.logit_cache.allocate(len(new), self.weight) if len(new) else None
        if room is None:
            return new[:0]
        first, out = room
        self.logit_cache.compute_logits(hidden[new], self.weight.detach(), out)
        logit_index[new] = torch.arange(first, self.logit_cache.used)
        return new


@dataclass(frozen=True)
class _ScoreArgs:
    """Cache, temperature and rows of logits of one call of a scorer."""

    logit_cache: LogitCache
    generation: int  # of the cache when the rows were written
    temperature: float
    logit_index: Int[Tensor, "m"]  # row of each token's logits, or NOT_CACHED
    temporary_rows: Int[Tensor, "n"]  # tokens with logits cached for the backward pass alone

    def call(self, name: str, logit_rows: LogitRows, *args: Tensor) -> None:
        """Calls a C function with the logits of some of the tokens."""
        logits, _, row_index = logit_rows
        log_softmax.call(name, logits, self.temperature, row_index, *args)

    def check_valid(self) -> None:
        """Raises RuntimeError if the cached logits may have been overwritten."""
        same = self.logit_cache.generation == self.generation
        if not same and (self.logit_index >= 0).any():
            raise RuntimeError("logits that a gradient needs are gone: another engine was started")

    def release_temporary(self) -> None:
        """Frees the temporary rows if they are the last ones; a later call recomputes them."""
        rows = self.logit_index[self.temporary_rows].tolist()
        if rows and self.logit_cache.used == rows[-1] + 1:
            self.logit_cache.used = rows[0]
            self.logit_index[self.temporary_rows] = NOT_CACHED


class _ScoreTokens(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, score_args: _ScoreArgs, hidden: Tensor, weight: Tensor, token: Tensor
    ) -> tuple[Tensor, Tensor]:
        logp = hidden.new_empty(len(hidden))
        entropy = hidden.new_empty(len(hidden))
        row_stats = hidden.new_empty(len(hidden), 2)
        results = logp, entropy, row_stats
        cache = score_args.logit_cache
        for chunk in cache.iter_logits(hidden, weight, score_args.logit_index):
            rows = chunk[1]
            chunk_results = [x[rows] for x in results]
            score_args.call("logp_and_entropy", chunk, token[rows], *chunk_results)
            for result, chunk_result in zip(results, chunk_results, strict=True):
                result[rows] = chunk_result
        ctx.save_for_backward(hidden, weight, token, entropy, row_stats)
        ctx.score_args = score_args
        return logp, entropy

    @staticmethod
    @once_differentiable
    # pyrefly: ignore[bad-override]
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, *saved = ctx.saved_tensors
        args: _ScoreArgs = ctx.score_args
        _, needs_hidden, needs_weight, _ = ctx.needs_input_grad
        args.check_valid()
        cache = args.logit_cache
        products = cache.products
        dhidden = torch.empty_like(hidden) if needs_hidden else None
        dweight = None
        for chunk in cache.iter_logits(hidden, weight, args.logit_index):
            rows = chunk[1]
            grad = cache.scratch_rows(rows, weight)
            inputs = [x[rows] for x in (*saved, *grads)]
            args.call("logp_and_entropy_backward", chunk, *inputs, grad)
            grad = products.operand(grad)
            if dhidden is not None:
                out = hidden.new_empty(len(rows), hidden.shape[1])
                dhidden[rows] = products.input_gradient((grad, weight), out=out)
            if needs_weight:
                operand = products.operand(hidden[rows])
                dweight = products.weight_gradient(grad, operand, added=dweight)
        args.release_temporary()
        return None, dhidden, dweight, None

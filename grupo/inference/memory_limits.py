"""Limits of an engine's memory, which are halved when memory does not suffice."""

from dataclasses import dataclass

MAX_CONTEXT_TOKENS = 1 << 17
CPU_KV_BYTES = 1 << 30  # of keys and values of one batch on a CPU
MAX_PREFILL_PAIRS = 1 << 24
MIN_CONTEXT_TOKENS = 1 << 6  # a batch of so few tokens is one answer, for most requests
MAX_GPU_CONTEXT_TOKENS = 1 << 20
MIN_PREFILL_PAIRS = 1 << 16
# Of the memory of a GPU that training leaves, a quarter is for keys and values, because those of
# prompts are stored twice and grow by copies, and an eighth for attention scores.
KV_SHARE, SCORES_SHARE = 4, 8
BYTES_PER_SCORE = 12  # three copies in float32


@dataclass
class MemoryLimits:
    """Limits of what an engine holds in memory; all engines of an evaluator share one object.

    Args:
        context_tokens: tokens of prefixes and answers in one batch.
        prefill_pairs: on a GPU, pairs of tokens whose attention scores are computed at once. With
            16 heads, 2^24 pairs are 1 GiB of scores in float32, of which there are three copies.

    `cpu_limits` and `gpu_limits` compute those for a model.
    """

    context_tokens: int = MAX_CONTEXT_TOKENS
    prefill_pairs: int = MAX_PREFILL_PAIRS

    def halve(self) -> str:
        """Halve the limits; return a message, or "" if they cannot become smaller."""
        if self.context_tokens < 2 * MIN_CONTEXT_TOKENS:
            return ""
        self.context_tokens //= 2
        self.prefill_pairs //= 2
        return f"Out of memory: batches of answers hold {self.context_tokens} tokens from now on."


def cpu_limits(*, kv_bytes_per_token: int) -> MemoryLimits:
    """Limits on a CPU, powers of two that depend on the model alone.

    Args:
        kv_bytes_per_token: keys and values of all layers.

    >>> cpu_limits(kv_bytes_per_token=46_080).context_tokens  # SmolLM2-135M in float32
    16384
    """
    tokens = _power_of_two(CPU_KV_BYTES // kv_bytes_per_token)
    return MemoryLimits(min(max(tokens, MIN_CONTEXT_TOKENS), MAX_CONTEXT_TOKENS))


def gpu_limits(
    total_bytes: int, training_bytes: int, *, kv_bytes_per_token: int, num_heads: int
) -> MemoryLimits:
    """Limits for a GPU, powers of two that depend on its size and on the model alone.

    The bytes that are free at the moment would be others in the next run, whose batches, and with
    them the rounding of its numbers, would differ.

    Args:
        total_bytes: memory of the GPU.
        training_bytes: weights, and gradients and moments of those that are trained.
        kv_bytes_per_token: keys and values of all layers.
        num_heads: attention heads of a layer.

    >>> gpu_limits(80 << 30, 16 << 30, kv_bytes_per_token=1 << 16, num_heads=16)
    MemoryLimits(context_tokens=262144, prefill_pairs=33554432)
    """
    left = max(0, total_bytes - training_bytes)
    tokens = left // KV_SHARE // kv_bytes_per_token
    pairs = left // SCORES_SHARE // (BYTES_PER_SCORE * num_heads)
    return MemoryLimits(
        min(max(_power_of_two(tokens), MIN_CONTEXT_TOKENS), MAX_GPU_CONTEXT_TOKENS),
        max(_power_of_two(pairs), MIN_PREFILL_PAIRS),
    )


def _power_of_two(number: int) -> int:
    """The largest power of two up to a number, or 0."""
    return 1 << number.bit_length() - 1 if number else 0

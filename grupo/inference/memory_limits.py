"""Limits of an engine's memory, which are halved when memory does not suffice."""

from dataclasses import dataclass

MAX_CONTEXT_TOKENS = 1 << 17
MAX_PREFILL_PAIRS = 1 << 24
MIN_CONTEXT_TOKENS = 1 << 6  # a batch of so few tokens is one answer, for most requests


@dataclass
class MemoryLimits:
    """Limits of what an engine holds in memory; all engines of an evaluator share one object.

    Args:
        context_tokens: tokens of prefixes and answers in one batch.
        prefill_pairs: on a GPU, pairs of tokens whose attention scores are computed at once. With
            16 heads, 2^24 pairs are 1 GiB of scores in float32, of which there are three copies.
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

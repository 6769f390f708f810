"""Shaping: what is added to a reward before it is compared."""

from collections.abc import Hashable, Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, PerRollout, broadcast_to_tokens
from grupo.core.component import component


@component
class OverlongPenalty:
    """x + (0 up to `limit - margin` actions, then linearly down to -1 at `limit`).

    DAPO (arXiv:2503.14476), eq. 13.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0, 0], length=[2, 3, 4])
    >>> OverlongPenalty(max_length=4, overlong_buffer=2)(torch.zeros(3), batch)
    tensor([ 0.0000, -0.5000, -1.0000])
    """

    max_length: int
    overlong_buffer: int

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x + (
            (self.max_length - self.overlong_buffer - batch.lengths) / self.overlong_buffer
        ).clamp(-1, 0).to(x)


def brevity(batch: Batch) -> PerRollout:
    """1/2 - (L - min L) / (max L - min L): 1/2 for the shortest of the group, -1/2 for the longest.

    0 where all are equally long. Kimi k1.5 (arXiv:2501.12599), section 2.3.3.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> brevity(make_batch(group=[0, 0, 0, 1], length=[1, 2, 5, 3])).tolist()
    [0.5, 0.25, -0.5, 0.0]
    """
    L = batch.lengths
    low, high = group_ops.min(L, batch.group), group_ops.max(L, batch.group)
    return torch.where(high > low, 0.5 - (L - low) / (high - low).clamp(min=1), 0.0)


def length_reward(correct: Bool[Tensor, "R"], batch: Batch) -> PerRollout:
    """`brevity`, but nothing above 0 for who is wrong: a short wrong answer is worth nothing.

    Kimi k1.5 (arXiv:2501.12599), section 2.3.3.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0, 0, 0, 0], length=[1, 5, 1, 5])
    >>> length_reward(torch.tensor([True, True, False, False]), batch).tolist()
    [0.5, -0.5, 0.0, -0.5]
    """
    short = brevity(batch)
    return torch.where(correct, short, short.clamp(max=0))


def value_for_label(values: Sequence[float], label: PerRollout) -> PerRollout:
    """The value that each rollout's label 0, 1, 2 ... stands for.

    >>> value_for_label((0.5, 0.25, 0.0), torch.tensor([2.0, 0.0]))
    tensor([0.0000, 0.5000])
    """
    return torch.tensor(values, dtype=label.dtype)[label.long()]


def repeated_ngrams(tokens: Sequence[Hashable], n: int = 40) -> list[float]:
    """1 for every token of an n-gram that came before, else 0: what `RepetitionPenalty` is to read.

    Yeo et al. (arXiv:2502.03373).

    >>> repeated_ngrams("ab" "c" "ab", n=2)
    [0.0, 0.0, 0.0, 1.0, 1.0]
    """
    seen, marks = set(), [0.0] * len(tokens)
    for end in range(n, len(tokens) + 1):
        gram = tuple(tokens[end - n : end])
        if gram in seen:
            marks[end - n : end] = [1.0] * n
        seen.add(gram)
    return marks


@component
class RepetitionPenalty:
    """X + the return of `price` at every action that is marked repeated, by its own `discount`.

    Yeo et al. (arXiv:2502.03373): kinds of rewards with a discount each.

    >>> import torch
    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch(group=[0], length=[3], signals={"step/repeated": [[0.0, 1.0, 1.0]]})
    >>> RepetitionPenalty(repetition_coef=-1.0, discount=0.5)(torch.zeros(1), batch)
    tensor([[-0.7500, -1.5000, -1.0000]], dtype=torch.float64)
    """

    repetition_coef: float
    discount: float
    step_value: str = "step/repeated"

    @property
    def required_signals(self) -> frozenset[str]:
        """1 for tokens of n-grams that came before."""
        return frozenset({self.step_value})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        paid = self.repetition_coef * (batch.mask & (batch.signals[self.step_value] > 0)).to(
            batch.old_logp
        )
        returns, later = [], torch.zeros_like(paid[:, 0])
        for now in paid.unbind(1)[::-1]:
            later = now + self.discount * later
            returns.append(later)
        return broadcast_to_tokens(x, batch) + torch.stack(returns[::-1], dim=1)

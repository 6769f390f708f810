"""Weights: how much each action counts in the loss.

A weigh is a function `batch -> (N, T)` of the mask and the grouping alone. It is computed once, on
the whole minibatch; the loss is then the plain sum of weight x loss, whatever the micro-batches and
the ranks.
"""

from typing import Protocol

from grupo.batch import Batch, PerAction
from grupo.piece import piece


class Weigh(Protocol):
    """How much each action counts, (N, T), 0 where masked."""

    def __call__(self, batch: Batch, /) -> PerAction: ...


def token_mean(batch: Batch) -> PerAction:
    """Every action counts the same: 1 / sum_i L_i.

    DAPO (arXiv:2503.14476), eq. 8.
        >>> from grupo.testing import batch_of
        >>> token_mean(batch_of(group=[0, 0], length=[1, 3])).tolist()
        [[0.25, 0.0, 0.0], [0.25, 0.25, 0.25]]
    """
    return batch.mask.to(batch.old_logp) / batch.mask.sum().clamp(min=1)


def sequence_mean(batch: Batch) -> PerAction:
    """Every row counts the same, and within a row every action: 1 / (N L_i).

    GRPO (arXiv:2402.03300), eq. 3.
        >>> from grupo.testing import batch_of
        >>> sequence_mean(batch_of(group=[0, 0], length=[1, 2])).tolist()
        [[0.5, 0.0], [0.25, 0.25]]
    """
    return sequence_sum(batch) / batch.mask.sum(1, keepdim=True).clamp(min=1)


def sequence_sum(batch: Batch) -> PerAction:
    """Rows count by their length: 1 / N for every action of N rows that acted.

    >>> from grupo.testing import batch_of
    >>> sequence_sum(batch_of(group=[0, 0], length=[1, 2])).tolist()
    [[0.5, 0.0], [0.5, 0.5]]
    """
    return batch.mask.to(batch.old_logp) / batch.mask.any(1).sum().clamp(min=1)


@piece
class FixedLength:
    """Every action counts 1 / (N `length`), however long its row.

    Dr. GRPO (arXiv:2503.20783), section 3.2 and listing 1.

    >>> from grupo.testing import batch_of
    >>> FixedLength(4)(batch_of(group=[0, 0], length=[1, 2])).tolist()
    [[0.125, 0.0], [0.125, 0.125]]
    """

    length: int

    def __call__(self, batch: Batch) -> PerAction:
        return sequence_sum(batch) / self.length

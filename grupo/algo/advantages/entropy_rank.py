"""Bonuses for the truncated rollouts of all-incorrect groups, by the shape of their entropy.

Source: structural entropy ranking reward of R^3, Jiang et al., arXiv:2601.19620, section 3.2.3.
"""

import torch
from torch import Tensor

from grupo.algo.advantages.replay import off_context_rollouts
from grupo.algo.advantages.token_table import sum_per_rollout, to_token_table
from grupo.algo.data_source import REQUIRES_OFF_CONTEXT
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.numbers import Fraction, NumberOrSchedule, PositiveInt
from grupo.core.requires import Requires


@component
class EntropyRank:
    """x + max_bonus k / (n - 1) for the n truncated rollouts of an all-incorrect group, (R,).

    k is the rank of the rollout among them by the number of rollouts it dominates; ties share
    their mean rank. A rollout dominates another if the mean entropy of its most uncertain tokens
    is higher and the mean entropy of all its tokens is lower. A group is incorrect if no reward of
    its sampled rollouts is above 0.5. Replayed rollouts, whose signal "off_context" is 1, neither
    count nor have a rank.

    Args:
        max_length: a rollout of this many tokens or more is truncated.
        max_bonus: bonus of the best rank.
        peak_fraction: fraction of a rollout's tokens that are its most uncertain ones.

    >>> from grupo.testing.batches import make_batch
    >>> signals = {"entropy": [[3.0, 0.0], [2.0, 2.0]], "off_context": [[0.0, 0.0]] * 2}
    >>> batch = make_batch([0, 0], length=[2, 2], signals=signals)
    >>> EntropyRank(max_length=2)(batch.reward, batch).tolist()
    [0.1, 0.0]
    """

    max_length: PositiveInt
    max_bonus: NumberOrSchedule = 0.1
    peak_fraction: Fraction = 0.2

    requires = REQUIRES_OFF_CONTEXT | Requires(signals=("entropy",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        replayed = off_context_rollouts(batch)
        truncated = (batch.lengths >= self.max_length) & ~replayed
        all_incorrect = group_ops.max(x.masked_fill(replayed, -torch.inf), batch.group) <= 0.5
        label = 2 * batch.group + truncated
        peak = self._peak_entropy(batch)
        mean = sum_per_rollout(batch.signals["entropy"], batch) / batch.lengths.clamp(min=1)
        same_label = label[:, None] == label
        dominates = (peak[:, None] > peak) & (mean[:, None] < mean) & same_label
        rank = group_ops.rank(dominates.sum(1).to(x), label)
        bonus = self.max_bonus * rank / (group_ops.count(x, label) - 1).clamp(min=1)
        return x + bonus * (truncated & all_incorrect)

    def _peak_entropy(self, batch: Batch) -> PerRollout:
        """Mean entropy of the `peak_fraction` most uncertain tokens of each rollout."""
        entropy = to_token_table(batch.signals["entropy"], batch).sort(descending=True).values
        k = (self.peak_fraction * batch.lengths).floor().clamp(min=1)[:, None]
        return ((torch.arange(entropy.shape[1]) < k) * entropy / k).sum(1)

"""Rewards for who fails better."""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout, to_token_table
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component


@component
class EntropyRank:
    """x + `best` k / (n - 1) for the n that were cut off, of a group that is all wrong.

    k is the place by how many others one dominates: a higher mean entropy of its `peak` most
    uncertain actions, and a lower one of all. Equals share their place.

    R^3, structural entropy ranking reward. Jiang et al. (arXiv:2601.19620), section 3.2.3.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> batch = make_batch([0, 0], length=[2, 2], signals={"entropy": [[3.0, 0.0], [2.0, 2.0]]})
    >>> EntropyRank(max_length=2)(batch.reward, batch).tolist()
    [0.1, 0.0]
    """

    max_length: int
    max_bonus: float = 0.1
    peak_fraction: float = 0.2
    required_signals = frozenset({"entropy"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        cut, wrong = batch.lengths >= self.max_length, group_ops.max(x, batch.group) <= 0.5
        label = 2 * batch.group + cut
        mean = sum_per_rollout(batch.signals["entropy"], batch) / batch.lengths.clamp(min=1)
        high, same = self._peak_entropy(batch), label[:, None] == label
        beats = (high[:, None] > high) & (mean[:, None] < mean) & same
        place = group_ops.rank(beats.sum(1).to(x), label)
        paid = self.max_bonus * place / (group_ops.count(x, label) - 1).clamp(min=1)
        return x + paid * (cut & wrong)

    def _peak_entropy(self, batch: Batch) -> PerRollout:
        H = to_token_table(batch.signals["entropy"], batch).sort(descending=True).values
        k = (self.peak_fraction * batch.lengths).floor().clamp(min=1)[:, None]
        return ((torch.arange(H.shape[1]) < k) * H / k).sum(1)

"""Rewards for who fails better."""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import line_up, total
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import piece


@piece
class RankedByEntropy:
    """x + `best` k / (n - 1) for the n that were cut off, of a group that is all wrong.

    k is the place by how many others one dominates: a higher mean entropy of its `peak` most
    uncertain actions, and a lower one of all. Equals share their place.

    R^3, structural entropy ranking reward. Jiang et al. (arXiv:2601.19620), section 3.2.3.

    >>> from grupo.testing.batches import batch_of
    >>> batch = batch_of([0, 0], length=[2, 2], seen={"entropy": [[3.0, 0.0], [2.0, 2.0]]})
    >>> RankedByEntropy(limit=2)(batch.reward, batch).tolist()
    [0.1, 0.0]
    """

    limit: int
    best: float = 0.1
    peak: float = 0.2
    needs = frozenset({"entropy"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        cut, wrong = batch.lengths >= self.limit, group_ops.max(x, batch.group) <= 0.5
        label = 2 * batch.group + cut
        mean = total(batch.seen["entropy"], batch) / batch.lengths.clamp(min=1)
        high, same = self._peaks(batch), label[:, None] == label
        beats = (high[:, None] > high) & (mean[:, None] < mean) & same
        place = group_ops.rank(beats.sum(1).to(x), label)
        paid = self.best * place / (group_ops.count(x, label) - 1).clamp(min=1)
        return x + paid * (cut & wrong)

    def _peaks(self, batch: Batch) -> PerRollout:
        H = line_up(batch.seen["entropy"], batch).sort(descending=True).values
        k = (self.peak * batch.lengths).floor().clamp(min=1)[:, None]
        return ((torch.arange(H.shape[1]) < k) * H / k).sum(1)

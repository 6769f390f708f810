"""COPO: groups that agree are compared with other groups. Han et al., 2025, arXiv:2508.04138."""

from math import log

import torch
from torch import Tensor

from grupo.algo.losses import Clip, Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, spread
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="COPO: Consistency-Aware Policy Optimization",
    use="Most groups are all right or all wrong and would teach nothing.",
    checked=("golden", "laws", "run"),
    catalogue=("copo",),
)


def entropy(batch: Batch) -> Tensor:
    """H = -sum over answers of f log2 f, f their shares of the group."""
    return group_ops.entropy(batch.parts["cluster"], batch.group) / log(2)


def between_groups(x: Tensor, batch: Batch) -> Tensor:
    """(R - mean R) / std R over groups, R = mean(x) (1 - (1 - 1/G) H / log2 G)."""
    G = group_ops.count(x, batch.group)
    R = group_ops.mean(x, batch.group) * (1 - (1 - 1 / G) * entropy(batch) / G.clamp(min=2).log2())
    P = (1 / G).sum()
    centred = R - (R / G).sum() / P
    return centred / (((centred**2 / G).sum() / (P - 1).clamp(min=1)).sqrt() + 1e-6)


@piece
class Blended(Loss):
    """w clip(A) + (1 - w) clip(A of the group), w = sigmoid(k (H - b)), 0 where rewards agree."""

    clip: Clip
    k: float
    b: float
    reads_parts = ("cluster",)
    reads_whole_batch = True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        differ = group_ops.var(batch.reward, batch.group) > 1e-12
        w = spread(torch.sigmoid(self.k * (entropy(batch) - self.b)) * differ, batch).to(pi.logp)
        alone, among = self.clip(pi, batch), self.clip(pi, batch.credited(between_groups))
        return w * alone + (1 - w) * among


def copo(group: int = 8, clip: float = 0.2, k: float = 1.0, b: float = 0.5) -> Method:
    """Two clipped losses, of GRPO's A and of A between groups; equal answers share a `cluster`."""
    # The authors' code, with groups that do not differ left to the second loss. Group: our choice.
    return Method(sample=Independent(group), loss=Blended(Clip(clip, clip), k, b))

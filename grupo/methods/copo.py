"""COPO: groups that agree are compared with other groups. Han et al., 2025, arXiv:2508.04138."""

from math import log

import torch
from torch import Tensor

from grupo.algo.losses import Clip, Loss
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction, Signals, broadcast_to_tokens
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="COPO: Consistency-Aware Policy Optimization",
    use="Most groups are all right or all wrong and would teach nothing.",
    checked=("golden", "laws", "run"),
    catalogue=("copo",),
)


def answer_entropy(batch: Batch) -> Tensor:
    """H = -sum over answers of f log2 f, f their shares of the group."""
    return group_ops.entropy(batch.reward_terms["cluster"], batch.group) / log(2)


def between_group_advantage(x: Tensor, batch: Batch) -> Tensor:
    """(R - mean R) / std R over groups, R = mean(x) (1 - (1 - 1/G) H / log2 G)."""
    G = group_ops.count(x, batch.group)
    R = group_ops.mean(x, batch.group) * (
        1 - (1 - 1 / G) * answer_entropy(batch) / G.clamp(min=2).log2()
    )
    P = (1 / G).sum()
    centred = R - (R / G).sum() / P
    return centred / (((centred**2 / G).sum() / (P - 1).clamp(min=1)).sqrt() + 1e-6)


@component
class BlendedClip(Loss):
    """w clip(A) + (1 - w) clip(A of the group), w = sigmoid(k (H - b)), 0 where rewards agree."""

    surrogate: Clip
    entropy_slope: float
    entropy_midpoint: float
    required_reward_terms = ("cluster",)
    needs_whole_batch = True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        differ = group_ops.var(batch.reward, batch.group) > 1e-12
        w = broadcast_to_tokens(
            torch.sigmoid(self.entropy_slope * (answer_entropy(batch) - self.entropy_midpoint))
            * differ,
            batch,
        ).to(pi.logp)
        alone, among = (
            self.surrogate(pi, batch),
            self.surrogate(pi, batch.with_advantage(between_group_advantage)),
        )
        return w * alone + (1 - w) * among


def copo(
    group_size: int = 8,
    clip_eps: float = 0.2,
    entropy_slope: float = 1.0,
    entropy_midpoint: float = 0.5,
) -> Method:
    """Two clipped losses, of GRPO's A and of A between groups; equal answers share a `cluster`."""
    # The authors' code, with groups that do not differ left to the second loss. Group: our choice.
    return Method(
        sampler=GroupSampler(group_size),
        loss=BlendedClip(Clip(clip_eps, clip_eps), entropy_slope, entropy_midpoint),
    )

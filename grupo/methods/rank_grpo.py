"""Rank-GRPO: a list is credited item by item. Zhu et al., 2025, arXiv:2510.20150."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.ratios import turn
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Rank-GRPO: Training LLM-based Conversational Recommender Systems with Reinforcement "
    "Learning",
    use="The answer is a ranked list, and each of its items is right or wrong on its own.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("rank-grpo",),
)


def own_hits(hits: Tensor) -> Tensor:
    """R_k = h_k (`exp_inf`)."""
    return hits


def discounted_future_hits(hits: Tensor) -> Tensor:
    """R_k = sum over ranks j >= k, counted from 1, of h_j / log2(j + 1) (`log_decay`)."""
    return (hits / (torch.arange(hits.shape[1]) + 2).log2()).flip(1).cumsum(1).flip(1)


@component
class RankAdvantage:
    """(R_ik - mean_i R_ik) / (std_i R_ik + eps) for the actions of item k: marked 1 if a hit."""

    reward_fn: Callable[[Tensor], Tensor] = own_hits  # of the hits (R, K)

    required_signals = frozenset({"step/hit"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        K = int(batch.turn.max()) + 1
        item = batch.rollout[:, None] * K + batch.turn
        hit = batch.signals["step/hit"].to(x).masked_fill(~batch.mask, 0.0)
        hits = x.new_zeros(len(x) * K).scatter_reduce(0, item.flatten(), hit.flatten(), "amax")
        R = self.reward_fn(hits.reshape(-1, K)).flatten()  # an item that a list lacks is no hit
        rank = (batch.group[:, None] * K + torch.arange(K)).flatten()
        return ((R - group_ops.mean(R, rank)) / (group_ops.std(R, rank) + 1e-4))[item]


def rank_grpo(
    group_size: int = 8, clip_low: float = 0.06, clip_high: float = 0.08, kl_coef: float = 1e-3
) -> Method:
    """A = (R - mean) / std per rank over the group; an item's ratio is its geometric mean."""
    # Authors' code, but for its 0.1 for the list's length. Or .replace(advantage=ByRank(from_here_on)).
    loss = Clip(clip_low, clip_high, turn) + kl_coef * KL()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=RankAdvantage(),
        loss=loss,
        aggregation=token_mean,
    )

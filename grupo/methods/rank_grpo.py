"""Rank-GRPO: a ranked list is credited item by item. Zhu et al., 2025, arXiv:2510.20150."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.ratios import turn
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def rank_grpo(
    group_size: PositiveInt = 8,
    clip_low: NonNegative = 0.06,
    clip_high: NonNegative = 0.08,
    kl_coef: NonNegative = 1e-3,
) -> Method:
    """A = (R - mean) / std per rank over the group; an item's ratio is its geometric mean.

    Args:
        group_size: rollouts per task (authors' code: 8).
        clip_low: ratios are clipped below at 1 - clip_low (authors' code: 0.06).
        clip_high: ratios are clipped above at 1 + clip_high (authors' code: 0.08).
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.001).
    """
    # The authors' other reward: .replace(advantage=RankAdvantage(discounted_future_hits)).
    loss = Clip(clip_low, clip_high, turn) + kl_coef * KL()
    return Method(
        sampler=GroupSampler(group_size),
        advantage=RankAdvantage(),
        loss=loss,
        aggregation=token_mean,
    )


def own_hits(hits: Tensor) -> Tensor:
    """R_k = h_k (`exp_inf` in the authors' code)."""
    return hits


def discounted_future_hits(hits: Tensor) -> Tensor:
    """R_k = sum over ranks j >= k, counted from 1, of h_j / log2(j + 1) (`log_decay`)."""
    return (hits / (torch.arange(hits.shape[1]) + 2).log2()).flip(1).cumsum(1).flip(1)


@component
class RankAdvantage:
    """(R_ik - mean_i R_ik) / (std_i R_ik + eps) for the tokens of item k; signal "step/hit" is 1 on
    a hit.

    Args:
        reward_fn: maps the hits (R, K) to rewards (R, K).
    """

    reward_fn: Callable[[Tensor], Tensor] = own_hits

    requires = Requires(signals=("step/hit",))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        K = int(batch.turn.max()) + 1 if batch.turn.numel() else 0
        item = batch.rollout[:, None] * K + batch.turn
        hit = batch.signals["step/hit"].to(x).masked_fill(~batch.mask, 0.0)
        hits = x.new_zeros(len(x) * K).scatter_reduce(0, item.flatten(), hit.flatten(), "amax")
        R = self.reward_fn(hits.reshape(len(x), K)).flatten()  # missing items are no hits
        rank = (batch.group[:, None] * K + torch.arange(K)).flatten()
        return ((R - group_ops.mean(R, rank)) / (group_ops.std(R, rank) + 1e-4))[item]


PAPER = Paper(
    title="Rank-GRPO: Training LLM-based Conversational Recommender Systems with Reinforcement "
    "Learning",
    use="The answer is a ranked list, and each of its items is correct or not on its own.",
    tags=("process-reward", "importance-sampling"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("rank-grpo",),
    source=Source(
        "code",
        (
            "yaochenzhu/Rank-GRPO, train_rank_grpo.py, libs/trl/rank_grpo_trainer.py and "
            "scripts/run_rl.sh of commit 66c16a0"
        ),
    ),
    plan="run_rl.sh: mu 1, one optimizer step per generation: one update per step",
    missing=(
        "The SFT stage before.",
        (
            "The advantage of -0.1 at the end token of a list that is too short and at each token "
            "after its last item, and that of 0.1 at the end token of a list of the right length. "
            "Here an end token has the advantage of its item."
        ),
    ),
    deviations=(
        "The mean is over the tokens of the batch, in the release over those of a micro-batch"
        " (loss_type bnpo, the default of its TRL).",
    ),
    audit=(
        "constants and number of updates compared with train_rank_grpo.py and run_rl.sh; the "
        "arithmetic with a reference implementation in the test"
    ),
)

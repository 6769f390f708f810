"""MARS: turn-level advantages with a mean per seat. Yuan et al., 2025, arXiv:2510.15414."""

import torch
from torch import Tensor

from grupo.algo.advantages import Whiten, chain
from grupo.algo.advantages.token_table import discounted_sum
from grupo.algo.advantages.turn_table import (
    PerTurn,
    center_by_label,
    combine_labels,
    sum_per_turn,
    turn_mask,
    turns_to_tokens,
)
from grupo.algo.aggregation import rollout_mean
from grupo.algo.losses import KL, Clip
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import SelfPlay


def mars_selfplay(
    games: PositiveInt = 1, clip_eps: NonNegative = 0.2, kl_coef: NonNegative = 0.2
) -> Method:
    """A_k = whiten(S_k - c), S_k = sum over k' >= k of (r_k' - m); PPO's clip and the KL term k3.

    r_k is the reward of turn k. A seat is a player's place in the game. m is the mean reward of the
    turns of a seat, and c is the mean of the distinct values of S of this seat. Both means are over
    the whole batch, and whitening is over all tokens. The loss is the mean over rollouts of the
    mean over tokens.

    A step has 48 updates, each on a minibatch of its groups.

    Args:
        games: games per task (authors' configuration: 1).
        clip_eps: ratios are clipped to [1 - clip_eps, 1 + clip_eps].
        kl_coef: weight of the KL divergence from the reference policy (authors' code: 0.2).
    """
    # ratios are capped at 1 + 2 clip_eps where A < 0
    return Method(
        sampler=SelfPlay(games),
        advantage=chain(SeatAdvantage(), Whiten()),
        loss=Clip(clip_eps, clip_eps, CappedRatio(1 + 2 * clip_eps)) + kl_coef * KL(),
        aggregation=rollout_mean,
        updates=Updates(minibatches=48),
    )


@component
class SeatAdvantage:
    """A_k = S_k - c, S_k = sum over k' >= k of (r_k' - m).

    r_k is the reward of turn k, and m is the mean of r over all turns of the same seat, which the
    reward term "seat" numbers. c is the mean of the distinct values of S of this seat.
    """

    requires = Requires(signals=("step/reward",), reward_terms=("seat",), whole_batch=True)

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        r = sum_per_turn(batch.signals["step/reward"], batch)
        exists = turn_mask(batch)
        seat = combine_labels(batch.reward_terms["seat"][:, None].expand_as(r))
        A = discounted_sum(center_by_label(r, seat, exists), 1.0)
        return turns_to_tokens(A - _mean_of_distinct(A, seat, exists), batch)


def _mean_of_distinct(x: PerTurn, label: Tensor, where: Tensor) -> PerTurn:
    """The mean of the distinct values of x with the same label."""
    pairs = torch.stack([label[where].to(x), x[where].round(decimals=9)], 1)
    distinct_label, value = pairs.unique(dim=0).T
    index = distinct_label.long()
    means = x.new_zeros(x.numel()).index_put((index,), group_ops.mean(value, index))
    return means[label]


PAPER = Paper(
    title="MARS: Reinforcing Multi-Agent Reasoning of LLMs through Self-Play in Strategic Games",
    use="One policy plays every seat of a game, and some seats win more often than others.",
    tags=("self-play", "agents", "process-reward"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("mars-selfplay",),
    source=Source(
        "code",
        "thu-nics/MARS: roll/utils/functionals.py, roll/pipeline/base_worker.py, "
        "examples/multi_games/agentic_val_multi_games_selfplay.yaml",
    ),
    plan=(
        "agentic_val_multi_games_selfplay.yaml: 384 rollouts per step; 2 x 2 per rank on 2 "
        "data-parallel ranks (8 devices, tensor parallel 4), 48 updates"
    ),
    missing=(
        "In the release, an answer ends the game if it has not exactly one legal action, has 4,096 "
        "tokens, or is near the limit of the sequence. Its player gets the reward of a loss and "
        "-10, the other player 0.",
        "The release generates up to 768 rollouts and trains on the first 384 that finish, among "
        "which short games are more frequent.",
        "The release trains the forced `<think>` and line break at the beginning of every turn.",
        "A mean for each kind of game: the batch here is of one kind, the release's of several.",
        "The format reward of 0.05 for each valid turn, and the penalty of long turns.",
        "The clamp of k3 to +-10.",
        "The temperature of 0.6, top-p of 0.99 and top-k of 100 of the configuration.",
    ),
    deviations=(
        (
            "Distinct values are taken over turns. The code takes them over all positions, "
            "including the 0 after the end of a rollout."
        ),
        (
            "The configuration leaves the aggregation seq-mean-token-sum, the pipeline's default. "
            "Despite its name, agg_loss of the release takes the mean over a rollout's tokens in "
            "it, and so does the method."
        ),
        ("A minibatch has the rollouts of whole groups, in the release 8 rollouts."),
        (
            "whiten_rewards of the configuration is left out. It divides centred rewards by one "
            "number, and the whitening of advantages removes this factor."
        ),
    ),
    audit=(
        "means per player, cap, KL, whitening, aggregation (agg_loss and masked_mean of "
        "functionals.py) and plan compared with the code and the configuration"
    ),
)

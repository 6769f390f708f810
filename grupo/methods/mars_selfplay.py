"""MARS: turn by turn, and every seat by its own mean. Yuan et al., 2025, arXiv:2510.15414."""

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
from grupo.algo.losses import KL, Clip
from grupo.algo.ratios import CappedRatio
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import SelfPlay

PAPER = Paper(
    title="MARS: Reinforcing Multi-Agent Reasoning of LLMs through Self-Play in Strategic Games",
    use="One policy plays every seat of a game, and some seats win more often than others.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("mars-selfplay",),
)


@component
class SeatAdvantage:
    """A_k = sum over k' >= k of (r_k' - m), then less the mean of the seat's distinct A.

    r_k is what turn k was paid, m the mean of r over all turns of its seat, the part `seat`.
    """

    required_reward_terms = ("seat",)
    required_signals = frozenset({"step/reward"})
    needs_whole_batch = True

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        r, there = sum_per_turn(batch.signals["step/reward"], batch), turn_mask(batch)
        seat = combine_labels(batch.reward_terms["seat"][:, None].expand_as(r))
        A = discounted_sum(center_by_label(r, seat, there), 1.0)
        return turns_to_tokens(A - _mean_of_distinct(A, seat, there), batch)


def _mean_of_distinct(x: PerTurn, label: Tensor, where: Tensor) -> PerTurn:
    """The mean of the different values of x that have the same label, each counted once."""
    of, value = torch.stack([label[where].to(x), x[where].round(decimals=9)], 1).unique(dim=0).T
    means = x.new_zeros(x.numel()).index_put((of.long(),), group_ops.mean(value, of.long()))
    return means[label]


def mars_selfplay(games: int = 8, clip_eps: float = 0.2, kl_coef: float = 0.2) -> Method:
    """A = whiten(sum over k' >= k of (r_k' - m_seat) - c_seat) over all tokens; PPO's clip and k3.

    m is the mean pay of a seat's turns, c the mean of its distinct sums, both over the whole batch.
    """
    # As thu-nics/MARS: bad tokens' ratios are capped at 1 + 2 clip. Its batches are 384 games of
    # several kinds, with a mean for each, here of one kind; its distinct values are those of all
    # positions, the 0 behind the end among them, here those of turns.
    loss, credit = (
        Clip(clip_eps, clip_eps, CappedRatio(1 + 2 * clip_eps)),
        chain(SeatAdvantage(), Whiten()),
    )
    return Method(sampler=SelfPlay(games), advantage=credit, loss=loss + kl_coef * KL())

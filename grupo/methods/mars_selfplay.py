"""MARS: turn by turn, and every seat by its own mean. Yuan et al., 2025, arXiv:2510.15414."""

import torch
from torch import Tensor

from grupo.algo.advantages import Whiten, chain
from grupo.algo.advantages.token_table import discounted
from grupo.algo.advantages.turn_table import PerTurn, acted, alike, centred, of_turns, to_actions
from grupo.algo.losses import KL, Clip
from grupo.algo.ratios import Capped
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import SelfPlay

PAPER = Paper(
    title="MARS: Reinforcing Multi-Agent Reasoning of LLMs through Self-Play in Strategic Games",
    use="One policy plays every seat of a game, and some seats win more often than others.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("mars-selfplay",),
)


@piece
class BySeat:
    """A_k = sum over k' >= k of (r_k' - m), then less the mean of the seat's distinct A.

    r_k is what turn k was paid, m the mean of r over all turns of its seat, the part `seat`.
    """

    reads_parts = ("seat",)
    needs = frozenset({"mark/reward"})
    reads_whole_batch = True

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        r, there = of_turns(batch.seen["mark/reward"], batch), acted(batch)
        seat = alike(batch.parts["seat"][:, None].expand_as(r))
        A = discounted(centred(r, seat, there), 1.0)
        return to_actions(A - _mean_of_distinct(A, seat, there), batch)


def _mean_of_distinct(x: PerTurn, label: Tensor, where: Tensor) -> PerTurn:
    """The mean of the different values of x that have the same label, each counted once."""
    of, value = torch.stack([label[where].to(x), x[where].round(decimals=9)], 1).unique(dim=0).T
    means = x.new_zeros(x.numel()).index_put((of.long(),), group_ops.mean(value, of.long()))
    return means[label]


def mars_selfplay(games: int = 8, clip: float = 0.2, kl: float = 0.2) -> Method:
    """A = whiten(sum over k' >= k of (r_k' - m_seat) - c_seat) over all tokens; PPO's clip and k3.

    m is the mean pay of a seat's turns, c the mean of its distinct sums, both over the whole batch.
    """
    # As thu-nics/MARS: bad tokens' ratios are capped at 1 + 2 clip. Its batches are 384 games of
    # several kinds, with a mean for each, here of one kind; its distinct values are those of all
    # positions, the 0 behind the end among them, here those of turns.
    loss, credit = Clip(clip, clip, Capped(1 + 2 * clip)), chain(BySeat(), Whiten())
    return Method(sample=SelfPlay(games), credit=credit, loss=loss + kl * KL())

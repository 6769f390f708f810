"""IGPO: turns earn what they add to belief in the answer. Wang et al., 2025, arXiv:2510.14967."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import discounted, later
from grupo.algo.advantages.turn_table import PerTurn, acted, states, to_actions
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent, WithBelief

PAPER = Paper(
    title="Information Gain-based Policy Optimization: A Simple and Effective Approach for"
    " Multi-Turn LLM Agents",
    use="Agents that look things up for many turns, where true answers are at hand as texts.",
    checked=("golden", "laws", "run"),
    catalogue=("igpo",),
)


def gains(x: Tensor, batch: Batch) -> PerTurn:
    """b_(t+1) - b_t before a rollout's last turn, and x in it; 0 where there is no turn."""
    b, there = states(batch, "mark/belief").clamp(min=0), acted(batch)
    before = later(discounted(there.double(), 1.0)) > 0
    return torch.where(before, later(b) - b, x[:, None].to(b)) * there


def plain(g: Tensor, group: Tensor) -> Tensor:
    """The gains as they are."""
    return g


@piece
class InformationGain:
    """D_t = sum over k >= t of gamma^(k - t) A_k, A what `scaled` makes of the group's `gains`."""

    gamma: float
    scaled: Callable[[Tensor, Tensor], Tensor] = group_ops.zscore
    needs = frozenset({"mark/belief"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        g, there = gains(x, batch), acted(batch)
        A = self.scaled(g[there], batch.group[:, None].expand_as(there)[there])
        return to_actions(discounted(g.masked_scatter(there, A), self.gamma), batch)


def igpo(group: int = 16, gamma: float = 1.0, kl: float = 0.001, lead: str = "<answer>") -> Method:
    """A = sum of z(g) over its and later turns; g = rise of exp(mean log pi(answer)), then r."""
    # The paper's form. The released code (GuoqingWang1/IGPO) takes the group's mean off the sums,
    # place by place: chain(InformationGain(gamma, plain), CenterTurns()), turn by turn.
    sample, loss = WithBelief(Independent(group), lead), Clip(0.2, 0.2) + kl * KL()
    return Method(sample=sample, credit=InformationGain(gamma), loss=loss)

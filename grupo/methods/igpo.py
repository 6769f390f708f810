"""IGPO: turns earn what they add to belief in the answer. Wang et al., 2025, arXiv:2510.14967."""

from collections.abc import Callable

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import discounted_sum, shift_left
from grupo.algo.advantages.turn_table import PerTurn, turn_mask, turn_states, turns_to_tokens
from grupo.algo.losses import KL, Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithAnswerBelief

PAPER = Paper(
    title="Information Gain-based Policy Optimization: A Simple and Effective Approach for"
    " Multi-Turn LLM Agents",
    use="Agents that look things up for many turns, where true answers are at hand as texts.",
    checked=("golden", "laws", "run"),
    catalogue=("igpo",),
)


def information_gains(x: Tensor, batch: Batch) -> PerTurn:
    """b_(t+1) - b_t before a rollout's last turn, and x in it; 0 where there is no turn."""
    b, there = turn_states(batch, "step/belief").clamp(min=0), turn_mask(batch)
    before = shift_left(discounted_sum(there.double(), 1.0)) > 0
    return torch.where(before, shift_left(b) - b, x[:, None].to(b)) * there


def unscaled(g: Tensor, group: Tensor) -> Tensor:
    """The gains as they are."""
    return g


@component
class InformationGainReturn:
    """D_t = sum over k >= t of gamma^(k - t) A_k, A what `scale_fn` makes of the group's `information_gains`."""

    gamma: float
    scale_fn: Callable[[Tensor, Tensor], Tensor] = group_ops.zscore
    required_signals = frozenset({"step/belief"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        g, there = information_gains(x, batch), turn_mask(batch)
        A = self.scale_fn(g[there], batch.group[:, None].expand_as(there)[there])
        return turns_to_tokens(discounted_sum(g.masked_scatter(there, A), self.gamma), batch)


def igpo(
    group_size: int = 16,
    gamma: float = 1.0,
    kl_coef: float = 0.001,
    answer_prefix: str = "<answer>",
) -> Method:
    """A = sum of z(g) over its and later turns; g = rise of exp(mean log pi(answer)), then r."""
    # The paper's form. The released code (GuoqingWang1/IGPO) takes the group's mean off the sums,
    # place by place: chain(InformationGain(gamma, plain), CenterTurns()), turn by turn.
    sample, loss = (
        WithAnswerBelief(GroupSampler(group_size), answer_prefix),
        Clip(0.2, 0.2) + kl_coef * KL(),
    )
    return Method(sampler=sample, advantage=InformationGainReturn(gamma), loss=loss)

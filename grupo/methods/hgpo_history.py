"""HGPO: steps are compared by state and by ever longer past. He et al., 2026, arXiv:2602.22817."""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import shift_right
from grupo.algo.advantages.turn_table import (
    center_by_label,
    combine_labels,
    turn_mask,
    turn_returns,
    turn_states,
    turns_to_tokens,
)
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import KL, Clip
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Hierarchy-of-Groups Policy Optimization for Long-Horizon Agentic Tasks",
    use="Agents whose prompt holds some past turns: one state can be many situations.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("hgpo",),
)
TINY = 1e-9  # an advantage this small is 0 but for rounding


@component
class HistoryGroupedAdvantage:
    """Mean over k = 1..K+1, weighted by (k + 1)^alpha, of R_t - mean of R where k states agree."""

    history_turns: int
    gamma: float
    weight_exponent: float

    @property
    def required_signals(self) -> frozenset[str]:
        """What each step was paid, and the state it was taken in."""
        return frozenset({"step/reward", "step/state"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        R, state, there = turn_returns(batch, self.gamma), turn_states(batch), turn_mask(batch)
        past, A, total = batch.group[:, None].expand_as(R), torch.zeros_like(R), torch.zeros_like(R)
        for k in range(1, self.history_turns + 2):
            past = combine_labels(past, shift_right(state, k - 1))
            there = there & (shift_right(turn_mask(batch).double(), k - 1) > 0)
            level = center_by_label(R, past, there)
            w = (k + 1) ** self.weight_exponent * (level.abs() > TINY)
            A, total = A + w * level, total + w
        return turns_to_tokens(A / total.clamp(min=TINY), batch)


def hgpo_history(
    group_size: int = 8,
    history_turns: int = 2,
    gamma: float = 0.95,
    weight_exponent: float = 1.0,
    kl_coef: float = 0.01,
) -> Method:
    """A = sum_k w_k A_k, A_k against steps whose last k states are the same, w_k as (k + 1)^alpha.

    `history_turns` past turns stand in the prompt. Levels that say nothing, A_k = 0, carry no weight.
    """
    # The mode without a standard deviation (mean_norm) of recipe/hgpo of langfengQ/verl-agent; the
    # outcome is paid at an action like every reward: there is no term of the whole rollout.
    credit, loss = (
        HistoryGroupedAdvantage(history_turns, gamma, weight_exponent),
        Clip(0.2, 0.2) + kl_coef * KL(),
    )
    return Method(
        sampler=GroupSampler(group_size), advantage=credit, loss=loss, aggregation=token_mean
    )

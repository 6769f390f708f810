"""HGPO: steps grouped by state and history length. He et al., 2026, arXiv:2602.22817."""

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
from grupo.core.numbers import Fraction, NonNegative, NonNegativeInt, NumberOrSchedule, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def hgpo_history(
    group_size: PositiveInt = 8,
    history_turns: PositiveInt = 2,
    gamma: Fraction = 0.95,
    weight_exponent: NonNegative = 1.0,
    kl_coef: NonNegative = 0.01,
) -> Method:
    """A = sum_k w_k A_k, A_k relative to steps whose last k states agree, w_k ~ (k +
    1)^weight_exponent.

    Levels with A_k = 0 have no weight. The prompt shows history_turns past turns.

    Args:
        group_size: rollouts per task (authors' scripts: 8).
        history_turns: past turns that the prompt shows.
        gamma: discount per turn.
        weight_exponent: exponent of the weights (alpha in the paper).
        kl_coef: weight of the KL divergence from the reference policy.
    """
    credit = HistoryGroupedAdvantage(history_turns, gamma, weight_exponent)
    loss = Clip(0.2, 0.2) + kl_coef * KL()
    return Method(
        sampler=GroupSampler(group_size), advantage=credit, loss=loss, aggregation=token_mean
    )


TINY = 1e-9  # an advantage this small is 0 but for rounding


@component
class HistoryGroupedAdvantage:
    """Weighted mean over k = 1..K+1 of R_t - mean of R over steps whose last k states agree.

    K is history_turns; level k has weight (k + 1)^weight_exponent, 0 where its advantage is 0.

    Args:
        history_turns: past turns that the prompt shows.
        gamma: discount per turn.
        weight_exponent: exponent of the weights (alpha in the paper).
    """

    history_turns: NonNegativeInt
    gamma: Fraction
    weight_exponent: NumberOrSchedule

    # reward and state label of each step
    requires = Requires(signals=("step/reward", "step/state"))

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        R = turn_returns(batch, self.gamma)
        state = turn_states(batch)
        exists = turn_mask(batch)
        label = batch.group[:, None].expand_as(R)
        A = torch.zeros_like(R)
        total = torch.zeros_like(R)
        for k in range(1, self.history_turns + 2):
            label = combine_labels(label, shift_right(state, k - 1))
            exists = exists & (shift_right(turn_mask(batch).double(), k - 1) > 0)
            level = center_by_label(R, label, exists)
            w = (k + 1) ** self.weight_exponent * (level.abs() > TINY)
            A = A + w * level
            total = total + w
        return turns_to_tokens(A / total.clamp(min=TINY), batch)


PAPER = Paper(
    title="Hierarchy-of-Groups Policy Optimization for Long-Horizon Agentic Tasks",
    use="Agents whose prompt holds some past turns, so that one state can be many situations.",
    tags=("agents", "process-reward", "advantage"),
    checked=("golden", "properties", "reference", "run"),
    catalogue=("hgpo",),
    source=Source(
        "code",
        "langfengQ/verl-agent: recipe/hgpo/core_hgpo.py and its run scripts for ALFWorld and "
        "WebShop, in the copies zzj1111/alfworldauto and OliverLeeXZ/SERL",
    ),
    plan=(
        "the scripts' minibatches are 256 steps (ALFWorld) or 64 (WebShop) of 128 rollouts with up "
        "to 50 or 30 turns, so the number of updates varies, up to 25 or 60; one update per step"
    ),
    missing=(
        "Levels scaled by the population's standard deviation, as in the scripts for ALFWorld.",
        "The episode's advantage as level 0 (base_group, off in the scripts).",
        "The penalty of 0.1 on invalid actions is left to the environment.",
        "The dual clip of 3 and the entropy bonus of 0.001 of the framework's ppo_trainer.yaml.",
    ),
    deviations=(
        "Levels with A_k = 0 have no weight, as in the copies named above: another copy, "
        "gitrxh/ADRS-arxiv, counts them.",
        "The mean is over all tokens of the step, in the release of a micro-batch.",
    ),
    audit=(
        "levels, weights and returns compared with hgpo_advantage_estimate; centring without "
        "scale with the scripts for WebShop, gamma, alpha, history and KL weight with both"
    ),
    shown=("docs/claims.md#turns",),
)

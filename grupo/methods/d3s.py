"""D3S: few rollouts and tokens, later all of them. Wang et al., 2025, arXiv:2509.22115."""

import torch

from grupo.algo.advantages.token_table import scatter_tokens, sum_per_rollout
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.core.schedules import Linear, as_float
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="Learning More with Less: A Dynamic Dual-Level Down-Sampling Framework for Efficient "
    "Policy Optimization",
    use="Groups are large, and most of their rollouts and tokens teach nothing.",
    checked=("golden", "laws", "run"),
    catalogue=("d3s",),
)


@component
class TopAdvantageTokens:
    """The mean over the share `token_fraction` of greatest |A| H, in `rollout_fraction` of greatest Var(A)."""

    rollout_fraction: float
    token_fraction: float
    required_signals = frozenset({"entropy"})

    def __call__(self, batch: Batch) -> PerAction:
        here, acted = batch.lengths > 0, batch.mask  # a minibatch lacks some rollouts
        A = (sum_per_rollout(batch.advantage.to(batch.reward), batch) / batch.lengths)[here]
        n, whole = max(1, round(self.rollout_fraction * len(A))), torch.zeros_like(A).long()
        kept = batch.reward.masked_scatter(here, group_ops.max_variance_share(A, n, whole))
        held = kept[batch.rollout, None].expand_as(acted)[acted]
        score = (batch.advantage.abs() * batch.signals["entropy"])[acted].to(held)
        most, whole = self.token_fraction * held.sum(), torch.zeros_like(score).long()
        w = held * group_ops.lowest_share(-score, most, whole, weight=held)
        return scatter_tokens(w / w.sum().clamp(min=1e-9), batch).to(batch.old_logp)


def d3s(
    group_size: int = 16, rollout_fraction: float = 0.25, token_fraction: float = 0.2
) -> Method:
    """GRPO on the rollouts of greatest Var(A), and of these on the tokens of greatest |A| H.

    Both shares grow in a straight line to all at the end; A is that of the whole group.
    """
    # Formulas from two notes on the paper; both shares, their ends and the group are our choice,
    # as is the mean over the tokens kept. "Whole batch" is the minibatch. H is that of sampling.
    shares = (Linear(rollout_fraction, 1.0), Linear(token_fraction, 1.0))
    weigh = TopAdvantageTokens(*map(as_float, shares))
    return Method(sampler=GroupSampler(group_size), aggregation=weigh)

"""D3S: few rollouts and tokens first, later all of them. Wang et al., 2025, arXiv:2509.22115."""

import torch

from grupo.algo.advantages.token_table import scatter_tokens, sum_per_rollout
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import PositiveFraction, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def d3s(
    group_size: PositiveInt = 16,
    rollout_fraction: PositiveFraction = 0.25,
    token_fraction: PositiveFraction = 0.2,
) -> Method:
    """GRPO on the rollouts of largest Var(A), and of these on the tokens of largest |A| H.

    Both fractions grow linearly to 1 at the end of the run; A is that of the whole group, H the
    entropy when the batch was sampled.

    Args:
        group_size: rollouts per task (our choice).
        rollout_fraction: fraction of rollouts at the first step (our choice).
        token_fraction: fraction of tokens at the first step (our choice).
    """
    schedules = (Linear(rollout_fraction, 1.0), Linear(token_fraction, 1.0))
    aggregation = TopAdvantageTokens(*schedules)
    return Method(sampler=GroupSampler(group_size), aggregation=aggregation)


@component
class TopAdvantageTokens:
    """Aggregation: mean over the tokens of largest |A| H in the rollouts of largest Var(A), (N, T).

    Args:
        rollout_fraction: fraction of the minibatch's rollouts that are kept.
        token_fraction: fraction of their tokens that are kept.
    """

    rollout_fraction: PositiveFraction
    token_fraction: PositiveFraction

    requires = Requires(signals=("entropy",))

    def __call__(self, batch: Batch) -> PerAction:
        # a minibatch lacks some rollouts
        mask = batch.mask
        present = batch.lengths > 0
        A = sum_per_rollout(batch.advantage.to(batch.reward), batch) / batch.lengths
        A = A[present]
        n = max(1, round(self.rollout_fraction * len(A)))
        one_group = torch.zeros_like(A).long()
        kept = group_ops.max_variance_share(A, n, one_group)
        kept = batch.reward.masked_scatter(present, kept)
        weight = kept[batch.rollout, None].expand_as(mask)[mask]
        score = (batch.advantage.abs() * batch.signals["entropy"])[mask].to(weight)
        num_tokens = self.token_fraction * weight.sum()
        one_group = torch.zeros_like(score).long()
        w = weight * group_ops.lowest_share(-score, num_tokens, one_group, weight=weight)
        return scatter_tokens(w / w.sum().clamp(min=1e-9), batch).to(batch.old_logp)


PAPER = Paper(
    title="Learning More with Less: A Dynamic Dual-Level Down-Sampling Framework for Efficient "
    "Policy Optimization",
    use="Groups are large, and most of their rollouts and tokens contribute little.",
    tags=("filtering", "entropy", "curriculum"),
    checked=("golden", "properties", "run"),
    catalogue=("d3s",),
    source=Source(
        "third_party",
        "two public notes on the paper, one of them zhaoyang97/Paper-Notes (ICLR 2026)",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "The variant that selects within each group (D3S-I).",
        "D3S with GSPO's sequence ratios.",
    ),
    deviations=(
        "Start and end of both schedules and the mean over kept tokens are our choice: the paper "
        "has parameters for both ends.",
        "The whole batch of the paper is the minibatch here.",
        (
            "A clip of 0.2 on both sides and no KL divergence are our choice: no source that was "
            "opened gives the paper's."
        ),
    ),
    audit=(
        "selection of rollouts and tokens and the linear schedule compared with a public note; the "
        "constants could not be found"
    ),
)

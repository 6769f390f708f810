"""HiLL: who hints is trained beside who needs hints. Xia et al., 2026, arXiv:2604.00698."""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import sum_per_rollout
from grupo.algo.advantages.turn_table import combine_labels
from grupo.algo.aggregation import PerClassMean
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithSelfHint

PAPER = Paper(
    title="Learning to Hint for Reinforcement Learning",
    use="Many tasks are never solved; there is a solution of each to be shown, and no hint.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("hill",),
)


@component
class HintRoleAdvantage:
    """z-scores: of hints by their worth R, of attempts among those that saw the best, or none."""

    transfer_temperature: float
    required_reward_terms = ("is_hint", "hint_index", "hint_rejected")
    required_signals = frozenset({"logp@unhinted"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R, hint, says = (
            self.hint_value(batch),
            batch.reward_terms["hint_index"],
            batch.reward_terms["is_hint"] > 0.5,
        )
        circle = combine_labels(batch.group, says, hint.masked_fill(says, 0.0))
        best = (R > 0) & (group_ops.max(R, batch.group) == R)
        first = hint == group_ops.min(hint.masked_fill(~best, torch.inf), batch.group)
        r = torch.where(says, R, x)
        A = (r - group_ops.mean(r, circle)) / (group_ops.std(r, circle) + 1e-6)
        return A * (says | (hint == 0) | (best & first))

    def hint_value(self, batch: Batch) -> PerRollout:
        """R of the hint that a rollout is, or has seen."""
        says, of = (
            batch.reward_terms["is_hint"] > 0.5,
            combine_labels(batch.group, batch.reward_terms["hint_index"]),
        )
        tried, right = (
            ~says & (batch.reward_terms["hint_index"] > 0),
            (batch.reward > 0.5).to(batch.reward),
        )
        d = sum_per_rollout(
            batch.signals["logp@unhinted"] - batch.old_logp, batch
        ) / batch.lengths.clamp(min=1)
        D = group_ops.mean_where(tried & (right > 0), d.to(right), of).clamp(max=0.0)
        n, p = group_ops.sum(tried.to(right), of), group_ops.mean_where(tried, right, of)
        R = (1 - p**n - (1 - p) ** n).clamp(min=0.0) * (D / self.transfer_temperature).exp()
        return torch.where(says & (batch.reward_terms["hint_rejected"] > 0.5), -0.2, R)


def hill(group_size: int = 8, num_hints: int = 4, transfer_temperature: float = 0.3) -> Method:
    """R = (1 - p^n - (1 - p)^n) exp(min(D, 0) / T), p of n right behind a hint; refused: -0.2.

    D is the mean over the right of log pi(o | q) - log pi(o | q, hint), per token.
    """
    # Its two models are `MultiPolicy` policies, here clipped to one norm; its mean counts idle tokens.
    sample, loss, weigh = (
        WithSelfHint(GroupSampler(group_size), num_hints),
        Clip(0.2, 0.28),
        PerClassMean("is_hint"),
    )
    return Method(
        sampler=sample,
        advantage=HintRoleAdvantage(transfer_temperature),
        loss=loss,
        aggregation=weigh,
    )

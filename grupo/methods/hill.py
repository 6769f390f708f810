"""HiLL: who hints is trained beside who needs hints. Xia et al., 2026, arXiv:2604.00698."""

import torch
from torch import Tensor

from grupo.algo.advantages.token_table import total
from grupo.algo.advantages.turn_table import alike
from grupo.algo.aggregation import EachKind
from grupo.algo.losses import Clip
from grupo.core import group_ops
from grupo.core.batch import Batch, PerRollout
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Coached, Independent

PAPER = Paper(
    title="Learning to Hint for Reinforcement Learning",
    use="Many tasks are never solved; there is a solution of each to be shown, and no hint.",
    checked=("golden", "laws", "reference", "run"),
    catalogue=("hill",),
)


@piece
class ByRole:
    """z-scores: of hints by their worth R, of attempts among those that saw the best, or none."""

    temperature: float
    reads_parts = ("role", "hint", "refused")
    needs = frozenset({"logp@unhinted"})

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        R, hint, says = self.worth(batch), batch.parts["hint"], batch.parts["role"] > 0.5
        circle = alike(batch.group, says, hint.masked_fill(says, 0.0))
        best = (R > 0) & (group_ops.max(R, batch.group) == R)
        first = hint == group_ops.min(hint.masked_fill(~best, torch.inf), batch.group)
        r = torch.where(says, R, x)
        A = (r - group_ops.mean(r, circle)) / (group_ops.std(r, circle) + 1e-6)
        return A * (says | (hint == 0) | (best & first))

    def worth(self, batch: Batch) -> PerRollout:
        """R of the hint that a rollout is, or has seen."""
        says, of = batch.parts["role"] > 0.5, alike(batch.group, batch.parts["hint"])
        tried, right = ~says & (batch.parts["hint"] > 0), (batch.reward > 0.5).to(batch.reward)
        d = total(batch.seen["logp@unhinted"] - batch.old_logp, batch) / batch.lengths.clamp(min=1)
        D = group_ops.mean_where(tried & (right > 0), d.to(right), of).clamp(max=0.0)
        n, p = group_ops.sum(tried.to(right), of), group_ops.mean_where(tried, right, of)
        R = (1 - p**n - (1 - p) ** n).clamp(min=0.0) * (D / self.temperature).exp()
        return torch.where(says & (batch.parts["refused"] > 0.5), -0.2, R)


def hill(group: int = 8, hints: int = 4, temperature: float = 0.3) -> Method:
    """R = (1 - p^n - (1 - p)^n) exp(min(D, 0) / T), p of n right behind a hint; refused: -0.2.

    D is the mean over the right of log pi(o | q) - log pi(o | q, hint), per token.
    """
    # Its two models are `Several` policies, here clipped to one norm; its mean counts idle tokens.
    sample, loss, weigh = Coached(Independent(group), hints), Clip(0.2, 0.28), EachKind("role")
    return Method(sample=sample, credit=ByRole(temperature), loss=loss, weigh=weigh)

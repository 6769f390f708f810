"""D3S: few rollouts and tokens, later all of them. Wang et al., 2025, arXiv:2509.22115."""

import torch

from grupo.algo.advantages.token_table import placed, total
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.core.schedules import Linear, varying
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="Learning More with Less: A Dynamic Dual-Level Down-Sampling Framework for Efficient "
    "Policy Optimization",
    use="Groups are large, and most of their rollouts and tokens teach nothing.",
    checked=("golden", "laws", "run"),
    catalogue=("d3s",),
)


@piece
class TopTokens:
    """The mean over the share `tokens` of greatest |A| H, in `rollouts` of greatest Var(A)."""

    rollouts: float
    tokens: float
    needs = frozenset({"entropy"})

    def __call__(self, batch: Batch) -> PerAction:
        here, acted = batch.lengths > 0, batch.mask  # a minibatch lacks some rollouts
        A = (total(batch.advantage.to(batch.reward), batch) / batch.lengths)[here]
        n, whole = max(1, round(self.rollouts * len(A))), torch.zeros_like(A).long()
        kept = batch.reward.masked_scatter(here, group_ops.widest(A, n, whole))
        held = kept[batch.rollout, None].expand_as(acted)[acted]
        score = (batch.advantage.abs() * batch.seen["entropy"])[acted].to(held)
        most, whole = self.tokens * held.sum(), torch.zeros_like(score).long()
        w = held * group_ops.lowest(-score, most, whole, weight=held)
        return placed(w / w.sum().clamp(min=1e-9), batch).to(batch.old_logp)


def d3s(group: int = 16, rollouts: float = 0.25, tokens: float = 0.2) -> Method:
    """GRPO on the rollouts of greatest Var(A), and of these on the tokens of greatest |A| H.

    Both shares grow in a straight line to all at the end; A is that of the whole group.
    """
    # Formulas from two notes on the paper; both shares, their ends and the group are our choice,
    # as is the mean over the tokens kept. "Whole batch" is the minibatch. H is that of sampling.
    shares = (Linear(rollouts, 1.0), Linear(tokens, 1.0))
    weigh = TopTokens(*map(varying, shares))
    return Method(sample=Independent(group), weigh=weigh)

"""Credit of thoughts that are answered at several budgets, and of their answers."""

import torch
from torch import Tensor

from grupo.algo.advantages.turn_table import combine_labels
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component


@component
class BudgetRelativeAdvantage:
    """Thoughts by `anytime` of the mean of their answers at each budget, `prior` its shares.

    Answers by r - mean(r) of the `answers` at the same cut of the same trace; where that is one, of
    all traces at the same budget. Qi et al., arXiv:2505.13438.

    >>> from grupo.testing.batch_sizes import batch_of
    >>> parts = {"trace": [0.0, 0.0], "budget": [0.0, 0.0], "cut": [0.0, 0.0]}
    >>> marked = {"step/thought": [[1.0, 0.0], [0.0, 0.0]]}
    >>> batch = make_batch(group=[0, 0], length=[2, 2], reward_terms=parts, signals=marked)
    >>> BudgetRelativeAdvantage((1.0,), answers_per_cut=2)(torch.tensor([1.0, 0.0]), batch).tolist()
    [[0.0, 0.5], [-0.5, -0.5]]
    """

    prior: tuple[float, ...]
    answers_per_cut: int
    required_reward_terms = ("trace", "budget", "cut")
    required_signals = frozenset({"step/thought"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        trace, s = (
            combine_labels(batch.group, batch.reward_terms["trace"]),
            batch.reward_terms["budget"].long(),
        )
        same = (
            combine_labels(trace, batch.reward_terms["cut"])
            if self.answers_per_cut > 1
            else combine_labels(batch.group, s)
        )
        home = torch.zeros_like(trace.unique()).scatter(0, trace, batch.group)
        p = x.new_tensor(self.prior) / sum(self.prior)
        thought = anytime_advantages(_mean_per_budget(x, trace, s, len(p)), home, p)[trace, s]
        answer, thinks = x - group_ops.mean(x, same), batch.signals["step/thought"] > 0
        return torch.where(thinks, thought[batch.rollout, None], answer[batch.rollout, None])


def anytime_advantages(rewards: Tensor, group: Tensor, prior: Tensor) -> Tensor:
    """ret_s - (s V1_s + (S - s) V2_s) / S of the pieces s of thoughts that earn R (n, S).

    ret_s = sum_{j>=s} p_j R_j; V2 is its mean over the `group` (n,), and V1_s =
    sum_{k<s} 2^k R_k / sum_{k<s} 2^k times sum_{j>=s} p_j, 0 for s = 0.

    >>> R, p = torch.tensor([[0.0, 1.0], [1.0, 1.0]]), torch.tensor([0.5, 0.5])
    >>> anytime_advantages(R, torch.tensor([0, 0]), p).tolist()
    [[-0.25, 0.25], [0.25, 0.0]]
    """
    s = torch.arange(len(prior)).to(prior)
    w, S = 2.0**s, len(prior)
    ret, rest = (y.flip(-1).cumsum(-1).flip(-1) for y in (prior * rewards, prior))
    V1 = ((w * rewards).cumsum(1) - w * rewards) / (w.cumsum(0) - w).clamp(min=1) * rest
    V2 = torch.stack([group_ops.mean(y, group) for y in ret.T], 1)
    return ret - (s * V1 + (S - s) * V2) / S


def _mean_per_budget(x: Tensor, trace: Tensor, budget: Tensor, num_budgets: int) -> Tensor:
    """Of each trace and budget, 0 where nobody answered."""
    sums, counts = x.new_zeros(2, int(trace.max()) + 1 if len(trace) else 0, num_budgets)
    sums.index_put_((trace, budget), x, accumulate=True)
    counts.index_put_((trace, budget), torch.ones_like(x), accumulate=True)
    return sums / counts.clamp(min=1)

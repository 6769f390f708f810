"""Credit of thoughts that are answered at several budgets, and of their answers."""

import torch
from torch import Tensor

from grupo.algo.advantages.turn_table import alike
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece


@piece
class BudgetRelative:
    """Thoughts by `anytime` of the mean of their answers at each budget, `prior` its shares.

    Answers by r - mean(r) of the `answers` at the same cut of the same trace; where that is one, of
    all traces at the same budget. Qi et al., arXiv:2505.13438.

    >>> from grupo.testing.batches import batch_of
    >>> parts = {"trace": [0.0, 0.0], "budget": [0.0, 0.0], "cut": [0.0, 0.0]}
    >>> marked = {"mark/thought": [[1.0, 0.0], [0.0, 0.0]]}
    >>> batch = batch_of(group=[0, 0], length=[2, 2], parts=parts, seen=marked)
    >>> BudgetRelative((1.0,), answers=2)(torch.tensor([1.0, 0.0]), batch).tolist()
    [[0.0, 0.5], [-0.5, -0.5]]
    """

    prior: tuple[float, ...]
    answers: int
    reads_parts = ("trace", "budget", "cut")
    needs = frozenset({"mark/thought"})

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        trace, s = alike(batch.group, batch.parts["trace"]), batch.parts["budget"].long()
        same = alike(trace, batch.parts["cut"]) if self.answers > 1 else alike(batch.group, s)
        home = torch.zeros_like(trace.unique()).scatter(0, trace, batch.group)
        p = x.new_tensor(self.prior) / sum(self.prior)
        thought = anytime(_means(x, trace, s, len(p)), home, p)[trace, s]
        answer, thinks = x - group_ops.mean(x, same), batch.seen["mark/thought"] > 0
        return torch.where(thinks, thought[batch.rollout, None], answer[batch.rollout, None])


def anytime(R: Tensor, group: Tensor, p: Tensor) -> Tensor:
    """ret_s - (s V1_s + (S - s) V2_s) / S of the pieces s of thoughts that earn R (n, S).

    ret_s = sum_{j>=s} p_j R_j; V2 is its mean over the `group` (n,), and V1_s =
    sum_{k<s} 2^k R_k / sum_{k<s} 2^k times sum_{j>=s} p_j, 0 for s = 0.

    >>> R, p = torch.tensor([[0.0, 1.0], [1.0, 1.0]]), torch.tensor([0.5, 0.5])
    >>> anytime(R, torch.tensor([0, 0]), p).tolist()
    [[-0.25, 0.25], [0.25, 0.0]]
    """
    s = torch.arange(len(p)).to(p)
    w, S = 2.0**s, len(p)
    ret, rest = (y.flip(-1).cumsum(-1).flip(-1) for y in (p * R, p))
    V1 = ((w * R).cumsum(1) - w * R) / (w.cumsum(0) - w).clamp(min=1) * rest
    V2 = torch.stack([group_ops.mean(y, group) for y in ret.T], 1)
    return ret - (s * V1 + (S - s) * V2) / S


def _means(x: Tensor, trace: Tensor, budget: Tensor, budgets: int) -> Tensor:
    """Of each trace and budget, 0 where nobody answered."""
    sums, counts = x.new_zeros(2, int(trace.max()) + 1 if len(trace) else 0, budgets)
    sums.index_put_((trace, budget), x, accumulate=True)
    counts.index_put_((trace, budget), torch.ones_like(x), accumulate=True)
    return sums / counts.clamp(min=1)

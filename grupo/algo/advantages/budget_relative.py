"""Advantages of thinking traces that are cut at several token budgets, and of their answers.

Source: AnytimeReasoner (BRPO), Qi et al., arXiv:2505.13438.
"""

import torch
from torch import Tensor

from grupo.algo.advantages.turn_table import combine_labels
from grupo.core import group_ops
from grupo.core.batch import Batch, PerAction
from grupo.core.component import component
from grupo.core.numbers import NumberOrSchedule, PositiveInt
from grupo.core.requires import Requires


@component
class BudgetRelativeAdvantage:
    """Budget-relative advantage of thinking tokens, group-centred advantage of answer tokens.

    A thinking token has the advantage of its budget segment, (N, T): `anytime_advantages` computes
    it from the mean reward of the trace's answers at each budget. An answer token has r - mean(r).
    The mean is over the answers at the same cut of the same trace. With one answer per cut, it is
    over the answers of all traces at the same budget.
    Source: Qi et al., arXiv:2505.13438.

    Args:
        prior: weight of each budget, ascending budgets; normalised to sum to 1.
        answers_per_cut: number of answers sampled at each cut of a trace.

    >>> from grupo.testing.batches import make_batch
    >>> zero = [0.0, 0.0]
    >>> terms = {"trace_index": zero, "budget_index": zero, "cut_index": zero}
    >>> thinking = {"step/thinking": [[1.0, 0.0], [0.0, 0.0]]}
    >>> batch = make_batch([0, 0], length=[2, 2], reward_terms=terms, signals=thinking)
    >>> estimator = BudgetRelativeAdvantage((1.0,), answers_per_cut=2)
    >>> estimator(torch.tensor([1.0, 0.0]), batch).tolist()
    [[0.0, 0.5], [-0.5, -0.5]]
    """

    prior: tuple[NumberOrSchedule, ...]
    answers_per_cut: PositiveInt

    requires = Requires(
        signals=("step/thinking",),
        reward_terms=("trace_index", "budget_index", "cut_index"),
        # labels; `prior` has an entry for each budget
        bounded_rewards=("trace_index", "budget_index", "cut_index"),
    )

    def __call__(self, x: Tensor, batch: Batch) -> PerAction:
        trace = combine_labels(batch.group, batch.reward_terms["trace_index"])
        budget = batch.reward_terms["budget_index"].long()
        if self.answers_per_cut > 1:
            compared = combine_labels(trace, batch.reward_terms["cut_index"])
        else:
            compared = combine_labels(batch.group, budget)
        prior = x.new_tensor(self.prior) / sum(self.prior)
        rewards = _mean_per_budget(x, trace, budget, len(prior))
        trace_group = torch.zeros_like(trace.unique()).scatter(0, trace, batch.group)
        thinking = anytime_advantages(rewards, trace_group, prior)[trace, budget]
        answer = x - group_ops.mean(x, compared)
        is_thinking = batch.signals["step/thinking"] > 0
        rollout = batch.rollout
        return torch.where(is_thinking, thinking[rollout, None], answer[rollout, None])


def anytime_advantages(rewards: Tensor, group: Tensor, prior: Tensor) -> Tensor:
    """ret_s - (s V1_s + (S - s) V2_s) / S for segment s = 0..S-1 of each trace, (n, S).

    ret_s = sum_{j>=s} p_j R_j. V1_s = (sum_{k<s} 2^k R_k / sum_{k<s} 2^k) sum_{j>=s} p_j is a
    baseline from the trace's earlier budgets, 0 for s = 0. V2_s is the mean of ret_s over the
    group.

    Args:
        rewards: R_j of the answers of each trace at budget j, (n, S).
        group: group of each trace, (n,).
        prior: p_j, (S,).

    >>> R, p = torch.tensor([[0.0, 1.0], [1.0, 1.0]]), torch.tensor([0.5, 0.5])
    >>> anytime_advantages(R, torch.tensor([0, 0]), p).tolist()
    [[-0.25, 0.25], [0.25, 0.0]]
    """
    s = torch.arange(len(prior)).to(prior)
    w = 2.0**s
    S = len(prior)
    ret = _reverse_cumsum(prior * rewards)
    V1 = ((w * rewards).cumsum(1) - w * rewards) / (w.cumsum(0) - w).clamp(min=1)
    V1 = V1 * _reverse_cumsum(prior)
    V2 = torch.stack([group_ops.mean(column, group) for column in ret.T], 1)
    return ret - (s * V1 + (S - s) * V2) / S


def _reverse_cumsum(x: Tensor) -> Tensor:
    """Sum of the entries from each position to the end of the last axis."""
    return x.flip(-1).cumsum(-1).flip(-1)


def _mean_per_budget(x: Tensor, trace: Tensor, budget: Tensor, num_budgets: int) -> Tensor:
    """Mean of `x` over the answers of each trace at each budget, 0 without answers."""
    num_traces = int(trace.max()) + 1 if len(trace) else 0
    zeros = x.new_zeros(num_traces * num_budgets)
    index = trace * num_budgets + budget
    # unlike index_put, index_add adds in order on a CPU, so that runs repeat
    sums = zeros.index_add(0, index, x)
    counts = zeros.index_add(0, index, torch.ones_like(x))
    return (sums / counts.clamp(min=1)).view(num_traces, num_budgets)

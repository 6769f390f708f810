"""Leave-one-out pass@k: only a unique best is credited. Tang et al., 2025, arXiv:2503.19595."""

import torch
from torch import Tensor

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def passk_leave_one_out(group_size: PositiveInt = 8) -> Method:
    """A_i = max_j r_j - max_(j != i) r_j: unbiased for pass@k with k = group_size.

    loss = mean over answers of sum over tokens of -A log pi.

    Args:
        group_size: rollouts per task, the k of pass@k (our choice).
    """
    # Two equally good best answers get 0, since the group keeps its maximum without one of them. A
    # lone rollout gets 0.
    return Method(
        sampler=GroupSampler(group_size),
        advantage=marginal_best,
        loss=Reinforce(),
        aggregation=token_sum,
    )


def marginal_best(x: Tensor, batch: Batch) -> Tensor:
    """max(x) - max(the others' x): what the group's best owes to this rollout.

    >>> from grupo.testing.batches import make_batch
    >>> marginal_best(torch.tensor([1.0, 0.25, 0.0]), make_batch(group=[0, 0, 0]))
    tensor([0.7500, 0.0000, 0.0000])
    """
    best = group_ops.max(x, batch.group)
    first = x == best
    others = torch.where(first, group_ops.min(x, batch.group), x)
    lone = first & (group_ops.sum(first.to(x), batch.group) == 1)
    return torch.where(lone, best - group_ops.max(others, batch.group), torch.zeros_like(x))


PAPER = Paper(
    title="Optimizing Language Models for Inference Time Objectives using Reinforcement Learning",
    use="The best of exactly group_size rollouts will be used.",
    tags=("advantage", "exploration"),
    verl="adv_estimator='grpo_passk', norm_adv_by_std_in_grpo=False (True by default there)",
    checked=("golden", "properties", "reference", "run"),
    source=Source(
        "third_party",
        "verl: compute_grpo_passk_outcome_advantage, which cites the paper",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=("The paper's other objectives: majority voting, and k smaller than the group.",),
    deviations=(
        "verl runs the estimator under PPO's clip and a mean over tokens, and divides by the "
        "standard deviation by default. Here it is REINFORCE with the sum over tokens, the "
        "gradient for which the advantage is unbiased.",
        "A lone rollout gets 0: verl refuses it.",
    ),
    audit=(
        "advantage compared with verl's estimator without its standard deviation, in an "
        "earlier audit (848 cases over all methods); the paper could not be opened"
    ),
    shown=("docs/claims.md#modes",),
)

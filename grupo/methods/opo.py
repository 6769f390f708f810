"""OPO: the minimum-variance baseline weights by length. Hao et al., 2025, arXiv:2505.23585."""

from torch import Tensor

from grupo.algo.aggregation import token_sum
from grupo.algo.losses import Reinforce
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def opo(group_size: PositiveInt = 8) -> Method:
    """A_i = r_i - sum_j l_j r_j / sum_j l_j, l_j the length of answer j; exactly on policy.

    loss = mean over answers of sum over tokens of -A log pi: no ratio, clip, KL or entropy term.
    The weights are the squared gradient norms of the optimal baseline, taken proportional to
    length.

    Args:
        group_size: rollouts per task (our choice).
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=center_by_length,
        loss=Reinforce(),
        aggregation=token_sum,
    )


def center_by_length(x: Tensor, batch: Batch) -> Tensor:
    """x - sum_j l_j x_j / sum_j l_j over the group, l the number of actions.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> batch = make_batch(group=[0, 0], length=[1, 3])
    >>> center_by_length(torch.tensor([1.0, 0.0]), batch)
    tensor([ 0.7500, -0.2500])
    """
    length = batch.lengths.to(x)
    return x - group_ops.sum(length * x, batch.group) / group_ops.sum(length, batch.group).clamp(
        min=1
    )


PAPER = Paper(
    title="On-Policy RL with Optimal Reward Baseline",
    use="Answers of one prompt differ much in length, and one update per batch is affordable.",
    tags=("advantage", "length"),
    verl="adv_estimator='opo', ppo_mini_batch_size=train_batch_size (a lone rollout gets A = r)",
    checked=("golden", "properties", "reference", "run"),
    source=Source("third_party", "verl: docs/algo/opo.md and compute_opo_outcome_advantage"),
    plan=(
        "one update per step: exact on-policy training (docs/algo/opo.md: the minibatch is "
        "the whole batch)"
    ),
    deviations=(
        (
            "The sum is over tokens, the gradient for which the baseline is optimal: verl's "
            "recipe runs its own token mean."
        ),
        "A lone rollout gets 0: verl's keeps its reward.",
    ),
    audit=(
        "baseline, absence of standard deviation, KL and entropy, and plan compared with "
        "docs/algo/opo.md; arithmetic compared with verl 0.9.1 in an earlier audit"
    ),
    shown=("docs/claims.md#padded",),
)

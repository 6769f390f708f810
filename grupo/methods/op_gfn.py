"""OP-GFN: the best of a group get the group's mass. Chen and Mauch, 2023, arXiv:2310.00386."""

from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import OrderPreserving, ParetoTarget
from grupo.core.numbers import PositiveInt
from grupo.core.paper import Paper, Source
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler


def op_gfn(group_size: PositiveInt = 8, objectives: tuple[str, ...] = ()) -> Method:
    """loss = mean over groups of -sum_i t_i log q_i, q = softmax over the group of log pi(y).

    t is 1 / n for the n answers that no other one of the group dominates, and 0 for the rest.

    Args:
        group_size: rollouts per task (our choice).
        objectives: reward terms of which none may be lower; without any, the total reward.
    """
    return Method(
        sampler=GroupSampler(group_size),
        advantage=identity,
        loss=OrderPreserving(target=ParetoTarget(objectives)),
        aggregation=group_mean,
    )


PAPER = Paper(
    title="Order-Preserving GFlowNets",
    use="Answers have an order, also of several objectives, and no scale.",
    tags=("preferences", "exploration"),
    checked=("golden", "properties"),
    catalogue=("op-gfn",),
    source=Source(
        "code",
        "yhangchen/OP-GFN, multi/gflownet/algo/trajectory_balance.py (ordering_loss_epoch), for "
        "one path per object",
    ),
    plan="not stated in any source that was opened; one update per step",
    missing=(
        "Trajectory balance for objects that several paths reach.",
        "Replay of earlier answers.",
    ),
    deviations=(
        "The reduction to language models is ours: the flow of an answer is Z pi(y).",
        "The target is that of the release for several objectives; for one it compares random "
        "pairs and gives 1/2 to either of two equal ones.",
        "One softmax runs over a group, in the release over the batch.",
    ),
    audit=(
        "softmax, target and the equal shares of ties compared with ordering_loss_epoch and "
        "data/sampling_iterator.py of the release"
    ),
    shown=("docs/comparisons/preferences.md#op-gfn-both-modes-of-two-objectives",),
)

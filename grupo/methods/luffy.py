"""LUFFY: an expert's rollout in every group, reshaped. Yan et al., 2025, arXiv:2504.14945."""

from grupo.algo.advantages import Center
from grupo.algo.aggregation import ConstantLength
from grupo.algo.losses import Clip, PolicyShaping, SelectBySource
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution

PAPER = Paper(
    title="Learning to Reason under Off-Policy Guidance",
    use="Own rollouts rarely succeed, and a stronger model's solutions are at hand.",
    checked=("golden", "laws", "reference", "run"),
    example="luffy(max_length=64)",
)


def luffy(
    max_length: int, group_size: int = 7, shaping_constant: float = 0.1, clip_eps: float = 0.2
) -> Method:
    """A = r - mean(r) over own and expert's together; f(pi) in place of a ratio on the expert's.

    loss = mean over rollouts of 1 / `max_length` times the sum over tokens of
           -min(R A, clip(R, 1 - `clip_eps`, 1 + `clip_eps`) A) where own, -f(pi) A where the expert's,
    f(p) = p / (p + `shaping_constant`). The task's solution is recited beside `group_size` own rollouts;
    `max_length` is the generation budget.
    """
    # As in Dr. GRPO there is neither a KL nor a standard deviation nor an answer's own length: so
    # the released scripts, which also drop the clip; on policy that is the same. They add an
    # entropy bonus of 0.001. A variant of the code centres on own rollouts alone; the paper, and
    # this, on both.
    return Method(
        sampler=WithExpertSolution(GroupSampler(group_size)),
        advantage=Center(),
        loss=SelectBySource(Clip(clip_eps, clip_eps), PolicyShaping(shaping_constant)),
        aggregation=ConstantLength(max_length),
    )

"""GCPO: a tool pays or costs, as it helped the group. Wang et al., 2025, arXiv:2506.07160."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import GroupSampler

PAPER = Paper(
    title="GeometryZero: Improving Geometry Solving for LLM with Group Contrastive Policy"
    " Optimization",
    use="An optional step helps with some tasks and harms with others: an auxiliary line, a call.",
    checked=("golden", "laws", "run"),
    example="gcpo(max_length=64)",
    catalogue=("geometryzero-gcpo",),
)


@component
class ConstructionReward:
    """r = a + form f + bonus M u + long min(1, L / limit), u = 1 for who took the optional step.

    M = 1 if those who took it are right more often by `margin`, -1 if less, else 0; and 0 where
    all took it, or nobody.
    """

    max_length: int
    margin: float
    format_coef: float
    construction_coef: float
    length_coef: float
    required_reward_terms = (
        "correct",
        "format",
        "construction",
    )  # the last: took the step, above 1/2

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        a, f, used = (batch.reward_terms[name] for name in self.required_reward_terms)
        u, g, share = used > 0.5, batch.group, (batch.lengths / self.max_length).clamp(max=1)
        gap = group_ops.mean_where(u, a, g) - group_ops.mean_where(~u, a, g)
        M = gap.sign() * (gap.abs() > self.margin) * (group_ops.std(u.to(a), g) > 0)
        return a + self.format_coef * f + self.construction_coef * M * u + self.length_coef * share


def gcpo(
    max_length: int,
    group_size: int = 8,
    margin: float = 0.1,
    reward_weights: tuple[float, float, float] = (0.5, 0.5, 0.1),
) -> Method:
    """r = accuracy + format + M construction + length, M the sign of what the construction does.

    parts: "correct", "format", "construction"; `weights` of the last three. Then GRPO.
    """
    # The paper finds M from two groups of the same task, one told to construct and one told not
    # to; here the group itself is split by what it did. Its weights, margin and the form of its
    # length reward were not seen and are our choice.
    credit = chain(ConstructionReward(max_length, margin, *reward_weights), Center(), ScaleByStd())
    return Method(sampler=GroupSampler(group_size), advantage=credit)

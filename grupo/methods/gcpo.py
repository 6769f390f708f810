"""GCPO: a tool pays or costs, as it helped the group. Wang et al., 2025, arXiv:2506.07160."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="GeometryZero: Improving Geometry Solving for LLM with Group Contrastive Policy"
    " Optimization",
    use="An optional step helps with some tasks and harms with others: an auxiliary line, a call.",
    checked=("golden", "laws", "run"),
    example="gcpo(limit=64)",
    catalogue=("geometryzero-gcpo",),
)


@piece
class Contrasted:
    """r = a + form f + bonus M u + long min(1, L / limit), u = 1 for who took the optional step.

    M = 1 if those who took it are right more often by `margin`, -1 if less, else 0; and 0 where
    all took it, or nobody.
    """

    limit: int
    margin: float
    form: float
    bonus: float
    long: float
    reads_parts = ("correct", "format", "construction")  # the last: took the step, above 1/2

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        a, f, used = (batch.parts[name] for name in self.reads_parts)
        u, g, share = used > 0.5, batch.group, (batch.lengths / self.limit).clamp(max=1)
        gap = group_ops.mean_where(u, a, g) - group_ops.mean_where(~u, a, g)
        M = gap.sign() * (gap.abs() > self.margin) * (group_ops.std(u.to(a), g) > 0)
        return a + self.form * f + self.bonus * M * u + self.long * share


def gcpo(
    limit: int,
    group: int = 8,
    margin: float = 0.1,
    weights: tuple[float, float, float] = (0.5, 0.5, 0.1),
) -> Method:
    """r = accuracy + format + M construction + length, M the sign of what the construction does.

    parts: "correct", "format", "construction"; `weights` of the last three. Then GRPO.
    """
    # The paper finds M from two groups of the same task, one told to construct and one told not
    # to; here the group itself is split by what it did. Its weights, margin and the form of its
    # length reward were not seen and are our choice.
    credit = chain(Contrasted(limit, margin, *weights), Center(), ScaleByStd())
    return Method(sample=Independent(group), credit=credit)

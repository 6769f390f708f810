"""DLER: the plainest length penalty, optimised well. Liu et al., 2025, arXiv:2510.15110."""

from collections.abc import Sequence

from torch import Tensor

from grupo.algo.advantages import Center, Whiten, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.curricula import Refilled, Shuffled
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="DLER: Doing Length pEnalty Right - Incentivizing More Intelligence per Token via"
    " Reinforcement Learning",
    use="Answers are right but far too long, and length penalties have cost accuracy.",
    checked=("golden", "laws", "run"),
)


@piece
class NothingBeyond:
    """x, but 0 for a rollout of more than `limit` actions."""

    limit: int

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return x * (batch.lengths <= self.limit)


@piece
class InformativeWithin:
    """Groups whose rewards differ once those beyond `limit` actions are 0."""

    limit: int

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        top = self.limit
        return [g for g in groups if len({r.reward * (r.length <= top) for r in g.rollouts}) > 1]


def dler(limit: int = 4000, group: int = 16, low: float = 0.2, high: float = 0.28) -> Method:
    """A = (a - mean(a)) / std(a) over all tokens, a = r - mean(r) by group, r = 0 beyond `limit`.

    loss = token mean of -min(R A, clip(R, 1 - `low`, 1 + `high`) A), over groups whose r differ,
    sampled again until the batch is full (eq. 3, sections 3.1 to 3.4).
    """
    return Method(
        curriculum=Refilled(Shuffled(), 10),  # ten rounds of sampling are DAPO's
        sample=Independent(group),
        curate=InformativeWithin(limit),
        credit=chain(NothingBeyond(limit), Center(), Whiten()),
        loss=Clip(low, high),
        weigh=token_mean,
    )

"""RLPR: the likelihood of the reference answer is the reward. Yu et al., 2025, arXiv:2506.18254."""

from collections.abc import Sequence
from statistics import pstdev

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import Clip
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.core.types import Group
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="RLPR: Extrapolating RLVR to General Domains without Verifiers",
    use="Reference answers are at hand, but no verifier can compare free-form answers with them.",
    checked=("golden", "laws", "run"),
)
GIVEN, ALONE = "answer_probability", "answer_probability_alone"


@piece
class Debiased:
    """clip(p - p0, 0, 1): what the reasoning adds to the likelihood of the reference answer."""

    reads_parts = (GIVEN, ALONE)

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        return (batch.parts[GIVEN] - batch.parts[ALONE]).clamp(0, 1)


@piece
class KeepSpread:
    """Groups whose debiased rewards have a standard deviation (over G) of `least` or more."""

    least: float

    def __call__(self, groups: Sequence[Group]) -> Sequence[Group]:
        return [group for group in groups if pstdev(self._debiased(group)) >= self.least]

    def _debiased(self, group: Group) -> list[float]:
        return [min(1.0, max(0.0, r.parts[GIVEN] - r.parts[ALONE])) for r in group.rollouts]


def rlpr(group: int = 8, low: float = 0.2, high: float = 0.27, least: float = 0.05) -> Method:
    """A = (r - mean(r)) / std(r), r = clip(p - p0, 0, 1), over groups with std(r) >= `least`.

    p is the mean probability of the reference answer's tokens after the reasoning, p0 without it.
    """
    # 8 rollouts, the clip and no KL are second-hand. The paper's threshold is a moving average of
    # std(r) itself; a fixed one is our choice.
    credit = chain(Debiased(), Center(), ScaleByStd())
    method = Method(sample=Independent(group), credit=credit, loss=Clip(low, high))
    return method.but(curate=KeepSpread(least), weigh=token_mean)

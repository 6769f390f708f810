"""RiskPO: what counts is the lower tail of exam papers. Ren et al., 2025, arXiv:2510.00911."""

from math import inf

from torch import Tensor

from grupo.algo.advantages.risk import followed, mixed_risk, papers, some_std
from grupo.core.batch import Batch
from grupo.core.component import piece
from grupo.core.controllers import Last
from grupo.core.paper import Paper
from grupo.core.schedules import varying
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="RiskPO: Risk-based Policy Optimization via Verifiable Reward for LLM Post-Training",
    use="The mean reward still rises while hard tasks are given up and entropy collapses.",
    checked=("golden", "laws", "reference"),
    catalogue=("riskpo",),
)
BEFORE = (Last("risk/low", -inf), Last("risk/high", -inf))  # -inf: none yet


@piece
class MixedRisk:
    """`mixed_risk` of a paper's score, over the stds of its bundle and of the rollout's task."""

    size: int
    levels: tuple[float, float]  # low and high
    weight: float
    q: float  # thresholds of the last step
    Q: float
    reads_whole_batch = True

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        S, bundle, paper = papers(x, batch, self.size)
        risk = mixed_risk(S, self._thresholds(S), self.levels, self.weight)
        return (risk / some_std(S, bundle))[paper] / some_std(x, batch.group)

    def report(self, batch: Batch) -> dict[str, float]:
        scores, *_ = papers(batch.reward, batch, self.size)
        return dict(zip(("risk/low", "risk/high"), self._thresholds(scores), strict=True))

    def _thresholds(self, S: Tensor) -> list[float]:
        return [followed(S, a, q) for a, q in zip(self.levels, (self.q, self.Q), strict=True)]


def riskpo(
    group: int = 5, bundle: int = 5, low: float = 0.2, high: float = 0.9, weight: float = 1.5
) -> Method:
    """A <= 0 of papers: the i-th rollouts of `bundle` tasks, 0 from the `high` quantile upwards.

    The quantiles q, Q of levels `low`, `high` are those of the first batch, then move by
    0.1 (level - mean(S < q)) a step.
    """
    # The authors' code (credit_assign_mode "std"). It bundles tasks and rollouts in the order they
    # come, drops rollouts that fill no paper, and divides by a bundle's std of 0 plus 1e-6.
    credit = MixedRisk(bundle, (low, high), weight, *map(varying, BEFORE))
    return Method(sample=Independent(group), credit=credit)

"""AdaCoT: thinking too little and too much both cost. Lou et al., 2025, arXiv:2505.11896."""

from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import Weigh, sequence_mean
from grupo.core.batch import Batch, PerAction
from grupo.core.component import piece
from grupo.core.paper import Paper
from grupo.method import Method
from grupo.rollouts.samplers import Independent

PAPER = Paper(
    title="AdaCoT: Pareto-Optimal Adaptive Chain-of-Thought Triggering via Reinforcement Learning",
    use="It is known which tasks deserve thinking, and the model is to think for those alone.",
    checked=("golden", "laws", "run"),
    catalogue=("adacot",),
)


@piece
class Triggered:
    """x - miss [needed, not thought] - over [thought, not needed] - malformed [bad format]."""

    miss: float
    over: float
    malformed: float
    reads_parts = ("think", "needed", "format")  # who thinks, who needs to, good form: above 1/2

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        think, needed, good = (batch.parts[name] > 0.5 for name in self.reads_parts)
        missed, vain = (needed & ~think).to(x), (think & ~needed).to(x)
        return x - self.miss * missed - self.over * vain - self.malformed * (~good).to(x)


@piece
class ButDecisions:
    """`inner`, but 0 for actions that are marked as the decision whether to think."""

    inner: Weigh = sequence_mean
    needs = frozenset({"mark/decision"})  # 1 at its token, where it is not to be learned from

    def __call__(self, batch: Batch) -> PerAction:
        return self.inner(batch).masked_fill(batch.seen["mark/decision"] > 0, 0.0)


def adacot(group: int = 8, miss: float = 0.2, over: float = 0.3, malformed: float = 1.0) -> Method:
    """r = base - `miss` P_miss - `over` P_over - `malformed` P_fmt; decisions may be left out.

    parts: "think", "needed" (a label of the task) and "format". "mark/decision" is 1 at the first
    token after the thinking opens where all tasks want thinking (selective loss masking), else 0.
    """
    # The paper trains by PPO with a critic; the reward is as good for a group. Its weights were not
    # seen: these are our choice, `miss` and `over` move along its front of accuracy and cost.
    return Method(
        sample=Independent(group),
        credit=chain(Triggered(miss, over, malformed), Center(), ScaleByStd()),
        weigh=ButDecisions(),
    )
